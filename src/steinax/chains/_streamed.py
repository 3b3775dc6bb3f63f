"""Means, standard errors and R-hat of chains that are read in blocks, from sums."""

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

POWERS = 4  # the fourth gives the kurtosis
LONGEST = 4096  # batches of a chain, at most
NUMBERS = 2**25  # batches of all chains and series, at most: 268 MB


class Sums(NamedTuple):
    """Of consecutive draws of one chain, in units in which the series is of size 1.

    Attributes:
        first: the batch of the chain in which the draws begin.
        batches: sums over each batch that they touch, (batch, k).
        powers: sums of the first four powers over the draws of the chain's first half, between the
            halves (one draw, if the length is odd), and of the second half: (3, 4, k).
        low: the least, (k,).
        high: the largest, (k,).
    """

    first: int
    batches: np.ndarray
    powers: np.ndarray
    low: np.ndarray
    high: np.ndarray


def batch_length(chains: int, length: int, k: int) -> int:
    """How many draws make a batch: a power of two, 1 where the chains are short.

    A chain gets at most 4,096 batches, fewer where there are very many series, never under 256.

    >>> batch_length(4, 4000, 3), batch_length(4, 10_000_000, 3), batch_length(4, 4000, 100_000)
    (1, 4096, 16)
    """
    most = min(LONGEST, max(256, NUMBERS // (chains * k)))
    size = 1
    while length > most * size:
        size *= 2
    return size


class Adding:
    """Adds up the draws of one run of a chain, a few at a time.

    Args:
        start: the place in the chain of the first draw.
        stop: and of the one after the last.
        length: of the whole chain.
        batch: how many draws make a batch.
    """

    def __init__(self, start: int, stop: int, length: int, batch: int, k: int):
        self._place, self._batch = start, batch
        self._first = start // batch
        self._halves = (0, length // 2, length - length // 2, length)
        self._batches = np.zeros(((stop - 1) // batch - self._first + 1, k))
        self._powers = np.zeros((3, POWERS, k))
        self._low, self._high = np.full(k, np.inf), np.full(k, -np.inf)

    def add(self, values: Values) -> None:
        """The draws that follow, (n, k)."""
        start, stop = self._place, self._place + len(values)
        ends = np.arange(start // self._batch, (stop - 1) // self._batch + 1)
        cuts = np.maximum(ends * self._batch - start, 0)
        self._batches[ends - self._first] += np.add.reduceat(values, cuts, axis=0)
        for part, powers in enumerate(self._powers):
            inside = values[
                max(self._halves[part] - start, 0) : max(self._halves[part + 1] - start, 0)
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
        """Of all draws that were added."""
        return Sums(self._first, self._batches, self._powers, self._low, self._high)


class ChainSums:
    """The sums of all runs of all chains together."""

    def __init__(self, chains: int, length: int, batch: int, k: int):
        self.length, self.batch = length, batch
        self.batches = np.zeros((chains, -(-length // batch), k))
        self.powers = np.zeros((chains, 3, POWERS, k))
        self.low, self.high = np.full(k, np.inf), np.full(k, -np.inf)

    def add(self, chain: int, part: Sums) -> None:
        """The sums of a run of one chain."""
        self.batches[chain, part.first : part.first + len(part.batches)] += part.batches
        self.powers[chain] += part.powers
        self.low, self.high = np.minimum(self.low, part.low), np.maximum(self.high, part.high)

    @property
    def chain_means(self) -> np.ndarray:
        """The mean of each chain, (chain, k)."""
        return self.powers[:, :, 0].sum(axis=1) / self.length

    @property
    def batch_means(self) -> np.ndarray:
        """The means of whole batches, (chain, batch, k): what is left over at the end is left out."""
        whole = max(self.length // self.batch, 1)
        return self.batches[:, :whole] / min(self.batch, self.length)

    def central(self) -> tuple[AnyArray, AnyArray]:
        """The variance of a draw, of denominator n - 1, and its kurtosis, (k,) each."""
        n = len(self.powers) * self.length
        m1, m2, m3, m4 = self.powers.sum(axis=(0, 1)) / n
        variance = np.maximum(m2 - m1**2, 0.0)
        fourth = m4 - 4 * m1 * m3 + 6 * m1**2 * m2 - 3 * m1**4
        kurtosis = fourth / np.where(variance > 0, variance, 1.0) ** 2
        return variance * n / max(n - 1, 1), kurtosis

    def halves(self) -> tuple[np.ndarray, np.ndarray, int]:
        """Means and variances of the halves of all chains, (2 chain, k), and their length."""
        half = self.length // 2
        first, second = np.moveaxis(self.powers[:, ::2, :2], 2, 0) / max(half, 1)
        means = first.reshape(-1, first.shape[-1])
        variances = second.reshape(means.shape) - means**2
        return means, np.maximum(variances, 0.0) * half / max(half - 1, 1), half


def streamed_statistics(sums: ChainSums, centre: AnyArray, size: AnyArray) -> ChainStatistics:
    r"""What `chain_statistics` gives of a series, from its sums alone.

    The standard error of the mean is that of the means of batches of $b$ draws, whose spectrum at zero is
    that of the series,

    $$ \mathrm{mcse}^2 = \frac{\operatorname{var}(\bar y)}{\mathrm{ess}(\bar y)}, \qquad
       \mathrm{ess} = \frac{\operatorname{var}(y)}{\mathrm{mcse}^2} , $$

    and with $b = 1$ both are what they are for the whole series.

    Args:
        sums: of $(y - \text{centre}) / \text{size}$.
        centre: what was taken away from the series, (k,).
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
        of_batches = np.full(unit.shape[2], np.nan)
        if unit.shape[1] >= SHORTEST:
            of_batches = effective_size(correlations(np.moveaxis(unit, -1, 0)))
        mcse = spread * unit.std(axis=(0, 1), ddof=1) / np.sqrt(of_batches)
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
    """What `controlled_statistics` gives of f - g, from its sums alone."""
    found = streamed_statistics(sums, centre, size)
    unit = np.where(size > 0, size, 1.0)
    return replace(found, mcse=with_floor(found.mcse, unit * sums.chain_means, unseen))
