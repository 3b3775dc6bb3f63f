"""Estimates with a given family, integrands in blocks that fit in memory."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeGuard

import numpy as np

from .._precision import precision
from .._progress import progress
from .._show import counted
from .._types import Key, Values
from ..auditing import heavy
from ..chains._statistics import batch_means
from ..citing import references_of
from ..data import Integrands, Sample
from ..data._integrands import Columns, IntegrandSpec, columns
from ..families import AbstractFamily, AbstractLinearFamily, Masked, Polynomial
from ..fitting import prepare
from ..solvers import AbstractSolver, Auto, Exact, HeldOut, Nystrom, Problem, Sparse, Spread
from ..solvers._base import scaled
from ..solvers._conjugate_gradient import KEPT, is_matrix_free
from ..solvers._exact import unknowns
from ..solvers._nystrom import ROWS
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
from ._splits import AbstractSplit, CrossFit, with_moves

BETTER = 0.1  # of the variance without heavy columns, below which they are used nevertheless
LIGHT = 2  # the degree up to which a polynomial's columns are taken as they are


def without_heavy(problem: Problem, control: Callable[[Problem], HeldOut]) -> tuple[HeldOut, str]:
    r"""Control without a polynomial's columns of heavy tails, and say how many were left out.

    The average of a column converges slowly, and its standard error is too small, if $\hat k$ of its
    generalised Pareto tail is above 1/3. High powers of light-tailed draws look like that too, but
    then the fit with all columns leaves far less on held-out draws: where it leaves less than a tenth
    of the variance, it is used for that integrand. Up to degree 2 the score grows as slowly as the
    density's tails are heavy, and nothing is left out.

    Args:
        problem: the draws, integrands and family.
        control: fits a problem, and takes the control variates away from f.
    """
    whole, family = control(problem), problem.family
    if not may_be_heavy(family):
        return whole, ""
    columns = scaled(family.feature_matrix(None, problem.x, problem.score), problem.root)
    bad = heavy(np.asarray(columns, np.float64), errors=0.0)
    if not bad.any():
        return whole, ""
    light = Masked(family, np.asarray(~bad, problem.x.dtype))
    part = control(replace(problem, family=light))
    keep = _variance(whole) < BETTER * _variance(part)
    if keep.all():
        return whole, ""
    mixed = replace(
        whole,
        residual=np.where(keep, whole.residual, part.residual),
        unseen=np.where(keep, _unseen(whole), _unseen(part)),
    )
    return mixed, left_out(bad, keep)


def may_be_heavy(family: AbstractFamily) -> TypeGuard[Polynomial]:
    """Whether the tails of a family's columns are looked at: those of polynomials above degree 2."""
    return isinstance(family, Polynomial) and family.degree > LIGHT


def left_out(bad: np.ndarray, keep: np.ndarray) -> str:
    """How many columns were left out, and for how many integrands they were not kept."""
    which = "" if not keep.any() else f" for {int((~keep).sum())} of {len(keep)} integrands"
    count = f"{int(bad.sum())} of {len(bad)} columns"
    return f"\n{count} left out{which}: their tails are too heavy (k-hat above 1/3)"


def _unseen(held: HeldOut) -> np.ndarray:
    return np.zeros(held.residual.shape[1]) if held.unseen is None else np.asarray(held.unseen)


def _variance(held: HeldOut) -> np.ndarray:
    """Of the estimates, autocorrelation left aside."""
    residual = np.asarray(held.residual, np.float64)
    return residual.var(axis=0) / len(residual) + _unseen(held)


NUMBER = 8  # bytes
SHARE = 0.5  # of the memory that is free, where no budget is given
# The numbers below are those of `python -m benchmarks.scale integrands --only memory`.
PACKAGES = 45e6  # bytes of packages that are imported on the way, and of small arrays
PROGRAMS = 125e6  # bytes of jax and of its programs, where a solver is compiled
FACTORS = 2  # matrices of all pairs of draws at once, beside integrands
PASSES = 8  # arrays of all draws for each integrand: f, f - g, what lies between, statistics
PRIMAL = 7  # the same in primal form
SEARCH_PASSES = 18  # the same of a search: the best few candidates, what lies between
NOTES = 5  # numbers that are held of each candidate for each integrand
FOLDS = 8  # of a cross-fit, most often
MANY_FOLDS = 24  # of a search
FIELDS = 13  # numbers that an estimate holds for each integrand, batches not counted
TEXT = 200  # bytes of its name


@dataclass(frozen=True)
class MemoryPlan:
    """How integrands are cut into blocks of columns, and the memory that this takes.

    Attributes:
        integrands: how many there are.
        width: of them in a block.
        fixed: bytes that are taken once: draws, the factorisation, compiled programs.
        column: bytes for each integrand of the block that is being worked on.
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
        """The most bytes that are taken at once."""
        return self.fixed + self.width * self.column + self.integrands * self.kept

    def cuts(self) -> Iterator[tuple[int, int]]:
        """Where each block starts and stops."""
        for start in range(0, self.integrands, self.width):
            yield start, min(start + self.width, self.integrands)

    def __repr__(self) -> str:
        parts = (self.total, self.fixed, self.width * self.column, self.integrands * self.kept)
        total, fixed, block, kept = (f"{part / 1e9:.2g}" for part in parts)
        blocks = counted(self.blocks, "block")
        return (
            f"MemoryPlan({blocks} of {self.width} integrands, {total} GB: {fixed} once, {block} a block, "
            f"{kept} for the result)"
        )


def plan_blocks(
    integrands: int,
    sample: Sample,
    problem: Problem | None,
    extra: int,
    memory: float | None,
    solver: AbstractSolver | None = None,
) -> MemoryPlan:
    r"""Choose the widest blocks of integrands that a budget of memory allows.

    Args:
        integrands: how many there are, $k$.
        sample: the draws and scores.
        problem: of a given family; None where it is chosen from the draws.
        extra: bytes that reading a block takes beside its columns.
        memory: the budget in bytes; half of what is free by default.
        solver: of a given family; `Auto()` by default.
    """
    n = sample.size
    if problem is None:
        system, column = _automatic(n, sample.dim)
    else:
        system, column = _given(problem, integrands, solver or Auto())
    fixed = PACKAGES + extra + NUMBER * (4.0 * n * sample.dim + system)
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


def _given(problem: Problem, integrands: int, solver: AbstractSolver) -> tuple[float, float]:
    """Numbers that a solver takes once, and numbers for each integrand."""
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
        once = 2.0 * min(n, ROWS) * landmarks + (FOLDS + 4.0) * landmarks**2
        return once, PASSES * n + 2.0 * FOLDS * landmarks
    if isinstance(solver, Exact) and (p + 1 > n if solver.dual is None else solver.dual):
        return FACTORS * n**2, PASSES * n
    if isinstance(solver, Exact | Sparse):
        return 3.0 * n * p + 8.0 * float(p) ** 2, PRIMAL * n + 4.0 * p
    kept = n**2 if n <= KEPT and not is_matrix_free(problem) else 0.0
    return PROGRAMS / NUMBER + 2.0 * n * min(n, 1000) + kept, PASSES * n + 4.0 * p


def _automatic(n: int, dim: int) -> tuple[float, float]:
    """The same for the search: matrices that are kept, and what is held of all candidates."""
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
    """Bytes that this process may still take, by the system's account and by its container's.

    >>> free_memory() > 0
    True
    """
    found = [_of_system()]
    limit, used = (Path("/sys/fs/cgroup", name) for name in ("memory.max", "memory.current"))
    if limit.exists() and used.exists() and (most := limit.read_text().strip()).isdigit():
        found.append(max(float(most) - float(used.read_text()), 0.0))
    return min(found)


def _of_system() -> float:
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
    heavy = tuple(name for part in parts for name in part.heavy)
    note = f"{parts[0].note}, {plan.blocks} blocks of {plan.width} integrands"
    return replace(
        parts[0],
        names=names,
        chosen=chosen,
        note=note,
        reason=reason,
        heavy=heavy,
        candidates=None,
        references=references_of(tuple(parts)),
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
    """The function that fits control variates to the integrands of a block, (n, k).

    For several blocks that are cross-fitted exactly the factorisation is kept: each further block
    costs products with it.
    """
    if plan.blocks > 1 and isinstance(split, CrossFit):
        folds = split.boundaries(chains, problem.x.shape[0] // chains)
        if _is_exact(problem, solver, len(folds), plan.integrands):
            fitted = Exact().crossfitted(problem, folds)
            return lambda f: with_moves(fitted.leave_out(f), problem.root)

    def refit(f: Values) -> HeldOut:
        held, tails = without_heavy(
            replace(problem, f=f), lambda one: split.control(one, chains, solver, key)
        )
        return replace(held, note=held.note + tails)

    return refit


def _is_exact(problem: Problem, solver: AbstractSolver, folds: int, k: int) -> bool:
    """Whether the solver is the exact one, and no column is left out for its tails."""
    family = problem.family
    if not isinstance(family, AbstractLinearFamily) or may_be_heavy(family):
        return False
    chosen = solver.choose(problem, folds, k)[0] if isinstance(solver, Auto) else solver
    return isinstance(chosen, Exact) and chosen.dual is None
