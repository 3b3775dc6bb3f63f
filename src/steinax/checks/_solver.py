from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np

from ..families import Polynomial
from ..objectives import LeastSquares, NoPenalty, Ridge
from ..solvers import AbstractSolver, Folds, Problem
from ._check import Law, expect, law
from ._laws import assert_close
from ._settings import leaves, nothing_changes, same_bits
from ._targets import skewed

DRAWS = 60
FOLDS: Folds = ((0, 20), (20, 40), (40, 60))


@dataclass(frozen=True)
class SolverCase:
    """A solver, and how near to the minimum it must come, in standard deviations of f."""

    solver: AbstractSolver
    tolerance: float = 1e-6

    def solve(self, problem: Problem):
        """The solution, from a fixed key."""
        return self.solver.solve(problem, jax.random.key(1))

    def held_out(self, problem: Problem) -> np.ndarray:
        """f - g on every draw, cross-fitted over three folds."""
        return np.asarray(self.solver.crossfit(problem, FOLDS, jax.random.key(1)).residual)


def problem(penalised: bool = False) -> Problem:
    """Two integrands that no polynomial of degree 2 spans, on draws of a skewed target."""
    target = skewed(2)
    x = target.draw(np.random.default_rng(2), DRAWS)
    f = np.stack([np.sin(x[:, 0]), np.tanh(x[:, 1]) + x[:, 0] ** 3 / 5], axis=1)
    scale = x.std(axis=0)
    x, score = (x - x.mean(axis=0)) / scale, target.score(x) * scale
    penalty = Ridge(1e-2) if penalised else NoPenalty()
    arrays = (jnp.asarray(x), jnp.asarray(score), jnp.asarray(f))
    return Problem(Polynomial(2), (penalty,), LeastSquares(), *arrays)


def least_squares(given: Problem, kept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The intercept and f - g of the minimiser, by NumPy alone.

    Args:
        given: the problem.
        kept: which coefficients may differ from zero, (p, k).
    """
    features = np.asarray(given.family.feature_matrix(None, given.x, given.score))  # type: ignore
    n, p = features.shape
    strength = float(given.penalties[0].strength) * n
    rows = np.block(
        [[np.ones((n, 1)), features], [np.zeros((p, 1)), np.sqrt(strength) * np.eye(p)]]
    )
    f = np.concatenate([np.asarray(given.f), np.zeros((p, given.f.shape[1]))])
    solved = np.zeros((1 + p, f.shape[1]))
    for i, own in enumerate(np.concatenate([np.ones((1, f.shape[1]), bool), kept]).T):
        solved[own, i] = np.linalg.lstsq(rows[:, own], f[:, i])[0]
    return solved[0], np.asarray(given.f) - features @ solved[1:]


@law(
    "minimise the mean square of f - g - c plus the penalty; run longer, or give a looser tolerance."
)
def finds_the_least_squares_fit(case: SolverCase) -> None:
    """With a penalty and without, against NumPy's least squares.

    A solver that selects coefficients is held to the best fit among those that it keeps.
    """
    for penalised in (False, True):
        given = problem(penalised)
        found = case.solve(given)
        params = np.asarray(found.params)
        kept = params != 0 if case.solver.selects else np.ones(params.shape, bool)
        intercept, rest = least_squares(given, kept)
        values = np.asarray(found.evaluate(given.x, given.score))
        scale = np.asarray(given.f).std(axis=0)
        off = max(
            np.max(np.abs(np.asarray(found.intercept) - intercept) / scale),
            np.max(np.abs(np.asarray(given.f) - values - rest) / scale),
        )
        expect(
            off <= case.tolerance, f"the fit is {off:.1e} standard deviations of f from the best"
        )


@law("take random numbers from the key, and keep nothing between calls.")
def gives_the_same_bits_twice(case: SolverCase) -> None:
    """One key, one solution; and no setting changed."""
    with nothing_changes():
        one, other = case.solve(problem()), case.solve(problem())
    expect(same_bits(one.params, other.params), "the same problem and key gave two solutions")
    expect(same_bits(one.intercept, other.intercept), "and two intercepts")


@law("leave the problem as it is.")
def leaves_the_problem_alone(case: SolverCase) -> None:
    """No array of the problem is changed."""
    given = problem()
    writable = _writable(given)
    case.solve(writable)
    expect(same_bits(leaves(given), leaves(writable)), "it wrote into the problem's arrays")


def _writable(given: Problem) -> Problem:
    """The same problem with NumPy arrays, which can be written to."""
    x, score, f = (np.array(array) for array in (given.x, given.score, given.f))
    return replace(given, x=x, score=score, f=f)


@law("integrands share the draws, nothing else: fit each column by itself.")
def integrands_do_not_know_each_other(case: SolverCase) -> None:
    """One integrand alone is fitted as among others."""
    given = problem()
    alone = replace(given, f=given.f[:, 1:])
    together = np.asarray(case.solve(given).intercept)[1]
    off = abs(together - float(np.asarray(case.solve(alone).intercept)[0])) / float(
        given.f[:, 1].std()
    )
    expect(
        off <= case.tolerance, f"beside another integrand the intercept moves by {off:.1e} sd of f"
    )


@law("fit to the draws of other folds only; the default `crossfit` of AbstractSolver does.")
def crossfit_holds_out_each_fold(case: SolverCase) -> None:
    """What f is on a fold does not change g there."""
    given, before = problem(), case.held_out(problem())
    expect(before.shape == given.f.shape, f"f - g has shape {before.shape}, f {given.f.shape}")
    for start, stop in FOLDS:
        change = np.zeros(given.f.shape)
        change[start:stop] = np.random.default_rng(3).normal(size=(stop - start, 2))
        moved = case.held_out(replace(given, f=given.f + change))
        off = np.max(np.abs(moved - before - change)[start:stop])
        expect(off <= 1e-9, f"g on draws {start} to {stop} changes by {off:.1e} with f on them")


@law("let `crossfit` be what `solve` gives on the other folds, to the tolerance.")
def crossfit_is_refitting(case: SolverCase) -> None:
    """A shortcut for cross-fitting gives what fitting anew gives."""
    given = problem()
    default = AbstractSolver.crossfit(case.solver, given, FOLDS, jax.random.key(1))
    assert_close(case.held_out(given), np.asarray(default.residual), max(case.tolerance, 1e-9))


SOLVER_LAWS: tuple[Law, ...] = (
    finds_the_least_squares_fit,
    gives_the_same_bits_twice,
    leaves_the_problem_alone,
    integrands_do_not_know_each_other,
    crossfit_holds_out_each_fold,
    crossfit_is_refitting,
)
