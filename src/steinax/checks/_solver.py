"""Laws of objectives, penalties and solvers."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np

from ..families import Polynomial
from ..objectives import (
    AbstractObjective,
    AbstractPenalty,
    LeastSquares,
    MeanSquare,
    NoPenalty,
    Ridge,
)
from ..solvers import AbstractSolver, Folds, Problem
from ._check import Law, array_leaves, expect, law, nothing_changes, same_bits
from ._laws import assert_close, points, random_params, skewed


def _residual() -> jax.Array:
    return jnp.asarray(np.random.default_rng(0).normal(size=(40, 3)))


@law("give one loss per integrand, zero where f - g is the constant c on every draw.")
def is_zero_for_a_perfect_fit(objective: AbstractObjective) -> None:
    """The loss is zero for a constant residual and positive otherwise."""
    c = jnp.array([1.0, -2.0, 3.0])
    perfect = objective(jnp.broadcast_to(c, (40, 3)), c)
    expect(perfect.shape == (3,), f"3 integrands give a loss of shape {perfect.shape}")
    expect(np.all(np.abs(perfect) <= 1e-12), f"a perfect fit has a loss of {perfect}")
    loss = objective(_residual(), jnp.mean(_residual(), axis=0))
    expect(np.all(loss > 0), f"a fit that is not perfect has a loss of {loss}")


@law("average over draws: their order and other integrands must not matter.")
def treats_draws_and_integrands_alike(objective: AbstractObjective) -> None:
    """Losses do not depend on the order of draws or of integrands."""
    residual, c = _residual(), jnp.array([0.1, 0.2, 0.3])
    loss, order = objective(residual, c), np.random.default_rng(1).permutation(40)
    assert_close(objective(residual[order], c), loss)
    assert_close(objective(residual[:, ::-1], c[::-1]), loss[::-1])


@law("the loss has a finite gradient: write it with jax.numpy.")
def can_be_minimised(objective: AbstractObjective) -> None:
    """The loss has a finite gradient, which solvers need."""
    gradient = jax.jit(jax.grad(lambda r: jnp.sum(objective(r, jnp.zeros(3)))))(_residual())
    expect(np.all(np.isfinite(gradient)), "the gradient is not finite")


@law("with `is_quadratic`, the loss times `penalty_factor` is the mean of (r - c)^2.")
def is_the_quadratic_form_it_says(objective: AbstractObjective) -> None:
    """A quadratic loss times `penalty_factor` is the mean of (r - c)^2, as linear solvers assume."""
    if not objective.is_quadratic:
        return
    factor = objective.penalty_factor(40)
    expect(np.isfinite(factor) and factor > 0, f"penalty_factor(40) is {factor}")
    residual = _residual()
    c = jnp.mean(residual, axis=0)
    assert_close(objective(residual, c) * factor, jnp.mean((residual - c) ** 2, axis=0))


def _penalised(penalty: AbstractPenalty) -> Callable[[object], jax.Array]:
    """Return the penalty as a function of the parameters of a polynomial."""
    x, score = points(skewed(2), 4, 30)
    family = Polynomial(2)

    def value(params):
        values = family.apply(None, params, x, score)
        return jnp.sum(penalty(family, None, params, values))

    return value


def _params() -> jax.Array:
    return random_params(Polynomial(2), None, jnp.zeros((2, 2)))


@law("give a penalty of zero at zero parameters, and of zero or more elsewhere.")
def is_zero_at_zero(penalty: AbstractPenalty) -> None:
    """The penalty is zero at zero parameters, which are plain Monte Carlo, and never negative."""
    value, params = _penalised(penalty), _params()
    expect(
        abs(value(0 * params)) <= 1e-300, f"the penalty of zero parameters is {value(0 * params)}"
    )
    expect(value(params) >= 0, f"the penalty of some parameters is {value(params)}")


@law("with `is_quadratic`, it is `strength` times the quadratic form of `gram`, or of g.")
def is_the_form_it_says(penalty: AbstractPenalty) -> None:
    """A quadratic penalty is the form that `strength` and `gram` define, as linear solvers assume."""
    if not penalty.is_quadratic:
        return
    value, params = _penalised(penalty), _params()
    assert_close(value(2 * params), 4 * value(params))
    assert_close(value(-params), value(params))
    if isinstance(penalty, MeanSquare):
        return
    gram = penalty.gram(Polynomial(2), None, 2)
    if gram is not None:
        expect(bool(np.linalg.eigvalsh(gram).min() > 0), "`gram` is not positive definite")
    square = params**2 if gram is None else params * (gram @ params)
    assert_close(value(params), jnp.sum(penalty.strength * square))


@law("write it with jax.numpy, for any parameters.")
def has_a_gradient(penalty: AbstractPenalty) -> None:
    """The compiled penalty has a finite gradient."""
    gradient = jax.jit(jax.grad(_penalised(penalty)))(_params())
    expect(np.all(np.isfinite(gradient)), "the gradient is not finite")


@law("with `is_quadratic`, `strength` is a number of zero or more.")
def has_a_strength(penalty: AbstractPenalty) -> None:
    """A quadratic penalty has a finite `strength` of zero or more, which linear solvers read."""
    if not penalty.is_quadratic:
        return
    strength = float(penalty.strength)
    expect(np.isfinite(strength) and strength >= 0, f"the strength is {strength}")


OBJECTIVE_LAWS: tuple[Law, ...] = (
    is_zero_for_a_perfect_fit,
    treats_draws_and_integrands_alike,
    can_be_minimised,
    is_the_quadratic_form_it_says,
)
PENALTY_LAWS: tuple[Law, ...] = (
    is_zero_at_zero,
    is_the_form_it_says,
    has_a_gradient,
    has_a_strength,
)


DRAWS = 60
FOLDS: Folds = ((0, 20), (20, 40), (40, 60))


@dataclass(frozen=True)
class SolverCase:
    """A solver, and the largest distance from the best fit, in standard deviations of f."""

    solver: AbstractSolver
    tolerance: float = 1e-6

    def solve(self, problem: Problem):
        """Solve the problem with a fixed key."""
        return self.solver.solve(problem, jax.random.key(1))

    def held_out(self, problem: Problem) -> np.ndarray:
        """Compute f - g on every draw, cross-fitted over three folds."""
        return np.asarray(self.solver.crossfit(problem, FOLDS, jax.random.key(1)).residual)


def problem(penalised: bool = False) -> Problem:
    """Return a problem of two integrands outside the span of the family, on draws of a skewed target."""
    target = skewed(2)
    x = target.draw(np.random.default_rng(2), DRAWS)
    f = np.stack([np.sin(x[:, 0]), np.tanh(x[:, 1]) + x[:, 0] ** 3 / 5], axis=1)
    scale = x.std(axis=0)
    x, score = (x - x.mean(axis=0)) / scale, target.score(x) * scale
    penalty = Ridge(1e-2) if penalised else NoPenalty()
    arrays = (jnp.asarray(x), jnp.asarray(score), jnp.asarray(f))
    return Problem(Polynomial(2), (penalty,), LeastSquares(), *arrays)


def least_squares(given: Problem, kept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute the intercept and f - g of the least-squares fit by NumPy alone.

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
    coef = np.zeros((1 + p, f.shape[1]))
    for i, used in enumerate(np.concatenate([np.ones((1, f.shape[1]), bool), kept]).T):
        coef[used, i] = np.linalg.lstsq(rows[:, used], f[:, i])[0]
    return coef[0], np.asarray(given.f) - features @ coef[1:]


@law(
    "minimise the mean square of f - g - c plus the penalty; run longer, or give a larger tolerance."
)
def finds_the_least_squares_fit(case: SolverCase) -> None:
    """The fit equals NumPy's least squares, with and without a penalty.

    A solver that selects coefficients is compared with the best fit of those it keeps.
    """
    for penalised in (False, True):
        given = problem(penalised)
        solution = case.solve(given)
        params = np.asarray(solution.params)
        kept = params != 0 if case.solver.selects else np.ones(params.shape, bool)
        intercept, residual = least_squares(given, kept)
        values = np.asarray(solution.evaluate(given.x, given.score))
        scale = np.asarray(given.f).std(axis=0)
        off = max(
            np.max(np.abs(np.asarray(solution.intercept) - intercept) / scale),
            np.max(np.abs(np.asarray(given.f) - values - residual) / scale),
        )
        expect(
            off <= case.tolerance, f"the fit is {off:.1e} standard deviations of f from the best"
        )


@law("take random numbers from the key, and keep nothing between calls.")
def gives_the_same_bits_twice(case: SolverCase) -> None:
    """Two runs with one key give the same solution, to the bit, and change no global setting."""
    with nothing_changes():
        first, second = case.solve(problem()), case.solve(problem())
    expect(same_bits(first.params, second.params), "the same problem and key gave two solutions")
    expect(
        same_bits(first.intercept, second.intercept), "the same problem and key gave two intercepts"
    )


@law("copy what you change: the problem belongs to the caller.")
def leaves_the_problem_alone(case: SolverCase) -> None:
    """The solver changes no array of the problem."""
    given = problem()
    writable = _writable(given)
    case.solve(writable)
    expect(
        same_bits(array_leaves(given), array_leaves(writable)), "it wrote into the problem's arrays"
    )


def _writable(given: Problem) -> Problem:
    """Copy the arrays of a problem to writable NumPy arrays."""
    x, score, f = (np.array(array) for array in (given.x, given.score, given.f))
    return replace(given, x=x, score=score, f=f)


@law("fit each column of f by itself: integrands share nothing but the draws.")
def integrands_do_not_know_each_other(case: SolverCase) -> None:
    """The fit of an integrand does not depend on the other integrands."""
    given = problem()
    alone = replace(given, f=given.f[:, 1:])
    together = np.asarray(case.solve(given).intercept)[1]
    off = abs(together - float(np.asarray(case.solve(alone).intercept)[0])) / float(
        given.f[:, 1].std()
    )
    expect(
        off <= case.tolerance, f"next to another integrand the intercept moves by {off:.1e} sd of f"
    )


@law("fit to the draws of the other folds only, as the default `crossfit` of AbstractSolver does.")
def crossfit_holds_out_each_fold(case: SolverCase) -> None:
    """Values of f on a fold do not change g on that fold."""
    given, before = problem(), case.held_out(problem())
    expect(before.shape == given.f.shape, f"f - g has shape {before.shape}, f {given.f.shape}")
    for start, stop in FOLDS:
        change = np.zeros(given.f.shape)
        change[start:stop] = np.random.default_rng(3).normal(size=(stop - start, 2))
        moved = case.held_out(replace(given, f=given.f + change))
        off = np.max(np.abs(moved - before - change)[start:stop])
        expect(off <= 1e-9, f"g on draws {start} to {stop} changes by {off:.1e} with f on them")


@law("let `crossfit` give what `solve` gives on the other folds, to the tolerance.")
def crossfit_is_refitting(case: SolverCase) -> None:
    """A shortcut for cross-fitting gives the same residuals as refitting for each fold."""
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
