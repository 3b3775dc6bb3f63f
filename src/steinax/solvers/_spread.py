"""Solve with the draws spread over several devices, in one process or many."""

from dataclasses import replace

import equinox as eqx
import jax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from .._numerics import to_numpy
from .._types import Key, PyTree
from ._auto import Auto
from ._base import AbstractSolver, Problem, Solution
from ._regression import Folds, HeldOut

AXIS = "data"  # the mesh axis along which draws are spread
ARRAYS = ("residual", "intercepts", "without", "variance", "unseen")  # the array fields of HeldOut


class Spread(AbstractSolver):
    r"""Run another solver with the draws spread over $D$ devices, $n / D$ on each.

    Moments of features, rows of a kernel matrix and batches of draws are computed where their draws
    are, and summed or collected over devices. The factorisation itself is not distributed: every device
    repeats it. Results are the same on every device and in every process, up to rounding.

    With several processes (`jax.distributed.initialize`), each must pass the same sample:
    `gather_chains` collects one from the chains of all processes.

    Args:
        solver: the solver to run, `Auto()` by default.
        mesh: the devices, such as `jax.make_mesh((4,), ("data",))`, with any axes; all by default.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 100, 2))
    >>> sx.estimate("x", sx.Sample(x, -x), sx.Polynomial(2), solver=Spread()).note
    '8 folds, on 1 device: solved exactly: 5 coefficients, 350 draws'
    """

    solver: AbstractSolver = Auto()
    mesh: Mesh | None = eqx.field(static=True, default=None)

    def references_for(self, problem: Problem) -> tuple[str, ...]:
        return self.solver.references_for(problem)

    def solve(self, problem: Problem, key: Key | None = None) -> Solution:
        mesh = self._devices(problem)
        solution = self.solver.solve(_spread(problem, mesh), key)
        return replace(_collected(solution, mesh), note=_note(mesh, solution.note))

    def crossfit(self, problem: Problem, folds: Folds, key: Key | None = None) -> HeldOut:
        mesh = self._devices(problem)
        held = self.solver.crossfit(_spread(problem, mesh), folds, key)
        arrays = {name: getattr(held, name) for name in ARRAYS}
        return replace(held, **_collected(arrays, mesh), note=_note(mesh, held.note))

    def _devices(self, problem: Problem) -> Mesh:
        devices = jax.devices() if self.mesh is None else self.mesh.devices.ravel()
        mesh = Mesh(devices, (AXIS,), axis_types=(AxisType.Auto,))  # shardings are inferred by jax
        n = problem.x.shape[0]
        if n % mesh.size:
            raise ValueError(
                f"{n} draws cannot be distributed equally over {mesh.size} devices: leave out the first "
                f"{n % mesh.size} of them, or give Spread a mesh of another number of devices."
            )
        return mesh


def _spread(problem: Problem, mesh: Mesh) -> Problem:
    """Put an equal share of the draws on each device."""
    rows = NamedSharding(mesh, PartitionSpec(AXIS))
    names = ("x", "score", "f") if problem.weights is None else ("x", "score", "f", "weights")
    draws = {name: jax.device_put(getattr(problem, name), rows) for name in names}
    return replace(problem, **draws)


def _collected(tree: PyTree, mesh: Mesh) -> PyTree:
    """Collect the arrays of a tree from all devices, as NumPy arrays of this process."""
    arrays, others = eqx.partition(tree, lambda leaf: isinstance(leaf, jax.Array))
    replicated = NamedSharding(mesh, PartitionSpec())
    return eqx.combine(to_numpy(jax.jit(_identity, out_shardings=replicated)(arrays)), others)


def _identity(tree: PyTree) -> PyTree:
    return tree


def _note(mesh: Mesh, note: str) -> str:
    devices = "1 device" if mesh.size == 1 else f"{mesh.size} devices"
    return f"on {devices}: {note}"
