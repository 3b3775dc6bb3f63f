"""Centred moments of columns and integrands, which can be merged over blocks of draws.

This uses NumPy, not jax: on a CPU its product of a matrix with its transpose is up to twice as fast.
"""

from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from .._numerics import TINY

SHIFT_ROWS = 1000  # rows from which the location of the columns is estimated
NEAR = 4.0  # standard deviations of a mean from 0 without a shift: products lose 4 bits at most


class Moments(NamedTuple):
    """The number of draws, the means of columns (p,) and integrands (k,), and their centred products.

    If the draws have weights, n is the sum of the weights, and means and products are weighted.
    """

    n: int | float
    mean: np.ndarray
    mean_f: np.ndarray
    gram: np.ndarray  # (p, p)
    cross: np.ndarray  # (p, k)

    def merge(self, other: "Moments") -> "Moments":
        """Merge with the moments of other draws."""
        return self._combine(other, 1)

    def without(self, subset: "Moments") -> "Moments":
        """Remove a subset of the draws from the moments."""
        return self._combine(subset, -1)

    def _combine(self, other: "Moments", sign: int) -> "Moments":
        n = self.n + sign * other.n
        step, step_f = other.mean - self.mean, other.mean_f - self.mean_f
        share = sign * other.n / n
        weight = share * self.n  # of the products of the difference of the means
        return Moments(
            n,
            self.mean + share * step,
            self.mean_f + share * step_f,
            self.gram + sign * other.gram + weight * np.outer(step, step),
            self.cross + sign * other.cross + weight * np.outer(step, step_f),
        )

    def only(self, used: np.ndarray) -> "Moments":
        """Restrict the moments to the given columns."""
        gram = self.gram[np.ix_(used, used)]
        return Moments(self.n, self.mean[used], self.mean_f, gram, self.cross[used])

    def solve(self, penalty: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Solve least squares with a quadratic penalty: intercepts (k,) and coefficients (p, k)."""
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
    """Cross-fit by subtracting the moments of each fold from those of all draws.

    Args:
        parts: the moments of each fold.
        penalty: the matrix of the penalty on the coefficients, (p, p).
        used: the columns used by each fit; the other coefficients are zero.

    Returns:
        The intercepts of the fits, (fold, k), and their coefficients, (fold, p, k).
    """
    total = reduce(Moments.merge, parts)
    intercepts, coef = [], np.zeros((len(parts), *total.cross.shape))
    for i, fold in enumerate(parts):
        columns = np.arange(len(penalty)) if used is None else used[i]
        train = total.without(fold).only(columns)
        intercept, coef[i, columns] = train.solve(penalty[np.ix_(columns, columns)])
        intercepts.append(intercept)
    return np.stack(intercepts), coef


def mean_residuals(parts: Sequence[Moments], coef: np.ndarray) -> np.ndarray:
    """Compute the mean residual of the fit without each fold on the draws outside it, (fold, k).

    Args:
        parts: the moments of the draws of each fold.
        coef: the coefficients of the fits, (fold, p, k).
    """
    total = reduce(Moments.merge, parts)
    others = [total.without(fold) for fold in parts]
    return np.stack([m.mean_f - m.mean @ w for m, w in zip(others, coef, strict=True)])


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
    r"""Sum the moments of many tiles of draws about a shift $m$: 0, or the mean of the first tile.

    The cost is that of $\sum_i (a_i - m)(a_i - m)^\top$; the mean is subtracted at the end. That loses no
    digits while the means of later tiles are within a few standard deviations of $m$. For draws that are
    further apart, compute separate moments and merge them.

    Args:
        tiles: columns (n, p), integrands (n, k) and optionally weights (n,); at least one tile.
    """
    tiles = iter(tiles)
    first = next(tiles, None)
    if first is None:
        raise ValueError("no tiles: moments need at least one draw.")
    shift, shift_f = (_shift(array) for array in first[:2])
    n, total, total_f = 0, np.zeros(first[0].shape[1]), np.zeros(first[1].shape[1])
    gram, cross = np.zeros((len(total),) * 2), np.zeros((len(total), len(total_f)))
    product = np.empty_like(gram)
    for columns, f, *optional in chain((first,), tiles):
        centred = columns if shift is None else columns - shift
        centred_f = f if shift_f is None else f - shift_f
        weights = optional[0] if optional else None
        ones = np.ones(len(columns)) if weights is None else weights
        weighted = centred if weights is None else centred * ones[:, None]
        n += len(columns) if weights is None else ones.sum()
        total += ones @ centred
        total_f += ones @ centred_f
        gram += np.matmul(centred.T, weighted, out=product)
        cross += weighted.T @ centred_f
    gram -= np.outer(total, total) / n
    cross -= np.outer(total, total_f) / n
    mean, mean_f = total / n, total_f / n
    mean = mean if shift is None else shift + mean
    return Moments(n, mean, mean_f if shift_f is None else shift_f + mean_f, gram, cross)


def _shift(values: np.ndarray) -> np.ndarray | None:
    """The means of the columns, or None if all are so close to 0 that a shift is not worth a copy."""
    if not values.size:
        return None
    head = values[:SHIFT_ROWS]
    means = head.mean(axis=0)
    near = len(head) > 1 and (np.abs(means) <= NEAR * head.std(axis=0, ddof=1)).all()
    return None if near else means
