"""Pareto k-hat equals that of arviz-stats, and flags what is heavy."""

import numpy as np
import pytest
from arviz_stats.base.array import array_stats

import steinax as sx
from steinax.auditing._identities import effective_sizes, means_and_errors
from steinax.chains import heavy, may_lack_mean, pareto_khat
from steinax.chains._statistics import tail_length


def _reference(column: np.ndarray) -> float:
    m = tail_length(len(column))
    ordered = np.sort(np.abs(column - np.median(column)))
    return array_stats._gpdfit(ordered[-m:] - ordered[-m - 1])[0]


@pytest.mark.parametrize("n", [30, 100, 101, 1000, 5000])
def test_khat_is_that_of_arviz(n: int) -> None:
    rng = np.random.default_rng(n)
    columns = np.stack(
        [
            rng.normal(size=n),
            rng.standard_t(2, size=n),
            rng.uniform(size=n),
            rng.normal(size=n) ** 6,
        ],
        axis=1,
    )
    expected = [_reference(column) for column in columns.T]
    np.testing.assert_allclose(pareto_khat(columns), expected, rtol=1e-9)


def test_khat_does_not_know_units() -> None:
    columns = np.random.default_rng(0).standard_t(3, size=(500, 3))
    scaled = 7.0 + columns * [1e-9, -3.0, 1e9]
    np.testing.assert_allclose(pareto_khat(scaled), pareto_khat(columns), rtol=1e-5)


def test_columns_without_a_tail() -> None:
    n = 200
    columns = np.stack([np.ones(n), np.arange(n) % 2.0, np.eye(n)[0]], axis=1)
    assert np.isnan(pareto_khat(columns)).all()
    assert not heavy(columns).any()
    assert np.isnan(pareto_khat(np.random.default_rng(0).normal(size=(10, 2)))).all()


def test_heavy_flags_few_light_columns_and_most_heavy_ones() -> None:
    """Squares of Gaussians have light tails; cubes of t(3) have no mean."""
    rng = np.random.default_rng(0)
    for n in (100, 1000):
        light, fat = rng.normal(size=(n, 400)) ** 2, rng.standard_t(3, size=(n, 400)) ** 3
        assert heavy(light).mean() < 0.02
        assert heavy(fat, errors=0.0).mean() > 0.95
    assert heavy(fat).mean() > 0.9


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_effective_sizes_are_those_of_arviz(rho: float) -> None:
    """To 10%: ArviZ counts the last lag by half."""
    noise = np.random.default_rng(0).normal(size=(4, 250, 50))
    series = np.empty_like(noise)
    series[:, 0] = noise[:, 0]
    for t in range(1, 250):
        series[:, t] = rho * series[:, t - 1] + np.sqrt(1 - rho**2) * noise[:, t]
    expected = array_stats.ess(series, chain_axis=0, draw_axis=1, method="mean")
    ess, _ = effective_sizes(np.moveaxis(series, -1, 0))
    np.testing.assert_allclose(ess, expected, rtol=0.1)
    error = means_and_errors(series).error
    floor = series.std(axis=(0, 1), ddof=1) / np.sqrt(expected)
    assert np.all(error > 0.9 * floor)


def test_a_variance_of_one_draw_has_few_degrees_of_freedom() -> None:
    series = np.zeros((4, 250, 1))
    series[0, 0] = 1.0
    assert means_and_errors(series).freedom[0] < 5


@pytest.mark.parametrize("n", [200, 1000, 4000])
def test_tails_without_a_mean_are_found_and_ordinary_ones_are_not(n: int) -> None:
    """Of 400 columns of each of four light kinds at most 3 are flagged, one in 1,000 by measurement."""
    rng = np.random.default_rng(0)
    normal = rng.normal(size=(n, 400))
    light = [
        normal,
        np.exp(0.7 * normal),
        rng.exponential(size=(n, 400)),
        rng.standard_t(5, (n, 400)),
    ]
    assert sum(int(may_lack_mean(one).sum()) for one in light) <= 3
    cauchy = may_lack_mean(normal / rng.normal(size=(n, 400))).mean()
    assert cauchy > {200: 0.2, 1000: 0.7, 4000: 0.95}[n]


def test_an_integrand_without_a_mean_is_named() -> None:
    x = np.random.default_rng(0).normal(size=(4, 1000, 2))
    f = {"ratio": lambda x: x[0] / x[1], "sum": lambda x: x[0] + x[1]}
    found = sx.estimate(f, sx.Sample(x, -x))
    assert found.heavy == ("ratio",) and found["sum"].heavy == ()
    printed = " ".join(repr(found).split())
    assert "ratio: the draws have a heavy tail" in printed and "the mean may not exist" in printed
    assert "may not exist" not in repr(found["sum"])
    tree = sx.from_arrays(x, -x, variables={"ratio": x[..., 0] / x[..., 1], "mu": x[..., 0]})
    note = sx.summary(tree).attrs["steinax"]
    assert "ratio: the draws have a heavy tail" in note
