from dataclasses import replace

from .._types import Key
from ..families import AbstractLinearFamily
from ._base import AbstractSolver, HeldOut, Solution
from ._conjugate_gradient import KEPT, ConjugateGradient, is_matrix_free
from ._costs import conjugate_gradient_cost, exact_cost
from ._exact import Exact
from ._linear_system import has_mean_square, unknowns
from ._nystrom import Nystrom
from ._problem import Folds, Problem
from ._stochastic import Stochastic

TOLERANCE = 0.01  # of conjugate gradients: within a ten-thousandth of the least objective


class Auto(AbstractSolver):
    r"""The solver that fits the size of the problem; the solution's note says which and why.

    With $n$ draws in $d$ dimensions, $p$ coefficients and $k$ integrands, the cheaper of these is taken
    (`docs/scale.md` has the constants):

    - `Exact`: $q^3 / 3$ operations for $q = \min(n, p)$, and what its matrix costs;
    - `ConjugateGradient`: 25 iterations, of $4 k n d^2$ operations for polynomials of degree two and
      one reading of the kernel matrix for kernels, which it keeps up to 16,384 draws;
    - `Nystrom`, beyond that, for kernels: $n M^2$ operations for 800 landmarks;
    - `Stochastic`, for what is not linear in its parameters.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 100, 2))
    >>> sx.fit("x", sx.Sample(x, -x), sx.Polynomial(1), solver=Auto()).note
    'chosen for 2 unknowns: exact, primal: 2 coefficients, 400 draws'
    """

    def choose(self, problem: Problem, folds: int = 1) -> tuple[AbstractSolver, str]:
        """The solver for a problem that is fitted to all folds but one in turn, and the reason."""
        if not isinstance(problem.family, AbstractLinearFamily):
            return Stochastic(), "not linear in its parameters"
        n, dim = problem.x.shape
        p, _ = unknowns(problem)
        smallest = min(p, n)
        if has_mean_square(problem):
            return Exact(), f"{smallest} unknowns"
        matrix_free = is_matrix_free(problem.family)
        if not matrix_free and smallest > KEPT:
            return Nystrom(), f"{smallest} unknowns, too many for a matrix of their pairs"
        exact = exact_cost(n, dim, p) * (1 if folds == 1 else 2)
        iterative = folds * conjugate_gradient_cost(n, dim, problem.f.shape[1], matrix_free)
        if (p < n and not matrix_free) or exact <= iterative:
            return Exact(), f"{smallest} unknowns"
        solver = ConjugateGradient(tolerance=TOLERANCE)
        return solver, f"{smallest} unknowns, fewer operations than to factorise"

    def solve(self, problem: Problem, key: Key) -> Solution:
        solver, why = self.choose(problem)
        solution = solver.solve(problem, key)
        return replace(solution, note=f"chosen for {why}: {solution.note}")

    def crossfit(self, problem: Problem, folds: Folds, key: Key) -> HeldOut:
        solver, why = self.choose(problem, len(folds))
        held = solver.crossfit(problem, folds, key)
        return replace(held, note=f"chosen for {why}: {held.note}")
