"""Centred moments of columns and integrands: they merge, so draws may come in blocks.

NumPy, not jax: on a CPU its product of a matrix with its own transpose is up to twice as fast.
"""

from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from .._linalg import TINY

SOME = 1000  # rows that tell where the columns lie
NEAR = 4.0  # standard deviations: products lose 4 bits, as those of a shifted tile may


class Moments(NamedTuple):
    """How many draws, the means of columns (p,) and integrands (k,), and their centred products.

    Of draws with weights, n is the sum of these, and means and sums are weighted ones.
    """

    n: int | float
    mean: np.ndarray
    mean_f: np.ndarray
    gram: np.ndarray  # (p, p)
    cross: np.ndarray  # (p, k)

    def merge(self, other: "Moments") -> "Moments":
        """The moments of both sets of draws together."""
        return self._combine(other, 1)

    def without(self, part: "Moments") -> "Moments":
        """The moments of the draws that are left when those of `part` are taken away."""
        return self._combine(part, -1)

    def _combine(self, other: "Moments", sign: int) -> "Moments":
        n = self.n + sign * other.n
        step, step_f = other.mean - self.mean, other.mean_f - self.mean_f
        share = sign * other.n / n
        weight = share * self.n  # of the products of what lies between the two means
        return Moments(
            n,
            self.mean + share * step,
            self.mean_f + share * step_f,
            self.gram + sign * other.gram + weight * np.outer(step, step),
            self.cross + sign * other.cross + weight * np.outer(step, step_f),
        )

    def only(self, used: np.ndarray) -> "Moments":
        """The moments of some of the columns."""
        gram = self.gram[np.ix_(used, used)]
        return Moments(self.n, self.mean[used], self.mean_f, gram, self.cross[used])

    def solve(self, penalty: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Least squares with a quadratic penalty: intercepts (k,) and coefficients (p, k)."""
        hessian = self.gram + penalty
        size = np.sqrt(np.diag(hessian))
        size = np.where(size > 0, size, 1.0)
        scaled = hessian / np.outer(size, size)
        scaled[np.diag_indices_from(scaled)] += TINY * len(size)
        w = np.linalg.solve(scaled, self.cross / size[:, None]) / size[:, None]
        return self.mean_f - self.mean @ w, w


def fits_without_each(
    parts: Sequence[Moments], penalty: np.ndarray, used: Sequence[np.ndarray] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Cross-fitting by subtraction: the moments of all draws, less those of a fold, give its fit.

    Args:
        parts: the moments of each fold.
        penalty: the matrix of the penalty on the coefficients, (p, p).
        used: the columns of each fit; the coefficients of the others are zero.

    Returns:
        The intercepts of the fits, (fold, k), and their coefficients, (fold, p, k).
    """
    total = reduce(Moments.merge, parts)
    intercepts, coef = [], np.zeros((len(parts), *total.cross.shape))
    for i, part in enumerate(parts):
        columns = np.arange(len(penalty)) if used is None else used[i]
        train = total.without(part).only(columns)
        intercept, coef[i, columns] = train.solve(penalty[np.ix_(columns, columns)])
        intercepts.append(intercept)
    return np.stack(intercepts), coef


def moments(columns: np.ndarray, f: np.ndarray) -> Moments:
    """The moments of one block of draws: columns (n, p) and integrands (n, k).

    >>> import numpy as np
    >>> a, f = np.arange(8.0).reshape(4, 2), np.ones((4, 1))
    >>> whole, halves = moments(a, f), moments(a[:2], f[:2]).merge(moments(a[2:], f[2:]))
    >>> np.allclose(whole.gram, halves.gram)
    True
    """
    return gathered_moments([(columns, f)])


def gathered_moments(tiles: Iterable[tuple[Any, ...]]) -> Moments:
    r"""The moments of many tiles of draws, added up about a shift $m$: 0, or the mean of the first tile.

    Adding costs no more than $\sum_i (a_i - m)(a_i - m)^\top$ itself; the mean of all is taken from it at
    the end. That loses no digits while the means of later tiles are within a few standard deviations
    of $m$. Moments of draws that are further apart are to be merged.

    Args:
        tiles: columns (n, p), integrands (n, k) and, where draws have them, weights (n,); at least one.
    """
    tiles = iter(tiles)
    first = next(tiles, None)
    if first is None:
        raise ValueError("no tiles: moments are those of at least one draw.")
    shift, shift_f = (_shift(part) for part in first[:2])
    n, total, total_f = 0, np.zeros(first[0].shape[1]), np.zeros(first[1].shape[1])
    gram, cross = np.zeros((len(total),) * 2), np.zeros((len(total), len(total_f)))
    product = np.empty_like(gram)
    for columns, f, *others in chain((first,), tiles):
        centred = columns if shift is None else columns - shift
        centred_f = f if shift_f is None else f - shift_f
        weights = others[0] if others else None
        ones = np.ones(len(columns)) if weights is None else weights
        weighed = centred if weights is None else centred * ones[:, None]
        n += len(columns) if weights is None else ones.sum()
        total += ones @ centred
        total_f += ones @ centred_f
        gram += np.matmul(centred.T, weighed, out=product)
        cross += weighed.T @ centred_f
    gram -= np.outer(total, total) / n
    cross -= np.outer(total, total_f) / n
    mean, mean_f = total / n, total_f / n
    mean = mean if shift is None else shift + mean
    return Moments(n, mean, mean_f if shift_f is None else shift_f + mean_f, gram, cross)


def _shift(values: np.ndarray) -> np.ndarray | None:
    """The means of some columns, or None where all are so near to 0 that a shift is not worth a copy."""
    if not values.size:
        return None
    some = values[:SOME]
    means = some.mean(axis=0)
    near = len(some) > 1 and (np.abs(means) <= NEAR * some.std(axis=0, ddof=1)).all()
    return None if near else means
