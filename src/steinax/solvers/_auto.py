"""Choose a solver by its estimated cost."""

from dataclasses import replace
from typing import NamedTuple

from .._show import counted
from .._types import Key
from ..families import AbstractLinearFamily
from ._base import AbstractSolver, Problem, Solution
from ._conjugate_gradient import KEPT_ROWS, ConjugateGradient, is_matrix_free
from ._exact import Exact, has_mean_square, not_quadratic, unknowns
from ._nystrom import Nystrom
from ._regression import Folds, HeldOut
from ._stochastic import Stochastic

# Times are modelled as operations + MAKE * entries computed + READ * entries read + CALL * calls, in units of
# operations of a matrix product; `python -m benchmarks.speed costs` measures constants and iterations.
MAKE = 425.0
READ = 34.0
CALL = 1.7e8
KERNEL_ITERATIONS = 35
POLYNOMIAL_ITERATIONS = 7


class Work(NamedTuple):
    """The amount of work of a solver: operations, matrix entries computed and read, and calls."""

    operations: float
    made: float = 0.0
    read: float = 0.0
    calls: float = 1.0

    @property
    def cost(self) -> float:
        """The estimated cost, in operations of a matrix product."""
        return self.operations + MAKE * self.made + READ * self.read + CALL * self.calls


def exact_work(n: int, dim: int, p: int) -> Work:
    """The work of one factorisation and its matrix, primal or dual, whichever is smaller."""
    if p + 1 > n:
        return Work(n**3 / 3 + 6.0 * n**2 * dim, made=n**2)
    return Work(n * p**2 + p**3 / 3, made=n * p)


def polynomial_work(n: int, dim: int, k: int, iterations: int = POLYNOMIAL_ITERATIONS) -> Work:
    """The work of matrix-free conjugate gradients on polynomials of degree two, preconditioner included."""
    base = n * dim**2 + dim**3 / 3
    return Work(base + (iterations + 1) * 4.0 * k * n * dim**2, read=2.0 * k * n * dim * iterations)


def kernel_work(n: int, dim: int, k: int, iterations: int = KERNEL_ITERATIONS) -> Work:
    """The work of conjugate gradients with a kernel matrix: matrix, preconditioner and iterations."""
    landmarks = 8 * n**0.5
    base = 6.0 * n**2 * dim + 4 * n * landmarks**2
    products = iterations * n * (n + 2 * landmarks)
    return Work(base + 2.0 * k * products, made=n**2, read=products)


FEW = 500  # unknowns up to which a factorisation costs no more than a call
TIE = 1.3  # costs within this factor count as equal, and the exact fit is taken
TOLERANCE = 0.01  # of conjugate gradients: the objective is within a factor 1 + 1e-4 of its minimum


class Auto(AbstractSolver):
    r"""Choose the solver by the size of the problem; the solution's note says which, and why if not `Exact`.

    With $n$ draws in $d$ dimensions, $p$ coefficients and $k$ integrands, the cheapest of these is taken
    (`python -m benchmarks.speed costs` measures the constants), and `Exact` where the costs are within a
    third of each other or there are no more than 500 unknowns:

    - `Exact`: $q^3 / 3$ operations for $q = \min(n, p)$, plus the cost of its matrix;
    - `ConjugateGradient`: about seven iterations, of $4 k n d^2$ operations, for polynomials of degree
      two; for kernels about 35, each reading the kernel matrix once, which is kept up to 16,384 draws;
    - `Nystrom`, beyond that, for kernels: $n M^2$ operations for 800 landmarks. It fits in memory, but
      is not close to the exact fit;
    - `Stochastic`, for families that are not linear in their parameters, and for losses or penalties that
      are not quadratic forms.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 100, 2))
    >>> sx.fit("x", sx.Sample(x, -x), sx.Polynomial(1), solver=Auto()).note
    'solved exactly: 2 coefficients, 400 draws'
    """

    def choose(
        self, problem: Problem, folds: int = 1, k: int | None = None
    ) -> tuple[AbstractSolver, str]:
        """Return the solver for a problem, and the reason for it.

        Args:
            problem: to be solved.
            folds: the number of folds, with one fit for each; 1 for a single fit to all draws.
            k: the number of integrands; that of the problem by default.
        """
        if not isinstance(problem.family, AbstractLinearFamily):
            return Stochastic(), "a family that is not linear"
        if (name := not_quadratic(problem)) is not None:
            return Stochastic(), f"{name}, not a quadratic form"
        n, dim = problem.x.shape
        p, _ = unknowns(problem)
        smallest = min(p, n)
        if has_mean_square(problem) or smallest <= FEW:
            return Exact(), counted(smallest, "unknown")
        matrix_free = is_matrix_free(problem)
        if not matrix_free and smallest > KEPT_ROWS:
            reason = "too many for a matrix of their pairs, so on landmarks, not exact"
            return Nystrom(), f"{smallest} unknowns, {reason}"
        exact = exact_work(n, dim, p).cost * (1 if folds == 1 else 2)
        work = polynomial_work if matrix_free else kernel_work
        iterative = folds * work(n, dim, problem.f.shape[1] if k is None else k).cost
        if (p < n and not matrix_free) or exact <= TIE * iterative:
            return Exact(), counted(smallest, "unknown")
        solver = ConjugateGradient(tolerance=TOLERANCE)
        return solver, f"{smallest} unknowns, fewer operations than to factorise"

    def references_for(self, problem: Problem) -> tuple[str, ...]:
        return self.choose(problem)[0].references_for(problem)

    def solve(self, problem: Problem, key: Key | None = None) -> Solution:
        solver, reason = self.choose(problem)
        solution = solver.solve(problem, key)
        return replace(solution, note=_noted(solver, reason, solution.note))

    def crossfit(self, problem: Problem, folds: Folds, key: Key | None = None) -> HeldOut:
        solver, reason = self.choose(problem, len(folds))
        held = solver.crossfit(problem, folds, key)
        return replace(held, note=_noted(solver, reason, held.note))


def _noted(solver: AbstractSolver, reason: str, note: str) -> str:
    """Add to a solver's note why it was chosen; the note of `Exact` is put in plain words instead."""
    if not isinstance(solver, Exact):
        return f"chosen for {reason}: {note}"
    plain = note.replace("exact, primal", "solved exactly")
    return plain.replace("exact, dual", "solved exactly in dual form")
