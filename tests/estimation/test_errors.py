"""Intervals, covariances and functions of several expectations."""

from typing import ClassVar

import jax.numpy as jnp
import numpy as np
import pytest

import steinax as sx
import targets

TARGET = targets.banana(2)
SAMPLE = TARGET.sample(0, chains=4, length=250)
FUNCTIONS = {
    "sine": lambda x: 2 + jnp.sin(2 * x[0]),
    "near": lambda x: 2 + jnp.sin(2 * x[0]) + 0.1 * jnp.cos(3 * x[1]),
    "difference": lambda x: -0.1 * jnp.cos(3 * x[1]),
    "zero": lambda x: jnp.sin(3 * x[0]),
}
FOUND = sx.estimate(FUNCTIONS, SAMPLE, sx.Polynomial(2))


class TestInterval:
    def test_is_value_and_students_quantile(self) -> None:
        low, high = FOUND.interval().T
        np.testing.assert_allclose((low + high) / 2, FOUND.value, rtol=1e-12)
        reach = (high - low) / 2 / FOUND.mcse
        assert np.all((reach > 1.96) & (reach < 2.1))

    def test_fewer_effective_draws_reach_further(self) -> None:
        short = sx.estimate(FUNCTIONS, TARGET.sample(0, chains=4, length=5), sx.Polynomial(1))
        low, high = short.interval().T
        assert np.all((high - low) / 2 / short.mcse > 2.2)

    def test_levels_nest(self) -> None:
        assert np.all(np.ptp(FOUND.interval(0.5), axis=1) < np.ptp(FOUND.interval(0.99), axis=1))

    def test_plain_interval_is_around_the_plain_value(self) -> None:
        np.testing.assert_allclose(FOUND.plain_interval().mean(axis=1), FOUND.plain_value)

    def test_of_one_integrand(self) -> None:
        np.testing.assert_array_equal(FOUND["near"].interval(), FOUND.interval()[1])

    @pytest.mark.parametrize("level", [0.0, 1.0, 95.0])
    def test_refuses_what_is_no_probability(self, level: float) -> None:
        with pytest.raises(ValueError, match=r"such as 0\.95"):
            FOUND.interval(level)


class TestCovariance:
    def test_diagonal_is_the_squared_errors(self) -> None:
        np.testing.assert_allclose(np.diag(FOUND.covariance), FOUND.mcse**2, rtol=1e-12)

    def test_is_symmetric_and_never_negative(self) -> None:
        np.testing.assert_array_equal(FOUND.covariance, FOUND.covariance.T)
        assert np.linalg.eigvalsh(FOUND.covariance).min() > -1e-12 * FOUND.mcse.max() ** 2

    def test_knows_what_moves_together(self) -> None:
        sine, near = FOUND.covariance[:2, :2] / np.outer(FOUND.mcse[:2], FOUND.mcse[:2])
        assert sine[1] == near[0] > 0.95


class TestDerived:
    def test_a_difference_has_the_error_of_the_integrand_it_is(self) -> None:
        """The series is the same, and only its error is found in another way: to a quarter."""
        one = FOUND.derived({"difference": lambda mean: mean["sine"] - mean["near"]})
        np.testing.assert_allclose(one.value[0], FOUND["difference"].value, atol=1e-12)
        assert abs(one.mcse[0] / FOUND["difference"].mcse - 1) < 0.25
        assert one.mcse[0] < FOUND["sine"].mcse / 3
        assert one.names == ("difference",)

    def test_a_ratio_of_what_moves_together_is_sure(self) -> None:
        ratio = FOUND.derived({"ratio": lambda mean: mean["near"] / mean["sine"]})
        np.testing.assert_allclose(ratio.value[0], FOUND.value[1] / FOUND.value[0], rtol=1e-12)
        assert ratio.mcse[0] < FOUND["near"].mcse / FOUND.value[0] / 3

    def test_one_that_may_divide_by_zero_has_no_error_and_says_so(self) -> None:
        found = FOUND.derived({"wild": lambda mean: 1 / mean["zero"]})
        assert np.isnan(found.mcse[0])
        assert "wild is too far from linear" in found.reason

    def test_of_one_expectation_scales_its_error(self) -> None:
        twice = FOUND.derived({"twice": lambda mean: 2 * mean["sine"]})
        np.testing.assert_allclose(twice.mcse[0], 2 * FOUND["sine"].mcse, rtol=1e-12)
        np.testing.assert_allclose(twice.ess[0], FOUND["sine"].ess)


def test_chains_that_disagree_are_charged_for_it() -> None:
    """Each chain is alike within, but they lie apart: no error within chains can tell."""
    series = np.random.default_rng(0).normal(size=(4, 1000, 1)) * 1e-3
    series += np.arange(4.0)[:, None, None]
    from steinax.chains import controlled_statistics

    spread = np.arange(4.0).std(ddof=1) / 2
    assert controlled_statistics(series, series, np.zeros(1)).mcse[0] > spread / 2


def test_t_intervals_cover_where_normal_ones_do_not() -> None:
    """2,000 autoregressive series (0.9), 4 x 50 draws: 94 to 97.5% against less than 94%."""
    rng = np.random.default_rng(0)
    series = rng.normal(size=(4, 50, 2000))
    for t in range(1, 50):
        series[:, t] = 0.9 * series[:, t - 1] + np.sqrt(1 - 0.81) * series[:, t]
    found = sx.chains.chain_statistics(series)
    from steinax.chains import t_quantile

    z = np.abs(found.mean / found.mcse)
    assert np.mean(z < 1.96) < 0.94
    assert 0.94 < np.mean(z < t_quantile(0.95, found.freedom)) < 0.975


class TestEventsWithOneOutcome:
    """An event that no draw shows, or every draw, has no standard error: 0 would be wrong."""

    X = np.random.default_rng(0).normal(size=(4, 250, 2))
    EVENTS: ClassVar = {"never": lambda x: x[0] > 9, "always": lambda x: x[0] < 9, "x": "x"}

    def test_estimate(self) -> None:
        found = sx.estimate(self.EVENTS, sx.Sample(self.X, -self.X))
        assert found.value[:2].tolist() == [0, 1]
        assert np.isnan(found.mcse[:2]).all() and np.isnan(found.plain_mcse[:2]).all()
        assert np.isnan(found.interval()[:2]).all()
        assert np.isfinite(found.mcse[2:]).all()
        assert found.reason is not None
        assert found.reason.startswith(
            "all draws of never, always are equal, 0 or 1. If it is an event, its probability"
        )
        assert "no standard error: all draws of never, always" in " ".join(repr(found).split())

    def test_other_constants_have_none_to_report(self) -> None:
        found = sx.estimate(lambda x: 2.0 + 0 * x[0], sx.Sample(self.X, -self.X))
        assert found.mcse[0] < 1e-14 and found.reason is None

    def test_weights(self) -> None:
        found = sx.weigh(sx.Sample(self.X, -self.X)).probability({"never": lambda x: x[0] > 9})
        assert np.isnan(found.mcse).all() and found.reason is not None

    def test_many(self) -> None:
        batch = sx.Batch(self.X[None], -self.X[None])
        found = sx.estimate_many({"never": lambda x: x[0] > 9, "x": "x"}, batch)
        assert np.isnan(found.mcse[0, 0]) and np.isfinite(found.mcse[0, 1:]).all()

    def test_variables_of_the_model_may_be_constants(self) -> None:
        factor = np.zeros((4, 250, 2, 2))
        factor[..., 0, 0], factor[..., 1, :] = 1.0, self.X
        sample = sx.from_arrays(self.X, -self.X, variables={"factor": factor})
        found = sx.estimate("factor", sample)
        assert found.value[:2].tolist() == [1, 0] and found.reason is None
        assert np.all(found.mcse < 1)

    def test_a_run_goes_on_until_the_event_is_seen(self) -> None:
        batches = [
            sx.Sample(self.X[:, i : i + 50], -self.X[:, i : i + 50]) for i in range(0, 250, 50)
        ]
        found = sx.until(batches, {"never": lambda x: x[0] > 9}, 0.01, unit="absolute")
        assert found.reason == "ended" and not found.precise
