"""Means, errors, sample sizes and R-hat are ArviZ's, but for a floor where ArviZ has no answer."""

import numpy as np
import pytest
from arviz_stats.base import array_stats
from scipy.stats import chi2, kurtosis

import steinax as sx

EPS = np.finfo(np.float64).eps


def _autoregressive(coefficient: float, seed: int = 0, shape=(4, 300, 3)) -> np.ndarray:
    noise = np.random.default_rng(seed).normal(size=shape)
    series = noise.copy()
    for i in range(1, shape[1]):
        series[:, i] = coefficient * series[:, i - 1] + noise[:, i]
    return series


def _swinging(shape: tuple[int, int, int]) -> np.ndarray:
    """Two draws above, two below, and a little noise."""
    swing = np.resize([1.0, 1.0, -1.0, -1.0], shape[1])[:, None]
    return swing + 0.1 * np.random.default_rng(0).normal(size=shape)


@pytest.mark.parametrize("coefficient", [0.0, 0.9, -0.5])
def test_equals_arviz(coefficient: float) -> None:
    """Series by series, as ArviZ's own tables are made."""
    series = _autoregressive(coefficient) + 5.0
    found = sx.chains.chain_statistics(series)
    np.testing.assert_allclose(found.mean, series.mean((0, 1)), rtol=1e-14)
    for k in range(series.shape[-1]):
        one = series[..., k]
        np.testing.assert_allclose(found.mcse[k], array_stats.mcse(one, method="mean"), rtol=1e-12)
        np.testing.assert_allclose(found.ess[k], array_stats.ess(one, method="mean"), rtol=1e-12)
        np.testing.assert_allclose(found.rhat[k], array_stats.rhat(one, method="split"), rtol=1e-12)


def test_many_series_equal_arviz(monkeypatch: pytest.MonkeyPatch) -> None:
    """In blocks of a few series, the last of them narrower."""
    monkeypatch.setattr("steinax.chains._statistics.NUMBERS", 4 * 100 * 3)
    series = _autoregressive(0.6, shape=(4, 100, 10)) * np.logspace(-6, 6, 10)
    found = sx.chains.chain_statistics(series)
    for k in range(10):
        one = series[..., k]
        expected = array_stats.ess(one / np.ptp(one), method="mean")
        np.testing.assert_allclose(found.ess[k], expected, rtol=1e-9)
        error = one.std(ddof=1) / np.sqrt(expected)
        np.testing.assert_allclose(found.mcse[k], error, rtol=1e-9)


def test_chains_of_three_draws_have_no_error() -> None:
    found = sx.chains.chain_statistics(_autoregressive(0.0, shape=(4, 3, 2)))
    assert np.isnan(found.mcse).all()
    assert np.isfinite(found.mean).all()


@pytest.mark.parametrize("coefficient", [0.0, 0.8, -0.5])
def test_error_is_that_of_theory(coefficient: float) -> None:
    """sd sqrt((1 + a) / (1 - a) / n) for an autoregressive series, to a quarter of it."""
    series = _autoregressive(coefficient, shape=(4, 5000, 1))
    sd = 1 / np.sqrt(1 - coefficient**2)
    expected = sd * np.sqrt((1 + coefficient) / (1 - coefficient) / 20_000)
    assert abs(sx.chains.chain_statistics(series).mcse[0] / expected - 1) < 0.25


class TestFloor:
    @pytest.mark.parametrize("value", [0.0, 1.0, -1e6])
    def test_a_constant_series_has_an_error_that_is_small_and_not_zero(self, value: float) -> None:
        found = sx.chains.chain_statistics(np.full((4, 100, 1), value))
        assert found.mean[0] == value
        assert 0 < found.mcse[0] <= 100 * EPS * max(abs(value), 1e-290)
        assert found.ess[0] == 400
        assert found.rhat[0] == 1.0

    def test_rounding_error_alone_counts_as_constant(self) -> None:
        series = 1.0 + EPS * np.random.default_rng(0).integers(-1, 2, size=(4, 100, 1))
        found = sx.chains.chain_statistics(series)
        assert np.isfinite([found.mcse[0], found.ess[0], found.rhat[0]]).all()
        assert found.mcse[0] >= EPS

    def test_scale_raises_the_floor(self) -> None:
        """A residual of 1e-9 left over from numbers of size 1e6 is not known to 1e-25."""
        series = np.full((4, 100, 1), 1e-9)
        assert sx.chains.chain_statistics(series, scale=np.array([1e6])).mcse[0] >= EPS * 1e6

    def test_what_is_left_of_large_numbers_is_not_surer_than_they_are(self) -> None:
        rest, f = np.zeros((4, 100, 1)), np.full((4, 100, 1), 1e6)
        found = sx.chains.controlled_statistics(rest, f, np.zeros(1))
        assert EPS * 1e6 <= found.mcse[0] <= 100 * EPS * 1e6

    def test_floor_leaves_ordinary_series_alone(self) -> None:
        series = _autoregressive(0.5)
        constant = np.concatenate([series, np.ones((4, 300, 1))], axis=-1)
        np.testing.assert_array_equal(
            sx.chains.chain_statistics(constant).mcse[:3], sx.chains.chain_statistics(series).mcse
        )


def test_chains_that_lie_apart_are_charged_by_what_their_means_differ() -> None:
    """Draws that swing hide it from autocorrelations: their second pair is negative, and ends the sum."""
    series = _swinging((4, 500, 1)) + 0.2 * np.arange(4.0)[:, None, None]
    means = series.mean(axis=1)
    least = means.std(axis=0, ddof=1) / 2 / np.sqrt(chi2.isf(0.01, 3) / 3)
    assert np.all(sx.chains.chain_statistics(series).mcse < least / 2)
    found = sx.chains.controlled_statistics(series, series, np.zeros(1))
    np.testing.assert_allclose(found.mcse, least, rtol=1e-12)


def test_variance_that_the_series_does_not_show_is_added() -> None:
    series = _autoregressive(0.5)
    shown = sx.chains.controlled_statistics(series, series, np.zeros(3)).mcse
    found = sx.chains.controlled_statistics(series, series, shown**2)
    np.testing.assert_allclose(found.mcse, np.sqrt(2) * shown, rtol=1e-12)


def test_heavy_tails_leave_fewer_degrees_of_freedom() -> None:
    """1 / freedom = 2 / m + (kurtosis - 3) / 4 m with m effective draws, at most all of them."""
    series = np.random.default_rng(0).standard_t(3, size=(4, 300, 2))
    series[..., 0] = np.random.default_rng(1).uniform(size=(4, 300))  # a kurtosis below 3
    found = sx.chains.chain_statistics(series)
    m = np.minimum(found.ess, 1200)
    heavy = np.maximum(kurtosis(series.reshape(-1, 2), fisher=False) - 3, 0)
    assert heavy[1] > 5 > heavy[0] == 0
    np.testing.assert_allclose(1 / found.freedom, (2 + heavy / 4) / m, rtol=1e-9)


def test_batches_are_means_of_consecutive_draws() -> None:
    """Of 90 draws each chain gives nine runs of ten, less the mean of all."""
    series = _autoregressive(0.9, shape=(3, 90, 2))
    runs = np.array([one.mean(axis=0) for chain in series for one in np.split(chain, 9)])
    found = sx.chains.chain_statistics(series).batches
    np.testing.assert_allclose(found, runs - runs.mean(axis=0), atol=1e-12)


def test_weighted_averages_have_the_error_of_a_ratio() -> None:
    """Of independent draws: the root of sum w^2 (f - c)^2 over sum w, c the weighted average."""
    rng = np.random.default_rng(0)
    f, w = 5 + rng.normal(size=(4, 500, 1)), rng.exponential(size=(4, 500))
    found = sx.chains.chain_statistics(sx.chains.linearised(f, w))
    centre = np.average(f[..., 0], weights=w)
    error = np.sqrt(np.sum(w**2 * (f[..., 0] - centre) ** 2)) / w.sum()
    np.testing.assert_allclose(found.mean[0], centre, rtol=1e-12)
    np.testing.assert_allclose(found.mcse[0] * np.sqrt(found.ess[0] / w.size), error, rtol=1e-3)


def test_no_warning_escapes() -> None:
    """Warnings are errors in this suite: 0 / 0 inside ArviZ must not become one."""
    sx.chains.chain_statistics(np.zeros((1, 10, 2)))
