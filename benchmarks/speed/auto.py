"""What `Auto` chooses against every solver, in the cells that a solver has been seen to win in."""

import sys
import time
from collections.abc import Iterator

import jax
import numpy as np

import steinax as sx
from steinax._numerics import precision
from steinax.solvers import Problem, Solution, prepare

from .._pinned import best, peak_megabytes
from ._problems import skewed_sample

KERNELS = ((1000, 10), (4000, 10), (4000, 61), (16_000, 10), (100_000, 10))
POLYNOMIALS = ((1000, 61), (10_000, 61), (2000, 200), (1000, 500), (4000, 500))
NEAR = 1.05  # of the exact fit's held-out variance
AT_MOST = 1.3
TOLERANCE = 0.01  # of conjugate gradients, as `Auto` has it
CHOICES = 10  # that are timed
TEST = 4000  # new draws that a fit is judged on


def measure(rounds: int = 3, largest: int = 100_000, only: str | None = None) -> list[dict]:
    """A row for each solver in each cell of up to `largest` draws; CPU seconds of `solve`."""
    rows = []
    for family, cells in ((sx.KernelTranslates(), KERNELS), (sx.Polynomial(2), POLYNOMIALS)):
        for n, dim in cells:
            name = type(family).__name__
            if n <= largest and only in (None, name):
                rows += _cell(family, name, n, dim, rounds)
                print(*rows[-6:], sep="\n", file=sys.stderr)
    return rows


def _cell(
    family: sx.families.AbstractFamily, name: str, n: int, dim: int, rounds: int
) -> list[dict]:
    with precision(np.float64):
        sample, f = skewed_sample(n, dim)
        problem, coordinates = prepare(sx.data.integrands(f, sample), sample, family, None, None)
        new, values = skewed_sample(TEST, dim, seed=1)
        x, score = coordinates(new.x, new.score)
        wanted = values["sine"].reshape(-1, 1)
        solvers = list(_solvers(problem))
        times, solutions = take_times(solvers, problem, rounds)
        rows = []
        for solver, taken, solution in zip(solvers, times, solutions, strict=True):
            left = _left(solution, np.asarray(x), np.asarray(score), wanted)
            rows.append(
                {
                    "family": name,
                    "n": n,
                    "d": dim,
                    "solver": type(solver).__name__,
                    "seconds": taken,
                    "choosing": _choosing(solver, problem),
                    "left": left,
                    "note": solution.note,
                }
            )
    return _judged(rows)


def _choosing(solver: sx.solvers.AbstractSolver, problem: Problem) -> float | None:
    """The least CPU seconds that `Auto` takes to choose, without the fit that follows."""
    if not isinstance(solver, sx.Auto):
        return None
    return best(CHOICES, choosing=lambda: solver.choose(problem))["choosing"]


def _judged(rows: list[dict]) -> list[dict]:
    """Which are near the exact fit (or the best one, where that was too large), and how much slower."""
    target = next((row["left"] for row in rows if row["solver"] == "Exact"), None)
    target = min(row["left"] for row in rows) if target is None else target
    near = [row["seconds"] for row in rows if row["left"] <= NEAR * target]
    return [
        row
        | {
            "near": row["left"] <= NEAR * target,
            "ratio": row["seconds"] / min(near),
            "at most": AT_MOST if row["solver"] == "Auto" else None,
            "peak (MB)": peak_megabytes(),
        }
        for row in rows
    ]


def _solvers(problem: Problem) -> Iterator[sx.solvers.AbstractSolver]:
    """All that can be run within minutes; `Auto` is the first."""
    n = problem.x.shape[0]
    kernel = isinstance(problem.family, sx.KernelTranslates)
    yield sx.Auto()
    if n <= 10_000:
        yield sx.Exact()
    if not kernel or n <= 16_000:
        yield sx.ConjugateGradient(tolerance=TOLERANCE)
    if kernel:
        yield sx.Nystrom(800)
    if kernel and n > 1600:
        yield sx.Nystrom(1600)
    if n <= 1000:
        yield sx.Stochastic()


def take_times(
    solvers: list[sx.solvers.AbstractSolver], problem: Problem, rounds: int
) -> tuple[list[float], list[Solution]]:
    """The least CPU seconds of each, called in turns and compiled before, and the solutions."""
    key, least = jax.random.key(0), [float("inf")] * len(solvers)
    solutions = [solver.solve(problem, key) for solver in solvers]
    for _ in range(rounds):
        for at, solver in enumerate(solvers):
            start = time.process_time()
            jax.block_until_ready(solver.solve(problem, key).params)
            least[at] = min(least[at], time.process_time() - start)
    return least, solutions


def _left(solution: Solution, x: np.ndarray, score: np.ndarray, f: np.ndarray) -> float:
    """The share of the variance that is left on new draws, evaluated a few at a time."""
    parts = zip(np.array_split(x, 8), np.array_split(score, 8), strict=True)
    g = np.concatenate([np.asarray(solution.evaluate(*part)) for part in parts])
    return float(np.var(f - g) / np.var(f))
