"""Estimates of many integrands, some columns at a time, from one factorisation."""

from collections.abc import Callable
from dataclasses import replace

import jax.numpy as jnp
import numpy as np

from .._precision import precision
from .._progress import progress
from .._types import Key, Values
from ..chains import linearised
from ..data import Integrands, Sample
from ..data._integrands import Columns, IntegrandSpec, columns
from ..families import AbstractFamily, AbstractLinearFamily
from ..fitting import prepare
from ..solvers import AbstractSolver, Auto, Exact, Folds, Problem
from ..solvers._linear_map import linear_map
from ._memory import MemoryPlan, plan_blocks
from ._result import ARRAYS, Estimate
from ._splits import AbstractSplit, Controlled, CrossFit
from ._stability import instability
from ._tails import may_be_heavy, without_heavy


def memory_plan(
    f: IntegrandSpec | Integrands,
    sample: Sample,
    family: AbstractFamily | None = None,
    *,
    solver: AbstractSolver | None = None,
    memory: float | None = None,
) -> MemoryPlan:
    """How much memory `estimate` will take, and in how many blocks it will read the integrands.

    Nothing is evaluated or fitted. It is an account of the arrays that are held at once; a budget that
    is too small for one integrand at a time is refused, as `estimate` refuses it.

    Args:
        f: the integrands, as for `estimate`.
        sample: the draws and scores.
        family: of control variates; None where it is chosen from the draws.
        solver: that goes with the family; `Auto()` by default.
        memory: bytes that may be taken; half of what is free by default.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> f = {"f": np.broadcast_to(x[..., :1], (4, 250, 100_000))}
    >>> plan = sx.estimation.memory_plan(f, sx.Sample(x, -x), sx.Polynomial(2), memory=1e9)
    >>> plan.total <= 1e9, plan.blocks > 1
    (True, True)
    """
    found, problem = columns(f, sample), None
    if family is not None:
        with precision(sample.dtype):
            problem, _ = prepare(nothing(sample), sample, family, None, None)
    return plan_blocks(len(found.names), sample, problem, found.extra, memory, solver)


def nothing(sample: Sample) -> Integrands:
    """An integrand in the place of those that come in blocks."""
    return Integrands(np.zeros((sample.chains, sample.length, 1), sample.dtype), ("f",))


def in_blocks(found: Columns, plan: MemoryPlan, one: Callable[[Integrands], Estimate]) -> Estimate:
    """Read and estimate one block of integrands after the other.

    Args:
        found: the integrands, not read yet.
        plan: how they are cut into blocks.
        one: estimates a block.
    """
    if plan.blocks == 1:
        return one(found.read(0, plan.integrands))
    parts = []
    with progress("blocks of integrands", total=plan.blocks) as bar:
        for start, stop in plan.cuts():
            parts.append(one(found.read(start, stop)))
            bar.advance()
    return _joined(parts, plan)


def _joined(parts: list[Estimate], plan: MemoryPlan) -> Estimate:
    """The blocks side by side. What was tried differs from block to block, and is not kept."""
    arrays = {
        field: np.concatenate([getattr(part, field) for part in parts], axis=-1) for field in ARRAYS
    }
    names, chosen = (
        tuple(name for part in parts for name in getattr(part, field))
        for field in ("names", "chosen")
    )
    reason = next((part.reason for part in parts if part.reason is not None), None)
    note = f"{parts[0].note}, {plan.blocks} blocks of {plan.width} integrands"
    return replace(
        parts[0],
        names=names,
        chosen=chosen,
        note=note,
        reason=reason,
        candidates=None,
        **arrays,
    )


def controller(
    problem: Problem,
    plan: MemoryPlan,
    split: AbstractSplit,
    chains: int,
    solver: AbstractSolver,
    key: Key,
) -> Callable[[Values], Controlled]:
    """The function that fits control variates to the integrands of a block, (n, k).

    For several blocks that are cross-fitted exactly the factorisation is kept: each further block
    costs products with it.
    """
    if plan.blocks > 1 and isinstance(split, CrossFit):
        folds = split.boundaries(chains, problem.x.shape[0] // chains)
        if _is_exact(problem, solver, len(folds), plan.integrands):
            return _kept(problem, plan.width, folds, chains)

    def refit(f: Values) -> Controlled:
        controlled, tails = without_heavy(
            replace(problem, f=f), lambda one: split.control(one, chains, solver, key)
        )
        return replace(controlled, note=controlled.note + tails)

    return refit


def _is_exact(problem: Problem, solver: AbstractSolver, folds: int, k: int) -> bool:
    """Whether the solver is the exact one, and no column is left out for its tails."""
    family = problem.family
    if not isinstance(family, AbstractLinearFamily) or problem.objective.reach is not None:
        return False
    if may_be_heavy(family):
        return False
    chosen = solver.choose(problem, folds, k)[0] if isinstance(solver, Auto) else solver
    return isinstance(chosen, Exact) and chosen.dual is None


def _kept(
    problem: Problem, width: int, folds: Folds, chains: int
) -> Callable[[Values], Controlled]:
    fitted, note = linear_map(problem, folds)

    def control(f: Values) -> Controlled:
        k = f.shape[1]
        if k < width:
            f = jnp.pad(f, ((0, 0), (0, width - k)))  # one shape, one compilation
        rest, intercepts = (np.asarray(part)[:, :k] for part in fitted.rest(f))
        rest = linearised(rest, problem.root)
        moved = instability(rest, intercepts, folds)
        return Controlled(rest.reshape(chains, -1, k), moved, None, f"{len(folds)} folds, {note}")

    return control
