"""Quantiles and narrowest intervals of weighted draws."""

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from .._types import AnyArray, Series
from ..data import discrete


class Quantiles:
    r"""Quantiles by inverting the weighted distribution functions $F(x) = \sum_i w_i 1\{f_i \le x\}$.

    With negative weights $F$ decreases in places. Sorting its values makes it monotone, and closer to
    any monotone function (Chernozhukov, Fernández-Val and Galichon, Biometrika 2009). Between draws it
    is interpolated, but a quantile of a discrete variable is one of its values; beyond the first and the
    last draw it is NaN.

    Args:
        values: the values of the integrands, (chain, draw, k).
        weights: the weights of the draws, (chain, draw), with sum 1.
        levels: the levels of the quantiles, (q,); all attributes are over k times q.
    """

    def __init__(self, values: Series, weights: AnyArray, levels: np.ndarray):
        self.levels: np.ndarray = np.tile(levels, values.shape[-1])
        self.repeated: np.ndarray = np.repeat(values, len(levels), axis=-1)
        self.is_discrete: np.ndarray = np.repeat(discrete(np.asarray(values)), len(levels))
        flat = values.reshape(weights.size, -1)
        order = np.argsort(flat, axis=0, kind="stable")
        ordered_weights = weights.ravel()[order]
        heights = np.sort(np.cumsum(ordered_weights, axis=0) - ordered_weights / 2, axis=0)
        self.ordered: np.ndarray
        self.heights: np.ndarray
        self.ordered, self.heights = (
            np.repeat(array, len(levels), axis=-1)
            for array in (np.take_along_axis(flat, order, axis=0), heights)
        )
        self.value: np.ndarray = self.at(self.levels)

    def at(self, levels: np.ndarray, which: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Compute quantiles, all or some, at other levels."""
        columns = (levels, self.heights.T[which], self.ordered.T[which], self.is_discrete[which])
        found = []
        for level, heights, ordered, is_discrete in zip(*columns, strict=True):
            value = np.interp(level, heights, ordered, left=np.nan, right=np.nan)
            found.append(_nearest(value, ordered) if is_discrete else value)
        return np.array(found)

    def indicators(self, values: AnyArray | None = None) -> np.ndarray:
        """Return whether each draw is below the quantile: series of mean q, up to the jumps of F.

        Args:
            values: of the integrands on other points, (..., k); the draws by default.
        """
        if values is None:
            repeated = self.repeated
        else:
            repeated = np.repeat(values, len(self.levels) // np.shape(values)[-1], axis=-1)
        return (repeated <= self.value).astype(repeated.dtype)

    def slope(
        self, of_levels: np.ndarray, ess: np.ndarray, which: np.ndarray | slice = slice(None)
    ) -> np.ndarray:
        """Compute the slopes of quantiles, all or some, by their levels: their errors are in proportion.

        Few draws lie within one standard error of a quantile, so the slope is computed over the wider
        distance of Hall and Sheather (J. R. Stat. Soc. B, 1988).

        Args:
            of_levels: the standard errors of F at the quantiles.
            ess: effective sample sizes of the indicators.
            which: some of the quantiles; all by default.
        """
        levels = self.levels[which]
        wide = np.maximum(of_levels, [_bandwidth(*pair) for pair in zip(levels, ess, strict=True)])
        return (self.at(levels + wide, which) - self.at(levels - wide, which)) / (2 * wide)


def _nearest(numbers: ArrayLike, ordered: np.ndarray) -> np.ndarray:
    """Round to the nearest of some values in ascending order; NaN stays NaN."""
    numbers = np.asarray(numbers)
    place = np.searchsorted(ordered, numbers)
    above, below = ordered[np.minimum(place, len(ordered) - 1)], ordered[np.maximum(place - 1, 0)]
    nearest = np.where(above - numbers < numbers - below, above, below)
    return np.where(np.isnan(numbers), np.nan, nearest)


def levels_of(q: float | int | Sequence[float] | AnyArray) -> np.ndarray:
    """Convert the levels of quantiles, one or many, to an array; raise unless between 0 and 1."""
    levels = np.atleast_1d(np.asarray(q, dtype=float))
    if levels.ndim != 1 or not np.all((levels > 0) & (levels < 1)):
        raise ValueError(f"levels {q}: give numbers between 0 and 1, such as [0.05, 0.5, 0.95].")
    return levels


def _bandwidth(q: float, ess: float) -> float:
    """Compute the half-width in levels over which the slope of a quantile function is computed at q."""
    normal = NormalDist()
    place = normal.inv_cdf(q)
    curvature = 1.5 * normal.pdf(place) ** 2 / (2 * place**2 + 1)
    best = (normal.inv_cdf(0.975) ** 2 * curvature / ess) ** (1 / 3)
    return min(best, q / 2, (1 - q) / 2)


def narrowest(values: Series, weights: AnyArray, prob: float) -> np.ndarray:
    """Compute the ends of the narrowest interval of a given probability, (2 k,); NaN if draws are too few.

    The width is linear between the levels at which an end is at a draw, so its minimum is at one of these.

    Args:
        values: the values of the integrands, (chain, draw, k).
        weights: the weights of the draws, (chain, draw), with sum 1.
        prob: the probability of the interval.
    """
    curves, ends = Quantiles(values, weights, np.array([0.5])), []
    columns = (curves.heights.T, curves.ordered.T, curves.is_discrete)
    for heights, ordered, is_discrete in zip(*columns, strict=True):
        low = np.concatenate([heights, heights - prob])
        low = low[(low >= heights[0]) & (low + prob <= heights[-1])]
        if not low.size:
            ends += [np.nan, np.nan]
            continue
        lower, upper = (np.interp(level, heights, ordered) for level in (low, low + prob))
        least = np.argmin(upper - lower)
        both = np.array([lower[least], upper[least]])
        ends += list(_nearest(both, ordered) if is_discrete else both)
    return np.array(ends)
