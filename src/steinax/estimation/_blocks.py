"""Estimation with a given family, with the integrands split into blocks that fit in memory."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeGuard

import numpy as np

from .._numerics import precision
from .._show import counted, progress
from .._types import Key, Values
from ..chains import batch_means, heavy
from ..citing import references_of
from ..data import (
    IntegrandColumns,
    Integrands,
    IntegrandSpec,
    Sample,
    integrand_columns,
    training_size,
)
from ..families import AbstractFamily, AbstractLinearFamily, Masked, Polynomial
from ..solvers import (
    KEPT_ROWS,
    NYSTROM_ROWS,
    AbstractSolver,
    Auto,
    Exact,
    HeldOut,
    Nystrom,
    Problem,
    Sparse,
    Spread,
    is_matrix_free,
    prepare,
    scaled,
    unknowns,
)
from ._candidates import (
    DEGREE,
    DIMENSIONS,
    GRIDS,
    KEPT_MATRICES,
    PENALTIES,
    WHOLE,
    is_cheap,
    most_draws,
    polynomial_size,
    train_size,
)
from ._directions import POWERS
from ._result import ARRAYS, Estimate
from ._splits import AbstractSplit, CrossFit, moved

BETTER = 0.1  # heavy columns are kept if they reduce the variance to less than this fraction
LIGHT = 2  # up to this degree the tails of a polynomial's columns are not checked


def without_heavy(problem: Problem, control: Callable[[Problem], HeldOut]) -> tuple[HeldOut, str]:
    r"""Apply control variates without a polynomial's heavy-tailed columns, and note how many were left out.

    The average of a column converges slowly, and its standard error is too small, if $\hat k$ of its
    generalised Pareto tail is above 1/3. High powers of light-tailed draws look like that too, but
    then the fit with all columns has far smaller residuals on held-out draws: where their variance is
    less than a tenth, that fit is used for the integrand. Up to degree 2 the heavier the tails of the
    density, the slower its score grows, and nothing is left out.

    Args:
        problem: the draws, integrands and family.
        control: fits a problem, and subtracts the control variates from f.
    """
    whole, family = control(problem), problem.family
    if not may_be_heavy(family):
        return whole, ""
    draws = problem.take(problem.draws)
    columns = scaled(family.feature_matrix(None, draws.x, draws.score), draws.weights)
    bad = heavy(np.asarray(columns, np.float64), errors=0.0)
    if not bad.any():
        return whole, ""
    light = Masked(family, np.asarray(~bad, problem.x.dtype))
    light_fit = control(replace(problem, family=light))
    keep = _variance(whole) < BETTER * _variance(light_fit)
    if keep.all():
        return whole, ""
    mixed = replace(
        whole,
        residual=np.where(keep, whole.residual, light_fit.residual),
        unseen=np.where(keep, _unseen(whole), _unseen(light_fit)),
    )
    return mixed, left_out(bad, keep)


def may_be_heavy(family: AbstractFamily) -> TypeGuard[Polynomial]:
    """Return whether the tails of a family's columns are checked: those of polynomials above degree 2."""
    return isinstance(family, Polynomial) and family.degree > LIGHT


def left_out(bad: np.ndarray, keep: np.ndarray) -> str:
    """Describe how many columns were left out, and for how many integrands."""
    which = "" if not keep.any() else f" for {int((~keep).sum())} of {len(keep)} integrands"
    count = f"{int(bad.sum())} of {len(bad)} columns"
    return f"\n{count} left out{which}: their tails are too heavy (k-hat above 1/3)"


def _unseen(held: HeldOut) -> np.ndarray:
    return np.zeros(held.residual.shape[1]) if held.unseen is None else np.asarray(held.unseen)


def _variance(held: HeldOut) -> np.ndarray:
    """Compute the variance of the estimates, ignoring autocorrelation, (k,)."""
    residual = np.asarray(held.residual, np.float64)
    return residual.var(axis=0) / len(residual) + _unseen(held)


NUMBER = 8  # bytes
SHARE = 0.5  # fraction of the free memory to use if no budget is given
# The numbers below were measured by `python -m benchmarks.scale integrands --only memory`.
PACKAGES = 45e6  # bytes of packages imported during the call, and of small arrays
PROGRAMS = 125e6  # bytes of jax and its compiled programs, for compiled solvers
FACTORS = 2  # matrices over all pairs of draws that are held at once
PASSES = 8  # arrays over all draws for each integrand: f, f - g, intermediate arrays, statistics
PRIMAL = 7  # PASSES in primal form
SEARCH_PASSES = 18  # PASSES of a search: the best few candidates, intermediate arrays
NOTES = 5  # numbers held for each candidate and integrand
FOLDS = 8  # usual number of folds of a cross-fit
MANY_FOLDS = 24  # number of folds of a search
FIELDS = 13  # numbers that an estimate holds for each integrand, without batches
TEXT = 200  # bytes for the name of an integrand


@dataclass(frozen=True)
class MemoryPlan:
    """Plan of how integrands are split into blocks of columns, and of the memory this takes.

    Attributes:
        integrands: the number of integrands.
        width: the number of integrands in a block.
        fixed: bytes needed once: draws, the factorisation, compiled programs.
        column: bytes for each integrand of the current block.
        kept: bytes for each integrand in the result.

    >>> MemoryPlan(100_000, 5_000, fixed=5e8, column=2e5, kept=2e3)
    MemoryPlan(20 blocks of 5000 integrands, 1.7 GB: 0.5 once, 1 a block, 0.2 for the result)
    """

    integrands: int
    width: int
    fixed: float
    column: float
    kept: float

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        return -(-self.integrands // self.width)

    @property
    def total(self) -> float:
        """The peak memory in bytes."""
        return self.fixed + self.width * self.column + self.integrands * self.kept

    def cuts(self) -> Iterator[tuple[int, int]]:
        """Iterate over the start and stop of each block."""
        for start in range(0, self.integrands, self.width):
            yield start, min(start + self.width, self.integrands)

    def __repr__(self) -> str:
        sizes = (self.total, self.fixed, self.width * self.column, self.integrands * self.kept)
        total, fixed, block, kept = (f"{size / 1e9:.2g}" for size in sizes)
        blocks = counted(self.blocks, "block")
        return (
            f"MemoryPlan({blocks} of {self.width} integrands, {total} GB: {fixed} once, {block} a block, "
            f"{kept} for the result)"
        )


def plan_blocks(
    columns: IntegrandColumns,
    sample: Sample,
    problem: Problem | None,
    memory: float | None,
    solver: AbstractSolver | None = None,
) -> MemoryPlan:
    r"""Choose the widest blocks of integrands that a budget of memory allows.

    Args:
        columns: the integrands, not read yet.
        sample: the draws and scores.
        problem: the problem with a given family; None if the family is chosen from the draws.
        memory: the budget in bytes; half of the free memory by default.
        solver: the solver for a given family; `Auto()` by default.
    """
    integrands = len(columns.names)
    n = sample.size + (0 if columns.training is None else training_size(sample))
    if problem is None:
        system, column = _search_size(n, sample.dim)
    else:
        system, column = _given_family_size(problem, integrands, solver or Auto())
    fixed = PACKAGES + columns.extra + NUMBER * (4.0 * n * sample.dim + system)
    kept = NUMBER * (FIELDS + 2.0 * len(batch_means(sample.draws[..., :1]))) + TEXT
    free = free_memory()
    budget = SHARE * free if memory is None else float(memory)
    room = (budget - fixed - integrands * kept) / (NUMBER * column)
    if room < 1 and memory is None:
        room = (free - fixed - integrands * kept) / (NUMBER * column)
    if room < 1:
        least = fixed + integrands * kept + NUMBER * column
        raise MemoryError(
            f"{integrands} integrands on {n} draws take {least / 1e9:.2g} GB, one at a time, and there are "
            f"{(free if memory is None else budget) / 1e9:.2g}: {fixed / 1e9:.2g} GB to fit, "
            f"{integrands * kept / 1e9:.2g} for the result. Give a larger `memory`, thin the draws, use "
            "Polynomial(2) or kernels with Landmarks, or estimate fewer integrands at a time."
        )
    blocks = -(-integrands // max(int(min(room, integrands)), 1))
    return MemoryPlan(integrands, -(-integrands // blocks), fixed, NUMBER * column, kept)


def _given_family_size(
    problem: Problem, integrands: int, solver: AbstractSolver
) -> tuple[float, float]:
    """Count the numbers that a given solver stores once, and those it stores for each integrand."""
    n = float(problem.x.shape[0])
    if isinstance(solver, Spread):
        solver = solver.solver
    if not isinstance(problem.family, AbstractLinearFamily):
        return PROGRAMS / NUMBER, PASSES * n
    p, _ = unknowns(problem)
    if isinstance(solver, Auto):
        solver, _ = solver.choose(problem, FOLDS, integrands)
    if isinstance(solver, Nystrom):
        landmarks = min(solver.count, n)
        once = 2.0 * min(n, NYSTROM_ROWS) * landmarks + (FOLDS + 4.0) * landmarks**2
        return once, PASSES * n + 2.0 * FOLDS * landmarks
    if isinstance(solver, Exact) and (p + 1 > n if solver.dual is None else solver.dual):
        return FACTORS * n**2, PASSES * n
    if isinstance(solver, Exact | Sparse):
        return 3.0 * n * p + 8.0 * float(p) ** 2, PRIMAL * n + 4.0 * p
    kept = n**2 if n <= KEPT_ROWS and not is_matrix_free(problem) else 0.0
    return PROGRAMS / NUMBER + 2.0 * n * min(n, 1000) + kept, PASSES * n + 4.0 * p


def _search_size(n: int, dim: int) -> tuple[float, float]:
    """Count the numbers that the automatic search stores once, and those it stores for each integrand."""
    kernels = sum(len(grid.factors) + 2 for grid in GRIDS)
    train = float(n if n <= WHOLE else train_size(n))
    columns = (
        polynomial_size(degree, dim) * float(min(n, most_draws(degree, dim)))
        for degree in range(1, DEGREE + 1)
        if is_cheap(degree, n, dim)
    )
    kept = min(KEPT_MATRICES, kernels * train**2)
    system = FACTORS * train**2 + kept + 3.0 * max(columns, default=0.0)
    if dim >= DIMENSIONS:
        return system, (SEARCH_PASSES + 2.0 * len(POWERS)) * n + 4.0 * MANY_FOLDS * dim
    tried = sum((len(grid.factors) + 2) * len(grid.degrees) for grid in GRIDS) * len(PENALTIES)
    return system, SEARCH_PASSES * float(n) + NOTES * tried


def free_memory() -> float:
    """Return the bytes that this process may still allocate, within the system's and the container's limits.

    >>> free_memory() > 0
    True
    """
    limits = [_system_memory()]
    limit, used = (Path("/sys/fs/cgroup", name) for name in ("memory.max", "memory.current"))
    if limit.exists() and used.exists() and (most := limit.read_text().strip()).isdigit():
        limits.append(max(float(most) - float(used.read_text()), 0.0))
    return min(limits)


def _system_memory() -> float:
    status = Path("/proc/meminfo")
    if status.exists():
        for line in status.read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable"):
                return float(line.split()[1]) * 1024
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2
    return float(np.iinfo(np.int32).max)


def memory_plan(
    f: IntegrandSpec | Integrands,
    sample: Sample,
    family: AbstractFamily | None = None,
    *,
    solver: AbstractSolver | None = None,
    memory: float | None = None,
) -> MemoryPlan:
    """Predict how much memory `estimate` takes, and in how many blocks it reads the integrands.

    Nothing is evaluated or fitted: the sizes of the arrays that are held at once are added up. A budget
    that is too small for one integrand at a time raises an error, as it does in `estimate`.

    Args:
        f: the integrands, as for `estimate`.
        sample: the draws and scores.
        family: the family of control variates; None if it is chosen from the draws.
        solver: the solver for the family; `Auto()` by default.
        memory: the budget in bytes; half of the free memory by default.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> f = {"f": np.broadcast_to(x[..., :1], (4, 250, 100_000))}
    >>> plan = sx.estimation.memory_plan(f, sx.Sample(x, -x), sx.Polynomial(2), memory=1e9)
    >>> plan.total <= 1e9, plan.blocks > 1
    (True, True)
    """
    columns, problem = integrand_columns(f, sample), None
    if family is not None:
        with precision(sample.dtype):
            unread = no_integrands(sample, columns.training is not None)
            problem, _ = prepare(unread, sample, family, None, None)
    return plan_blocks(columns, sample, problem, memory, solver)


def no_integrands(sample: Sample, training: bool = False) -> Integrands:
    """Return a placeholder for integrands that are read in blocks, with or without training points."""
    values = np.zeros((sample.chains, sample.length, 1), sample.dtype)
    return Integrands(values, ("f",), np.zeros((training_size(sample), 1)) if training else None)


def in_blocks(
    columns: IntegrandColumns, plan: MemoryPlan, estimate_block: Callable[[Integrands], Estimate]
) -> Estimate:
    """Read and estimate the integrands block by block.

    Args:
        columns: the integrands, not read yet.
        plan: how they are split into blocks.
        estimate_block: estimates the integrands of one block.
    """
    if plan.blocks == 1:
        return estimate_block(columns.read(0, plan.integrands))
    estimates = []
    with progress("blocks of integrands", total=plan.blocks) as bar:
        for start, stop in plan.cuts():
            estimates.append(estimate_block(columns.read(start, stop)))
            bar.advance()
    return _joined(estimates, plan)


def _joined(blocks: list[Estimate], plan: MemoryPlan) -> Estimate:
    """Join the estimates of all blocks, without their candidates, which differ between blocks."""
    arrays = {
        field: np.concatenate([getattr(block, field) for block in blocks], axis=-1)
        for field in ARRAYS
    }
    names, chosen = (
        tuple(name for block in blocks for name in getattr(block, field))
        for field in ("names", "chosen")
    )
    reason = next((block.reason for block in blocks if block.reason is not None), None)
    heavy = tuple(name for block in blocks for name in block.heavy)
    note = f"{blocks[0].note}, {plan.blocks} blocks of {plan.width} integrands"
    return replace(
        blocks[0],
        names=names,
        chosen=chosen,
        note=note,
        reason=reason,
        heavy=heavy,
        candidates=None,
        references=references_of(tuple(blocks)),
        **arrays,
    )


def better_of(found: Estimate, trial: Estimate, points: int) -> Estimate:
    """Replace the estimates of those integrands whose standard errors the trial lowers.

    Args:
        found: the estimate without the points that were tried.
        trial: the estimate that is also fitted to these points.
        points: the number of these points.
    """
    with np.errstate(invalid="ignore"):
        better = np.asarray(trial.mcse < found.mcse)
    arrays = {
        field: np.where(better, getattr(trial, field), getattr(found, field)) for field in ARRAYS
    }
    flags = better.reshape(-1).tolist()
    pairs = zip(flags, trial.chosen, found.chosen, strict=True)
    count = f"{sum(flags)} of {len(flags)} integrands"
    used = "for all integrands" if all(flags) else f"for {count}" if any(flags) else "for none"
    return replace(
        found,
        chosen=tuple(new if taken else old for taken, new, old in pairs),
        note=f"{found.note}\n{counted(points, 'fresh training point')} tried, and used {used}",
        candidates=trial.candidates if all(flags) else found.candidates if not any(flags) else None,
        references=references_of((found, trial)),
        **arrays,
    )


def controller(
    problem: Problem,
    plan: MemoryPlan,
    split: AbstractSplit,
    chains: int,
    solver: AbstractSolver,
    key: Key | None,
) -> Callable[[Values], HeldOut]:
    """Return a function that fits control variates to the integrands of a block, (rows, k).

    If several blocks are cross-fitted exactly, they share one factorisation, and each further block
    only costs products with it.
    """
    if plan.blocks > 1 and isinstance(split, CrossFit):
        order, folds = split.row_folds(problem, chains)
        if _is_exact(problem, solver, len(folds), plan.integrands):
            ordered = problem if problem.draw is None else problem.take(order)
            fitted = Exact().crossfitted(ordered, folds)
            return lambda f: moved(fitted.leave_out(f[order]), ordered)

    def refit(f: Values) -> HeldOut:
        held, tails = without_heavy(
            replace(problem, f=f), lambda subproblem: split.control(subproblem, chains, solver, key)
        )
        return replace(held, note=held.note + tails)

    return refit


def _is_exact(problem: Problem, solver: AbstractSolver, folds: int, k: int) -> bool:
    """Return whether the solver is exact, and no column can be left out because of its tails."""
    family = problem.family
    if not isinstance(family, AbstractLinearFamily) or may_be_heavy(family):
        return False
    chosen = solver.choose(problem, folds, k)[0] if isinstance(solver, Auto) else solver
    return isinstance(chosen, Exact) and chosen.dual is None
