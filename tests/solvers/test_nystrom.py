"""Landmarks: the exact fit where every draw is one, an honest one where few are."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steinax as sx
import targets
from steinax._numerics import precision
from steinax.solvers import Problem, evaluate, prepare

pytestmark = pytest.mark.slow

KEY = jax.random.key(0)
KERNEL = sx.KernelTranslates(sx.kernels.SquaredExponential(1.5))
FOLDS = sx.CrossFit(4).boundaries(chains=4, length=50)
CASES = {
    "kernel": (KERNEL, sx.NativeNorm(1e-3)),
    "polynomial free + kernel": (sx.Polynomial(2) + KERNEL, (sx.NoPenalty(), sx.NativeNorm(1e-3))),
    "kernel, ridge": (KERNEL, sx.Ridge(1e-3)),
    "wide polynomial": (sx.Polynomial(2), sx.NativeNorm(1e-3)),
}


@pytest.fixture(autouse=True)
def double_precision():
    with precision(np.float64):
        yield


def _problem(family, penalty, dim: int = 3) -> Problem:
    sample = targets.banana(dim).sample(0, chains=4, length=50)
    f = {"a": lambda x: jnp.sin(x[0]), "b": lambda x: x[1] + 9}
    return prepare(sx.data.integrands(f, sample), sample, family, penalty, None)[0]


def _values(solution, problem: Problem) -> np.ndarray:
    g = evaluate(problem.family, solution.state, solution.params, problem.x, problem.score)
    return np.vstack([solution.intercept, g])


@pytest.mark.parametrize("name", CASES)
def test_with_every_draw_a_landmark_it_is_exact(name: str) -> None:
    problem = _problem(*CASES[name], dim=30 if name == "wide polynomial" else 3)
    ours, exact = (
        _values(solver.solve(problem, KEY), problem) for solver in (sx.Nystrom(200), sx.Exact())
    )
    np.testing.assert_allclose(ours, exact, rtol=0, atol=1e-6)


def test_is_the_family_centred_on_the_landmarks() -> None:
    problem = _problem(*CASES["kernel"])
    solution = sx.Nystrom(40).solve(problem, KEY)
    assert solution.state[0].shape == (40, 3)
    kernel = np.asarray(KERNEL.feature_matrix(solution.state, problem.x, problem.score))
    inner = np.asarray(KERNEL.gram(solution.state))
    f = np.asarray(problem.f - problem.f.mean(axis=0))
    columns = kernel - kernel.mean(axis=0)
    theta = np.linalg.solve(columns.T @ columns + 200 * 1e-3 * inner, columns.T @ f)
    np.testing.assert_allclose(kernel @ solution.params, kernel @ theta, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["kernel", "polynomial free + kernel"])
def test_cross_fitting_does_not_see_the_integrands_of_the_fold(name: str) -> None:
    """Changing f on one fold must not change the fit that leaves it out."""
    problem = _problem(*CASES[name])
    held = sx.Nystrom(60).crossfit(problem, FOLDS, KEY)
    start, stop = FOLDS[1]
    spoilt = problem.f.copy()
    spoilt[start:stop] += 1e3 * np.cos(problem.x[start:stop, :1])
    changed = Problem(
        problem.family, problem.penalties, problem.objective, problem.x, problem.score, spoilt
    )
    again = sx.Nystrom(60).crossfit(changed, FOLDS, KEY)
    g = problem.f[start:stop] - held.residual[start:stop]
    np.testing.assert_allclose(
        spoilt[start:stop] - again.residual[start:stop], g, rtol=0, atol=1e-6
    )
    np.testing.assert_allclose(held.intercepts[1], again.intercepts[1], rtol=0, atol=1e-6)


def _held_out_on(problem: Problem, index: np.ndarray, fold: tuple[int, int]) -> np.ndarray:
    """What a fit to the other folds, on the given draws as landmarks, leaves of f on one fold."""
    state = KERNEL.setup(problem.x[index], problem.score[index])
    kernel = np.asarray(KERNEL.feature_matrix(state, problem.x, problem.score))
    inside = np.zeros(len(kernel), bool)
    inside[slice(*fold)] = True
    f, columns = np.asarray(problem.f)[~inside], kernel[~inside] - kernel[~inside].mean(axis=0)
    inner = columns.T @ columns + len(f) * 1e-3 * np.asarray(KERNEL.gram(state))
    theta = np.linalg.solve(inner, columns.T @ (f - f.mean(axis=0)))
    return np.asarray(problem.f)[inside] - kernel[inside] @ theta


def test_cross_fitting_drops_the_landmarks_in_the_fold() -> None:
    """It is a fit on the landmarks outside of the fold, and not the one on all of them."""
    from steinax.solvers._nystrom import spread_out

    problem = _problem(*CASES["kernel"])
    held, index = sx.Nystrom(60).crossfit(problem, FOLDS, KEY), spread_out(problem.x, 60, KEY)
    for start, stop in FOLDS:
        outside = index[(index < start) | (index >= stop)]
        assert len(outside) < len(index)
        ours, wanted = held.residual[start:stop], _held_out_on(problem, outside, (start, stop))
        np.testing.assert_allclose(ours, wanted, rtol=0, atol=1e-6)
        assert np.max(np.abs(_held_out_on(problem, index, (start, stop)) - wanted)) > 1e-3


def test_cross_fitting_of_all_landmarks_is_that_of_exact() -> None:
    problem = _problem(*CASES["polynomial free + kernel"])
    ours, exact = (s.crossfit(problem, FOLDS, KEY) for s in (sx.Nystrom(200), sx.Exact()))
    np.testing.assert_allclose(ours.residual, exact.residual, rtol=0, atol=1e-6)
    np.testing.assert_allclose(ours.intercepts, exact.intercepts, rtol=0, atol=1e-6)


def test_landmarks_are_different_draws_spread_out() -> None:
    from steinax.solvers._nystrom import spread_out

    x = np.random.default_rng(0).normal(size=(2000, 2))
    index = spread_out(x, 100, KEY)
    assert len(np.unique(index)) == 100
    even = sx.Landmarks(100).choose(2000)

    def reach(chosen: np.ndarray) -> float:
        return np.mean(np.min(np.sum((x[:, None] - x[chosen]) ** 2, axis=-1), axis=1))

    assert reach(index) < 0.9 * reach(even)


def test_refuses_what_it_cannot_do() -> None:
    with pytest.raises(ValueError, match="at least one landmark"):
        sx.Nystrom(0)
    with pytest.raises(ValueError, match="Stochastic"):
        sx.Nystrom(10).solve(_problem(KERNEL, sx.MeanSquare(1e-2)), KEY)
    with pytest.raises(ValueError, match="preconditioner"):
        sx.ConjugateGradient(preconditioner=-1)


@pytest.mark.parametrize("dim", [5, 30])
def test_the_linear_part_is_a_preconditioner_of_polynomials(dim: int) -> None:
    """The same fit in fewer iterations, free (primal, 20 coefficients) and penalised (dual, 495)."""
    penalty = sx.NoPenalty() if dim == 5 else sx.NativeNorm(1e-3)
    problem = _problem(sx.Polynomial(2), penalty, dim)
    ours, plain = (
        sx.ConjugateGradient(tolerance=1e-8, preconditioner=count).solve(problem, KEY)
        for count in (None, 0)
    )
    exact = _values(sx.Exact().solve(problem, KEY), problem)
    np.testing.assert_allclose(_values(ours, problem), exact, rtol=0, atol=1e-5)
    taken = [int(s.note.split(", ")[1].split()[0]) for s in (ours, plain)]
    assert taken[0] < taken[1], taken


@pytest.mark.parametrize("family", [sx.Polynomial(2), sx.Polynomial(3)], ids=repr)
def test_leading_features_and_the_rest_are_all_of_them(family: sx.Polynomial) -> None:
    problem = _problem(family, sx.NativeNorm(1e-3))
    features = np.asarray(family.feature_matrix(None, problem.x, problem.score))
    leading, rest = family.products(None, problem.x, problem.score).leading()
    q = leading.shape[1]
    np.testing.assert_allclose(leading, features[:, :q])
    np.testing.assert_allclose(rest, np.mean(np.sum(features[:, q:] ** 2, axis=1)))


@pytest.mark.parametrize("count", [0, 30])
def test_preconditioned_conjugate_gradients_find_the_exact_fit(count: int) -> None:
    problem = _problem(*CASES["polynomial free + kernel"])
    solver = sx.ConjugateGradient(tolerance=1e-13, preconditioner=count)
    found, exact = (_values(s.solve(problem, KEY), problem) for s in (solver, sx.Exact()))
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-8)
