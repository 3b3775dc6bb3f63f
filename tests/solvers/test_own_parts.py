"""Losses and penalties of one's own: every solver uses them, or says that it cannot."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steinax as sx
from steinax import checks
from steinax._numerics import precision
from steinax.solvers import prepare
from steinax.solvers._exact import linear_terms


class Huber(sx.objectives.AbstractObjective):
    """Squares up to a tenth of a standard deviation, absolute values beyond."""

    def __call__(self, residual, intercept):
        size = jnp.abs(residual - intercept)
        return jnp.mean(jnp.where(size < 0.1, size**2, 0.2 * size - 0.01), axis=0)


class OtherSquares(sx.LeastSquares):
    """A class that replaces the loss of a quadratic one."""

    def __call__(self, residual, intercept):
        return Huber()(residual, intercept)


class Nothing(sx.Ridge):
    """A class that replaces the penalty of a quadratic one, by none."""

    def __call__(self, family, state, params, values):
        return jnp.zeros(())


class Graded(sx.objectives.AbstractPenalty):
    """A quadratic form with a matrix of its own: later coefficients cost more."""

    is_quadratic = True
    strength: float = eqx.field(static=True, default=1e-3)

    def __call__(self, family, state, params, values):
        return self.strength * jnp.sum(params * (_graded(len(params)) @ params))

    def gram(self, family, state, dim):
        return _graded(family.size(state, dim))


def _graded(p: int) -> jax.Array:
    return jnp.diag(1.0 + jnp.arange(p)) + 0.5


X = np.random.default_rng(0).normal(size=(4, 100, 2))
SAMPLE = sx.Sample(X, -X)
F = {"sin": np.sin(2 * X[..., 0]) + X[..., 1] ** 2}
LINEAR = (sx.Exact(), sx.Exact(dual=True), sx.ConjugateGradient(), sx.Nystrom(20), sx.Sparse())
OWN = {
    "a loss": {"objective": Huber()},
    "a loss in place of squares": {"objective": OtherSquares()},
    "a penalty": {"penalty": Nothing(1e6)},
}


@pytest.mark.parametrize("own", OWN)
@pytest.mark.parametrize("solver", LINEAR, ids=repr)
def test_a_linear_solver_refuses_what_is_not_a_quadratic_form(solver, own: str) -> None:
    with pytest.raises(TypeError, match=r"quadratic form.*Stochastic"):
        sx.fit(F, SAMPLE, sx.Polynomial(2), solver=solver, **OWN[own])


@pytest.mark.parametrize("own", OWN)
def test_a_stream_refuses_it_too(own: str) -> None:
    stream = sx.Stream(lambda: SAMPLE.blocks(50), chains=4)
    with pytest.raises(TypeError, match=r"quadratic form.*in memory"):
        sx.estimate("x", stream, sx.Polynomial(2), **OWN[own])


def test_weights_refuse_a_penalty_that_is_not_a_quadratic_form() -> None:
    with pytest.raises(TypeError, match=r"Nothing.*NativeNorm"):
        sx.weigh(SAMPLE, sx.Polynomial(2), penalty=Nothing(1e6))


def test_auto_minimises_a_loss_that_is_not_a_quadratic_form() -> None:
    """A few outliers move least squares; absolute values hardly see them."""
    rng = np.random.default_rng(1)
    spikes = 100.0 * rng.normal(size=X.shape[:2]) * (rng.random(X.shape[:2]) < 0.02)
    f = {"f": X[..., 0] + spikes}
    clean = sx.fit({"f": X[..., 0]}, SAMPLE, sx.Polynomial(1)).params
    found, squares = (
        sx.fit(f, SAMPLE, sx.Polynomial(1), objective=one) for one in (Huber(), sx.LeastSquares())
    )
    assert found.note.startswith("chosen for Huber, not a quadratic form: stochastic")
    assert np.abs(found.params - clean).max() < 0.2 * np.abs(squares.params - clean).max()
    est = sx.estimate(f, SAMPLE, sx.Polynomial(1), objective=Huber(), split=sx.CrossFit(2))
    assert "stochastic" in est.note


def test_auto_uses_a_penalty_that_is_not_a_quadratic_form() -> None:
    """One that is always zero leaves a solution that a Ridge of the same strength would not."""
    f = {"f": X[..., 0]}
    own, ridge = (
        sx.fit(f, SAMPLE, sx.Polynomial(1), penalty=penalty)
        for penalty in (Nothing(1e6), sx.Ridge(1e6))
    )
    assert np.abs(own.params).max() > 0.5
    assert np.abs(ridge.params).max() < 1e-5


def test_the_contract_holds_for_parts_of_one_s_own() -> None:
    for part in (Huber(), Graded(), Nothing(1.0)):
        for _, check in checks.checks_for(part):
            check()


def _problem(family):
    return prepare(sx.data.integrands(F, SAMPLE), SAMPLE, family, Graded(), None)[0]


@pytest.mark.parametrize(
    "family", [sx.Polynomial(2), sx.KernelTranslates(sx.kernels.SquaredExponential(1.0))]
)
def test_a_quadratic_form_of_one_s_own_is_minimised(family) -> None:
    with precision(np.float64):
        problem = _problem(family)
        for solver in (*LINEAR[:3], sx.Nystrom(400), sx.Stochastic(epochs=5)):
            found = solver.solve(problem, jax.random.key(0))

            def loss(params, found=found):
                return problem.loss(found.state, params, found.intercept, slice(None))

            size = np.abs(jax.grad(loss)(jnp.zeros_like(found.params))).max()
            assert np.abs(jax.grad(loss)(found.params)).max() < 1e-6 * size, solver


class OnlyKernel(sx.Polynomial):
    """A polynomial whose features must not be computed."""

    def feature_matrix(self, state, x, score):
        raise AssertionError("the features were computed")


@pytest.mark.parametrize("penalty", [sx.Ridge(0.1), sx.NativeNorm(0.1)])
def test_polynomials_with_a_sum_of_squares_have_the_closed_form_of_their_kernel(penalty) -> None:
    """With 500 dimensions, 125,750 features would take ten times as long."""
    x = np.random.default_rng(0).normal(size=(2, 15, 4))
    sample = sx.Sample(x, -x)
    wanted = sx.data.integrands("x", sample)
    kernels = []
    for family in (OnlyKernel(2, weight=0.5), sx.Polynomial(2, weight=0.5)):
        problem, _ = prepare(wanted, sample, family, penalty, None)
        (term,) = linear_terms(problem)
        points = (problem.x, problem.score)
        kernels.append(term.kernel(*points, *points))
    features = sx.Polynomial(2, weight=0.5).feature_matrix(None, *points)
    np.testing.assert_allclose(kernels[0], features @ features.T / term.weight, rtol=1e-10)
    np.testing.assert_array_equal(*kernels)
