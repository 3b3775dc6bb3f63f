"""Sums over a long series from which all its statistics follow, so that it need not be kept."""

from typing import NamedTuple

import numpy as np

from .._types import AnyArray, Values

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
