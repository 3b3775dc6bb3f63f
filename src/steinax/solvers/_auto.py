from dataclasses import replace

from .._types import Key
from ..families import AbstractLinearFamily
from ._base import AbstractSolver, HeldOut, Solution
from ._conjugate_gradient import ConjugateGradient
from ._exact import Exact
from ._linear_system import unknowns
from ._problem import Folds, Problem
from ._stochastic import Stochastic

EXACT_UP_TO = 5000  # unknowns, draws or coefficients: one factorisation takes about two seconds


class Auto(AbstractSolver):
    """The solver that fits the size of the problem; the solution's note says which and why.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 100, 2))
    >>> sx.fit("x", sx.Sample(x, -x), sx.Polynomial(1), solver=Auto()).note
    'chosen for 2 unknowns: exact, primal: 2 coefficients, 400 draws'
    """

    def choose(self, problem: Problem) -> tuple[AbstractSolver, str]:
        """The solver for a problem, and the reason."""
        if not isinstance(problem.family, AbstractLinearFamily):
            return Stochastic(), "not linear in its parameters"
        smallest = min(unknowns(problem)[0], problem.x.shape[0])
        if smallest <= EXACT_UP_TO:
            return Exact(), f"{smallest} unknowns"
        return ConjugateGradient(), f"{smallest} unknowns, too many to factorise"

    def solve(self, problem: Problem, key: Key) -> Solution:
        solver, why = self.choose(problem)
        solution = solver.solve(problem, key)
        return replace(solution, note=f"chosen for {why}: {solution.note}")

    def crossfit(self, problem: Problem, folds: Folds, key: Key) -> HeldOut:
        solver, why = self.choose(problem)
        held = solver.crossfit(problem, folds, key)
        return replace(held, note=f"chosen for {why}: {held.note}")
