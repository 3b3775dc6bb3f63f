"""Statistics from sums are those of the series, and with long batches estimate the same errors."""

from dataclasses import fields
from itertools import pairwise

import numpy as np
import pytest

from steinax.chains import chain_statistics, controlled_statistics
from steinax.chains._streamed import (
    Adding,
    ChainSums,
    batch_length,
    streamed_controlled,
    streamed_statistics,
)


def autoregressive(chains: int, length: int, rho: float, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(chains, length, 2)) * np.sqrt(1 - rho**2)
    series = np.empty_like(noise)
    series[:, 0] = rng.normal(size=(chains, 2))
    for i in range(1, length):
        series[:, i] = rho * series[:, i - 1] + noise[:, i]
    return series * [1.0, 1e-3] + [5.0, 0.0]


def summed(
    series: np.ndarray, batch: int, cuts: tuple[int, ...] = (), centre=0.0, size=1.0
) -> ChainSums:
    """As a stream sums them: runs of chains, each added in two parts."""
    chains, length, k = series.shape
    total = ChainSums(chains, length, batch, k)
    edges = [0, *cuts, length]
    for chain in range(chains):
        for start, stop in pairwise(edges):
            adding = Adding(start, stop, length, batch, k)
            unit = (series[chain, start:stop] - centre) / size
            for part in (unit[: len(unit) // 3], unit[len(unit) // 3 :]):
                if len(part):
                    adding.add(part)
            total.add(chain, adding.sums())
    return total


@pytest.mark.parametrize("shape", [(4, 250), (4, 251), (1, 400), (2, 3)], ids=str)
@pytest.mark.parametrize("cuts", [(), (1, 2), (100, 125, 126)], ids=str)
def test_of_short_chains_are_those_of_the_series(shape, cuts) -> None:
    series = autoregressive(*shape, rho=0.5)
    cuts = tuple(cut for cut in cuts if cut < shape[1])
    largest, centre = np.abs(series).max(axis=(0, 1)), series.mean(axis=(0, 1)) + 0.01
    sums = summed(series, 1, cuts, centre, largest)
    unseen = np.array([1e-4, 0.0])
    pairs = (
        (streamed_statistics(sums, centre, largest), chain_statistics(series)),
        (
            streamed_controlled(sums, centre, largest, unseen),
            controlled_statistics(series, series, unseen),
        ),
    )
    for got, expected in pairs:
        for field in fields(expected):
            left, right = getattr(got, field.name), getattr(expected, field.name)
            np.testing.assert_allclose(left, right, rtol=1e-10, atol=1e-15, err_msg=field.name)


def test_of_chains_that_lie_apart_are_those_of_the_series() -> None:
    """Draws that swing, where the chains' means make the error and autocorrelations do not."""
    swing = np.resize([1.0, 1.0, -1.0, -1.0], 300)[:, None]
    series = swing + 0.1 * np.random.default_rng(0).normal(size=(4, 300, 2))
    series += 0.3 * np.arange(4.0)[:, None, None]
    largest = np.abs(series).max(axis=(0, 1))
    sums = summed(series, 1, (100,), 0.3, largest)
    got = streamed_controlled(sums, np.full(2, 0.3), largest, np.zeros(2))
    expected = controlled_statistics(series, series, np.zeros(2))
    assert np.all(expected.mcse > 2 * chain_statistics(series).mcse)
    np.testing.assert_allclose(got.mcse, expected.mcse, rtol=1e-9)


def test_of_a_constant_are_at_the_floor() -> None:
    series = np.full((4, 100, 1), 3.0)
    got, expected = (
        streamed_statistics(summed(series, 1, (), 3.0, 3.0), np.array([3.0]), np.array([3.0])),
        chain_statistics(series),
    )
    assert got.mcse[0] == expected.mcse[0]
    assert got.ess[0] == expected.ess[0]


@pytest.mark.parametrize("rho", [0.0, 0.9, -0.4])
@pytest.mark.parametrize("batch", [4, 16])
def test_of_batches_estimate_the_same_errors(rho, batch) -> None:
    """Truth: n var = (1 + rho) / (1 - rho) for an autoregressive series of variance 1."""
    series = autoregressive(4, 20_000, rho)
    sums = summed(series, batch, (7001, 15_000))
    got = streamed_statistics(sums, np.zeros(2), np.ones(2))
    expected = chain_statistics(series)
    truth = np.sqrt((1 + rho) / (1 - rho) / 80_000) * np.array([1.0, 1e-3])
    np.testing.assert_allclose(got.mcse, truth, rtol=0.06)
    np.testing.assert_allclose(got.mean, expected.mean, rtol=1e-12)
    np.testing.assert_allclose(got.rhat, expected.rhat, rtol=1e-9)
    np.testing.assert_allclose(got.ess, series.var(axis=(0, 1)) / got.mcse**2, rtol=1e-3)


def test_batches_are_few_and_powers_of_two() -> None:
    for length in (1, 4096, 4097, 10**6, 10**9):
        size = batch_length(4, length, 1)
        assert size & (size - 1) == 0
        assert length <= 4096 * size
        assert size == 1 or length > 2048 * size
