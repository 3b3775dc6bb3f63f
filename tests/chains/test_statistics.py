"""Means, errors, sample sizes and R-hat are ArviZ's, but for a floor where ArviZ has no answer."""

import numpy as np
import pytest
from arviz_stats.base import array_stats

import steinax as sx

EPS = np.finfo(np.float64).eps


def _autoregressive(coefficient: float, seed: int = 0, shape=(4, 300, 3)) -> np.ndarray:
    noise = np.random.default_rng(seed).normal(size=shape)
    series = noise.copy()
    for i in range(1, shape[1]):
        series[:, i] = coefficient * series[:, i - 1] + noise[:, i]
    return series


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

    def test_floor_leaves_ordinary_series_alone(self) -> None:
        series = _autoregressive(0.5)
        constant = np.concatenate([series, np.ones((4, 300, 1))], axis=-1)
        np.testing.assert_array_equal(
            sx.chains.chain_statistics(constant).mcse[:3], sx.chains.chain_statistics(series).mcse
        )


def test_no_warning_escapes() -> None:
    """Warnings are errors in this suite: 0 / 0 inside ArviZ must not become one."""
    sx.chains.chain_statistics(np.zeros((1, 10, 2)))
