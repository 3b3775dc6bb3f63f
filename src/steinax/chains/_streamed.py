"""Means, standard errors and R-hat of chains that are read in blocks, from running sums."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from .._types import AnyArray, Values
from ._statistics import (
    SHORTEST,
    ChainStatistics,
    batch_means,
    correlations,
    effective_size,
    floor_of,
    freedom_of,
    rhat_of_halves,
    with_floor,
)

POWERS = 4  # powers that are summed; the fourth gives the kurtosis
LONGEST = 4096  # largest number of batches of a chain
NUMBERS = 2**25  # largest number of batches of all chains and series: 268 MB


class Sums(NamedTuple):
    """Sums over consecutive draws of one chain, in units in which the series has size 1.

    Attributes:
        first: the number of the batch in which the draws begin.
        batches: sums over the draws in each batch, (batch, k).
        powers: sums of the first four powers over the draws of the chain's first half, between the
            halves (one draw, if the length is odd), and of the second half: (3, 4, k).
        low: the smallest values, (k,).
        high: the largest values, (k,).
    """

    first: int
    batches: np.ndarray
    powers: np.ndarray
    low: np.ndarray
    high: np.ndarray


def batch_length(chains: int, length: int, k: int) -> int:
    """Choose the number of draws of a batch: a power of two, 1 if the chains are short.

    A chain gets at most 4,096 batches, fewer if there are very many series; the limit is never below 256.

    >>> batch_length(4, 4000, 3), batch_length(4, 10_000_000, 3), batch_length(4, 4000, 100_000)
    (1, 4096, 16)
    """
    most = min(LONGEST, max(256, NUMBERS // (chains * k)))
    size = 1
    while length > most * size:
        size *= 2
    return size


class Adding:
    """Accumulator of `Sums` over consecutive draws of a chain, a few at a time.

    Args:
        start: the index in the chain of the first draw.
        stop: the index after the last draw.
        length: the length of the whole chain.
        batch: the number of draws of a batch.
        k: the number of series.
    """

    def __init__(self, start: int, stop: int, length: int, batch: int, k: int):
        self._place, self._batch = start, batch
        self._first = start // batch
        self._halves = (0, length // 2, length - length // 2, length)
        self._batches = np.zeros(((stop - 1) // batch - self._first + 1, k))
        self._powers = np.zeros((3, POWERS, k))
        self._low, self._high = np.full(k, np.inf), np.full(k, -np.inf)

    def add(self, values: Values) -> None:
        """Add the next draws, (n, k)."""
        start, stop = self._place, self._place + len(values)
        touched = np.arange(start // self._batch, (stop - 1) // self._batch + 1)
        cuts = np.maximum(touched * self._batch - start, 0)
        self._batches[touched - self._first] += np.add.reduceat(values, cuts, axis=0)
        for section, powers in enumerate(self._powers):
            inside = values[
                max(self._halves[section] - start, 0) : max(self._halves[section + 1] - start, 0)
            ]
            if len(inside):
                square = inside * inside
                powers[0] += inside.sum(axis=0)
                powers[1] += square.sum(axis=0)
                powers[2] += np.einsum("nk,nk->k", square, inside)
                powers[3] += np.einsum("nk,nk->k", square, square)
        self._low = np.minimum(self._low, values.min(axis=0))
        self._high = np.maximum(self._high, values.max(axis=0))
        self._place = stop

    def sums(self) -> Sums:
        """Return the sums over all draws that were added."""
        return Sums(self._first, self._batches, self._powers, self._low, self._high)


class ChainSums:
    """Sums over all draws of all chains, collected from `Sums` over parts of them."""

    def __init__(self, chains: int, length: int, batch: int, k: int):
        self.length: int = length
        self.batch: int = batch
        self.batches: np.ndarray = np.zeros((chains, -(-length // batch), k))
        self.powers: np.ndarray = np.zeros((chains, 3, POWERS, k))
        self.low: np.ndarray = np.full(k, np.inf)
        self.high: np.ndarray = np.full(k, -np.inf)

    def add(self, chain: int, sums: Sums) -> None:
        """Add the sums over some draws of one chain."""
        self.batches[chain, sums.first : sums.first + len(sums.batches)] += sums.batches
        self.powers[chain] += sums.powers
        self.low, self.high = np.minimum(self.low, sums.low), np.maximum(self.high, sums.high)

    @property
    def chain_means(self) -> np.ndarray:
        """The mean of each chain, (chain, k)."""
        return self.powers[:, :, 0].sum(axis=1) / self.length

    @property
    def batch_means(self) -> np.ndarray:
        """The means of the complete batches, (chain, batch, k)."""
        whole = max(self.length // self.batch, 1)
        return self.batches[:, :whole] / min(self.batch, self.length)

    def central(self) -> tuple[AnyArray, AnyArray]:
        """Compute the variance of the draws, with denominator n - 1, and their kurtosis, (k,) each."""
        n = len(self.powers) * self.length
        m1, m2, m3, m4 = self.powers.sum(axis=(0, 1)) / n
        variance = np.maximum(m2 - m1**2, 0.0)
        fourth = m4 - 4 * m1 * m3 + 6 * m1**2 * m2 - 3 * m1**4
        kurtosis = fourth / np.where(variance > 0, variance, 1.0) ** 2
        return variance * n / max(n - 1, 1), kurtosis

    def halves(self) -> tuple[np.ndarray, np.ndarray, int]:
        """Compute means and variances of the half chains, (2 chain, k), and their length."""
        half = self.length // 2
        first, second = np.moveaxis(self.powers[:, ::2, :2], 2, 0) / max(half, 1)
        means = first.reshape(-1, first.shape[-1])
        variances = second.reshape(means.shape) - means**2
        return means, np.maximum(variances, 0.0) * half / max(half - 1, 1), half


def streamed_statistics(sums: ChainSums, centre: AnyArray, size: AnyArray) -> ChainStatistics:
    r"""Compute the result of `chain_statistics` from running sums alone.

    The standard error of the mean comes from the means of batches of $b$ draws, whose spectral density at
    zero is that of the series,

    $$ \mathrm{mcse}^2 = \frac{\operatorname{var}(\bar y)}{\mathrm{ess}(\bar y)}, \qquad
       \mathrm{ess} = \frac{\operatorname{var}(y)}{\mathrm{mcse}^2} , $$

    and with $b = 1$ both equal those of the whole series.

    Args:
        sums: the sums of $(y - \text{centre}) / \text{size}$.
        centre: the values subtracted from the series, (k,).
        size: the size of the numbers that the series was computed from, (k,).
    """
    size = np.where(size > 0, size, 1.0)
    floor = floor_of(size)
    spread = sums.high - sums.low
    constant = size * spread <= floor
    series = sums.batch_means
    unit = (series - series[0, 0]) / np.where(spread > 0, spread, 1.0)
    draws = len(series) * sums.length
    variance, kurtosis = sums.central()
    means, variances, half = sums.halves()
    with np.errstate(all="ignore"):  # 0 / 0 on constant series: floored below
        batch_ess = np.full(unit.shape[2], np.nan)
        if unit.shape[1] >= SHORTEST:
            batch_ess = effective_size(correlations(np.moveaxis(unit, -1, 0)))
        mcse = spread * unit.std(axis=(0, 1), ddof=1) / np.sqrt(batch_ess)
        ess = np.where(constant, draws, variance / mcse**2)
        rhat = rhat_of_halves(means, variances, half)
        if len(series) < 2 or sums.length < SHORTEST:
            rhat = np.full_like(rhat, np.nan)
    return ChainStatistics(
        centre + size * sums.chain_means.mean(axis=0),
        np.where(constant, floor, np.maximum(size * mcse, floor)),
        ess,
        np.where(constant, 1.0, rhat),
        freedom_of(kurtosis, ess, draws),
        size * batch_means(series),
    )


def streamed_controlled(
    sums: ChainSums, centre: AnyArray, size: AnyArray, unseen: AnyArray
) -> ChainStatistics:
    """Compute the result of `controlled_statistics` for f - g from running sums alone."""
    statistics = streamed_statistics(sums, centre, size)
    unit = np.where(size > 0, size, 1.0)
    return replace(statistics, mcse=with_floor(statistics.mcse, unit * sums.chain_means, unseen))
