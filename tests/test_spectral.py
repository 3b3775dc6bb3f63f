r"""The spectral variance as an objective: known answers, agreement with least squares, refusals.

A Gaussian chain $x_{t+1} = \Phi x_t + \epsilon_t$ with symmetric $\Phi$ and covariance 1 has the asymptotic
covariance $S = (1 + \Phi)(1 - \Phi)^{-1}$. For $f = x_0$ and $g = \theta s_1 = -\theta x_1$ least squares
finds $\theta = 0$, and the least asymptotic variance is at $-S_{01} / S_{11}$.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steinax as sx
from steinax._precision import precision
from steinax.families import Subset
from steinax.objectives import SpectralVariance
from steinax.solvers import Problem
from steinax.solvers._segments import cut, of_chains

pytestmark = pytest.mark.slow

PHI = np.array([[0.7, 0.2], [0.2, 0.7]])
S = (np.eye(2) + PHI) @ np.linalg.inv(np.eye(2) - PHI)
KEY = jax.random.key(0)


@pytest.fixture(autouse=True)
def double_precision():
    with precision(np.float64):
        yield


def _chain(length: int, chains: int = 4, seed: int = 0) -> sx.Sample:
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(chains, length, 2)) @ np.linalg.cholesky(np.eye(2) - PHI @ PHI).T
    x = np.empty_like(noise)
    x[:, 0] = rng.normal(size=(chains, 2))
    for t in range(1, length):
        x[:, t] = x[:, t - 1] @ PHI + noise[:, t]
    return sx.Sample(x, -x)


def _slope(objective, length: int = 20_000) -> float:
    """By which multiple of x_1 the fit lessens x_0."""
    sample = _chain(length)
    g = sx.fit("x[0]", sample, Subset(sx.Polynomial(1), (1,)), objective=objective)
    return float(np.median(g(sample.x, sample.score)[:, 0] / sample.x[:, 1]))


def test_the_coefficient_of_least_asymptotic_variance_is_found() -> None:
    r"""$S_{01} / S_{11} = 0.69$: the scatter of the slope over seeds is 0.02, and the window's bias less."""
    best = S[0, 1] / S[1, 1]
    assert abs(_slope(SpectralVariance()) - best) < 0.1
    assert abs(_slope(sx.LeastSquares())) < 0.1 < best


def test_the_value_is_the_asymptotic_variance() -> None:
    """80,000 draws, windows of 100: a standard error of 4% and a bias of 3%; 20% is four of the first."""
    sample = _chain(20_000)
    found = SpectralVariance(100).along(
        jnp.asarray(sample.x[:, :1]), jnp.zeros(1), of_chains(4, 20_000)
    )
    np.testing.assert_allclose(found[0], S[0, 0], rtol=0.2)


def test_it_is_the_bartlett_window() -> None:
    rest, b = np.random.default_rng(0).normal(size=(30, 2)), 6
    segment = np.repeat([0, 1, 2], [3, 12, 15])
    s, t = np.indices((30, 30))
    window = np.maximum(0, 1 - np.abs(s - t) / b) * (segment[s] == segment[t])
    expected = np.diag(rest.T @ window @ rest) / 30
    found = SpectralVariance(b).along(jnp.asarray(rest), jnp.zeros(2), segment)
    np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize("dual", [True, False])
def test_width_one_is_least_squares(dual) -> None:
    sample, family = _chain(50), sx.Polynomial(2) + sx.KernelTranslates()
    f, solver = {"sin": np.sin(sample.draws)}, sx.Exact(dual=dual)
    one, other = (
        sx.fit(f, sample, family, objective=objective, solver=solver).intercept
        for objective in (SpectralVariance(1), sx.LeastSquares())
    )
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-12 if dual else 1e-9)


def _problem(penalty: sx.objectives.AbstractPenalty) -> Problem:
    sample = _chain(40, chains=2)
    x, score = jnp.asarray(sample.x), jnp.asarray(sample.score)
    f = jnp.sin(2 * x)
    return Problem(sx.Polynomial(3), (penalty,), SpectralVariance(5), x, score, f, of_chains(2, 40))


@pytest.mark.parametrize("dual", [True, False])
def test_the_exact_solution_is_where_the_gradient_vanishes(dual) -> None:
    problem = _problem(sx.NativeNorm(1e-2))
    found = sx.Exact(dual=dual).solve(problem, KEY)

    def loss(both):
        return problem.loss(None, both[0], both[1], slice(None))

    here, nowhere = (found.params, found.intercept), (0 * found.params, 0 * found.intercept)
    size = max(np.abs(leaf).max() for leaf in jax.tree.leaves(jax.grad(loss)(nowhere)))
    for leaf in jax.tree.leaves(jax.grad(loss)(here)):
        assert np.abs(leaf).max() < 1e-9 * size


def test_both_forms_agree() -> None:
    problem = _problem(sx.NativeNorm(1e-2))
    one, other = (sx.Exact(dual=dual).solve(problem, KEY) for dual in (True, False))
    np.testing.assert_allclose(one.params, other.params, rtol=0, atol=1e-8)
    np.testing.assert_allclose(one.intercept, other.intercept, rtol=0, atol=1e-9)


def test_a_window_does_not_straddle_what_is_left_out() -> None:
    index = np.r_[0:10, 20:60]
    assert cut(of_chains(2, 40), index).tolist() == [0] * 10 + [1] * 20 + [2] * 20
    taken = _problem(sx.NoPenalty()).take(index)
    whole = SpectralVariance(5).along(taken.f, jnp.zeros(2), taken.segment)
    parts = [
        SpectralVariance(5)(taken.f[a:b], jnp.zeros(2)) * (b - a)
        for a, b in ((0, 10), (10, 30), (30, 50))
    ]
    np.testing.assert_allclose(whole, sum(parts) / 50, rtol=1e-12)


def test_the_default_width_is_the_root_of_a_chain_s_length() -> None:
    assert SpectralVariance().prepared(400).reach == 20
    assert SpectralVariance(3).prepared(400).reach == 3


def test_networks_are_trained_on_runs_of_draws() -> None:
    est = sx.estimate(
        "x",
        _chain(250),
        sx.Network(8, 1),
        objective=SpectralVariance(8),
        solver=sx.Stochastic(epochs=5, batch_size=16),
        split=sx.HoldOut(0.5),
    )
    assert np.all(est.mcse < est.plain_mcse)


@pytest.mark.parametrize("solver", [sx.ConjugateGradient(), sx.Nystrom(20), sx.Stochastic()])
def test_solvers_that_know_no_order_refuse_it(solver) -> None:
    with pytest.raises(ValueError, match="Exact"):
        sx.fit("x", _chain(50), sx.Polynomial(1), objective=SpectralVariance(), solver=solver)


def test_other_refusals_say_what_to_do() -> None:
    with pytest.raises(ValueError, match="1 or more"):
        SpectralVariance(0)
    with pytest.raises(ValueError, match="in memory"):
        stream = sx.Stream(lambda: _chain(100).blocks(50), chains=4)
        sx.estimate("x", stream, sx.Polynomial(1), objective=SpectralVariance())


def test_windows_cost_more_than_they_give_for_kernels() -> None:
    """The benchmark, small: the page says that a kernel on antithetic chains does worse, by 0.3."""
    from benchmarks.beyond import spectral

    rows = spectral.measure(only="antithetic", rounds=10)
    assert [row["family"] for row in rows] == list(spectral.FAMILIES)
    assert rows[2]["better by, width 16"] < 1.0
