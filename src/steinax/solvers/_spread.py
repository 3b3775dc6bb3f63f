"""Draws spread over several devices, of one process or of many."""

from dataclasses import replace

import equinox as eqx
import jax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from .._precision import to_numpy
from .._types import Key, PyTree
from ._auto import Auto
from ._base import AbstractSolver, Problem, Solution
from ._regression import Folds, HeldOut

AXIS = "data"  # of the mesh, along which draws are spread
ARRAYS = ("residual", "intercepts", "variance", "unseen")  # of what is held out


class Spread(AbstractSolver):
    r"""Another solver, with the draws spread over devices: each holds $n / D$ of them.

    Moments of features, rows of a kernel matrix and batches of draws are computed where their draws
    are, and summed or collected over devices. The factorisation itself is not spread: every device
    repeats it. Results are the same on every device and in every process, up to rounding.

    Where there are several processes (`jax.distributed.initialize`), each must give the same
    sample: `gather_chains` makes one of the chains that each of them has.

    Args:
        solver: what is done with the draws, `Auto()` by default.
        mesh: of the devices, `jax.make_mesh((4,), ("data",))`, of whatever axes; all by default.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 100, 2))
    >>> sx.estimate("x", sx.Sample(x, -x), sx.Polynomial(2), solver=Spread()).note
    '8 folds, on 1 device: chosen for 5 unknowns: exact, primal: 5 coefficients, 350 draws'
    """

    solver: AbstractSolver = Auto()
    mesh: Mesh | None = eqx.field(static=True, default=None)

    def references_for(self, problem: Problem) -> tuple[str, ...]:
        return self.solver.references_for(problem)

    def solve(self, problem: Problem, key: Key | None = None) -> Solution:
        mesh = self._devices(problem)
        found = self.solver.solve(_spread(problem, mesh), key)
        return replace(_collected(found, mesh), note=_note(mesh, found.note))

    def crossfit(self, problem: Problem, folds: Folds, key: Key | None = None) -> HeldOut:
        mesh = self._devices(problem)
        held = self.solver.crossfit(_spread(problem, mesh), folds, key)
        arrays = {name: getattr(held, name) for name in ARRAYS}
        return replace(held, **_collected(arrays, mesh), note=_note(mesh, held.note))

    def _devices(self, problem: Problem) -> Mesh:
        devices = jax.devices() if self.mesh is None else self.mesh.devices.ravel()
        mesh = Mesh(devices, (AXIS,), axis_types=(AxisType.Auto,))  # programs name no shardings
        n = problem.x.shape[0]
        if n % mesh.size:
            raise ValueError(
                f"{n} draws cannot be dealt equally to {mesh.size} devices: leave out the first "
                f"{n % mesh.size} of them, or give Spread a mesh of another number of devices."
            )
        return mesh


def _spread(problem: Problem, mesh: Mesh) -> Problem:
    """Each device gets its share of the draws."""
    rows = NamedSharding(mesh, PartitionSpec(AXIS))
    names = ("x", "score", "f") if problem.root is None else ("x", "score", "f", "root")
    draws = {name: jax.device_put(getattr(problem, name), rows) for name in names}
    return replace(problem, **draws)


def _collected(found: PyTree, mesh: Mesh) -> PyTree:
    """What was found, whole, as NumPy arrays of this process."""
    arrays, others = eqx.partition(found, lambda leaf: isinstance(leaf, jax.Array))
    whole = NamedSharding(mesh, PartitionSpec())
    return eqx.combine(to_numpy(jax.jit(_same, out_shardings=whole)(arrays)), others)


def _same(tree: PyTree) -> PyTree:
    return tree


def _note(mesh: Mesh, note: str) -> str:
    devices = "1 device" if mesh.size == 1 else f"{mesh.size} devices"
    return f"on {devices}: {note}"
