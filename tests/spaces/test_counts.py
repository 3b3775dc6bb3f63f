"""Counts: Stein-Chen and birth-death operators by exact sums, known answers, audits and refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import steinax as sx
from spaces import discrete_targets as targets
from steinax._numerics import precision
from steinax.kernels._base import autodiff_stein
from steinax.spaces import BirthDeath, Lattice, SteinChen

COUNTS = sx.spaces.Counts()
RATE = np.array([2.0, 5.0])


def poisson_log_pmf(x):
    return jax.scipy.stats.poisson.logpmf(x, RATE).sum()


def poisson_sample(seed: int = 0, length: int = 250) -> sx.Sample:
    x = np.random.default_rng(seed).poisson(RATE, size=(4, length, 2)).astype(float)
    return sx.Sample(x, 1 - x / RATE, space=COUNTS)


class TestOperators:
    def test_birth_and_death_are_stein_chen_of_differences(self) -> None:
        with precision(np.float64):
            x, score = jnp.array([3.0, 0.0, 2.0]), jnp.array([-0.4, 1.0, 0.3])

            def v(x):
                return jnp.stack([jnp.sin(x).sum(), x.prod()])

            def steps(x):
                return (jax.vmap(v)(x + jnp.eye(3)) - v(x)).T

            np.testing.assert_allclose(
                BirthDeath()(v, x, score), SteinChen()(steps, x, score), 1e-12
            )

    def test_nothing_is_asked_below_zero(self) -> None:
        with precision(np.float64):
            x, score = jnp.zeros(1), jnp.ones(1)
            assert np.isfinite(BirthDeath()(lambda x: jnp.sqrt(x).sum(), x, score))
            assert np.isfinite(SteinChen()(jnp.sqrt, x, score))

    def test_the_kernel_in_closed_form_is_that_of_its_neighbours(self) -> None:
        target, kernel = targets.competing(), Lattice([1.5, 2.0])
        with precision(np.float64):
            x = jnp.asarray(target.draw(np.random.default_rng(0), 12))
            score = jnp.asarray(target.score(np.asarray(x)))
            for i in range(6):
                pair = (SteinChen(), x[i], score[i], x[-i], score[-i])
                np.testing.assert_allclose(
                    kernel.stein(*pair), autodiff_stein(kernel, *pair), 1e-10
                )


class TestKnownAnswers:
    def test_poisson_moments_are_exact(self) -> None:
        f = {
            "mean": lambda x: x[0],
            "square": lambda x: x[1] ** 2,
            "product": lambda x: x[0] * x[1],
        }
        est = sx.estimate(f, poisson_sample(), sx.Polynomial(2, operator=BirthDeath()))
        np.testing.assert_allclose(est.value, [2.0, 30.0, 10.0], atol=1e-10)

    def test_negative_binomial_moments_are_exact(self) -> None:
        target = targets.negative_binomial()
        family = sx.Polynomial(3, operator=BirthDeath())
        est = sx.estimate({"mean": "x", "square": lambda x: x[0] ** 2}, target.sample(0), family)
        exact = stats.nbinom(2.5, 0.4)
        np.testing.assert_allclose(est.value, [exact.mean(), exact.moment(2)], atol=1e-9)

    def test_large_counts_keep_their_digits(self) -> None:
        """Draws are not standardised, and the solver has to live with squares of thousands."""
        x = np.random.default_rng(0).poisson(4000.0, size=(4, 250, 1)).astype(float)
        sample = sx.Sample(x, 1 - x / 4000.0, space=COUNTS)
        est = sx.estimate({"x": "x", "square": lambda x: x[0] ** 2}, sample)
        np.testing.assert_allclose(est.value, [4000.0, 4000.0**2 + 4000.0], rtol=1e-9)

    def test_a_network_can_be_trained(self) -> None:
        family = sx.Network(8, 1, operator=SteinChen())
        est = sx.estimate("x", poisson_sample(), family)
        assert np.all(est.worth > 1.5)


class TestScores:
    def test_are_ratios_of_the_mass_function(self) -> None:
        sample = poisson_sample()
        found = COUNTS.scores(poisson_log_pmf, sample.draws)
        np.testing.assert_allclose(found, sample.scores, atol=1e-12)
        assert COUNTS.scores(poisson_log_pmf, sample.draws[0]).shape == sample.draws.shape[1:]

    def test_an_impossible_draw_is_named(self) -> None:
        with pytest.raises(ValueError, match=r"the first at \[5.0, 1.0\]"):
            COUNTS.scores(lambda x: jnp.where(x[0] > 4, -jnp.inf, 0.0), [[2.0, 3.0], [5.0, 1.0]])

    def test_a_log_mass_of_many_numbers_is_refused(self) -> None:
        with pytest.raises(ValueError, match="return one number"):
            COUNTS.scores(lambda x: -x, [[2.0, 3.0]])

    def test_a_log_mass_of_numpy_is_refused(self) -> None:
        with pytest.raises(ValueError, match="jax operations"):
            COUNTS.scores(lambda x: float(np.sum(np.log(x + 1))), [[2.0, 3.0]])


class TestAudit:
    """Right scores: once in 50,000 audits by design. Wrong ones are off by ten errors and more."""

    def test_right_scores_pass(self) -> None:
        assert all(sx.audit(poisson_sample(seed)).passed for seed in range(20))
        assert all(sx.audit(targets.competing().sample(seed)).passed for seed in range(20))

    @pytest.mark.parametrize(
        "wrong",
        [
            lambda x: 1 - (x + 1) / RATE,  # the ratio of the count above
            lambda x: x / RATE - 1,  # sign
            lambda x: 1 - x / (1.2 * RATE),  # another rate
            lambda x: 1 - x[..., ::-1] / RATE[::-1],  # order of columns
            lambda x: np.log(RATE) - np.log(x + 0.5),  # a gradient
        ],
        ids=["above", "sign", "rate", "order", "gradient"],
    )
    def test_wrong_scores_are_refused(self, wrong) -> None:
        sample = poisson_sample(length=500)
        report = sx.audit(sx.Sample(sample.draws, wrong(sample.draws), space=COUNTS))
        assert not report.passed

    def test_an_upper_end_is_refused(self) -> None:
        x = np.random.default_rng(0).binomial(4, 0.5, size=(4, 500, 1)).astype(float)
        sample = sx.Sample(x, 1 - x / (5 - x), space=COUNTS)
        assert not sx.audit(sample).passed


@pytest.mark.parametrize("value", [0.5, -1.0])
def test_draws_that_are_no_counts_are_refused(value: float) -> None:
    draws = np.ones((4, 10, 2))
    draws[1, 3, 1] = value
    with pytest.raises(
        ValueError, match=r"1 draws are not counts, first in column 1 .* whole numbers"
    ):
        sx.Sample(draws, draws, space=COUNTS)


def test_a_kernel_of_the_reals_is_refused() -> None:
    with pytest.raises(TypeError, match="the draws live on counts"):
        sx.estimate("x", poisson_sample(), sx.KernelTranslates())


def test_its_papers_are_cited() -> None:
    est = sx.estimate("x", poisson_sample(), sx.Polynomial(1, operator=BirthDeath()))
    keys = {one.key for one in sx.citations(est).references}
    assert {"chen1975poisson", "yang2018goodness"} <= keys
    assert "bresler2019stein" not in keys
