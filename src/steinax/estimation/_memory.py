"""How much memory an estimate takes, known before it starts, and how wide its blocks may be."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..chains._batches import batch_means
from ..data import Sample
from ..families import AbstractLinearFamily
from ..solvers import AbstractSolver, Auto, Exact, Nystrom, Problem, Sparse, Spread
from ..solvers._conjugate_gradient import KEPT, is_matrix_free
from ..solvers._linear_system import unknowns
from ..solvers._nystrom import ROWS
from ._along import POWERS
from ._arena import WHOLE
from ._automatic import DIMENSIONS, FEW, PILOT
from ._recipes import GRIDS, NOISES, affordable

NUMBER = 8  # bytes
SHARE = 0.5  # of the memory that is free, where no budget is given
PROGRAMS = 170e6  # bytes that jax takes to compile and hold its programs
FACTORS = 5  # matrices of all pairs of draws at once, while one is made, factorised and inverted
PASSES = 9  # arrays of all draws for each integrand: f, f - g, what lies between, statistics
PRIMAL = 7  # the same in primal form
SEARCH_PROGRAMS = 270e6  # bytes of the programs of an automatic search
SEARCH_PASSES = (
    36  # arrays of all draws for each integrand of a search: the best few, what lies between
)
COPIES = 1.5  # of the series of the candidates that are made at once
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
        blocks = "1 block" if self.blocks == 1 else f"{self.blocks} blocks"
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
        programs, (system, column) = SEARCH_PROGRAMS, _automatic(n, sample.dim)
    else:
        programs, (system, column) = PROGRAMS, _given(problem, integrands, solver or Auto())
    fixed = programs + extra + NUMBER * (4.0 * n * sample.dim + system)
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
        return 0.0, PASSES * n
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
    return 2.0 * n * min(n, 1000) + kept, PASSES * n + 4.0 * p


def _automatic(n: int, dim: int) -> tuple[float, float]:
    """The same for the search: what is held of all candidates, and of those that are made at once."""
    system = FACTORS * float(n) ** 2 if n <= WHOLE else 3.0 * n * 1000
    train = n * (1 - 1 / MANY_FOLDS)
    degrees = sum(affordable(degree, dim, train) for degree in (0, 1, 2, 3))
    grid = sum((len(one.factors) + 2) * len(one.degrees) for one in GRIDS) * len(NOISES)
    if dim >= DIMENSIONS:
        series, candidates = 2.0 * n * len(POWERS), 4.0 * MANY_FOLDS * dim
    elif n <= FEW:
        series, candidates = float(n * len(NOISES) * degrees), NOTES * grid
    else:
        series, candidates = float(n * degrees + PILOT * len(NOISES) * degrees), NOTES * grid
    return system, SEARCH_PASSES * float(n) + COPIES * series + candidates


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
