"""Functions of expectations, as series whose mean is the value: the delta method."""

from statistics import NormalDist

import numpy as np

from .._types import AnyArray, Series

SURE = 3.0  # standard errors from zero that a variance, or a denominator, should be


def standard_deviation(f: Series, first: AnyArray, second: AnyArray) -> tuple[Series, Series]:
    r"""An integrand whose expectation is the standard deviation of f, and one for its variance.

    With $m_1, m_2$ the expectations of $f$ and $f^2$, and $\sigma^2 = m_2 - m_1^2$, that of
    $\sigma + (f^2 - m_2 - 2 m_1 (f - m_1)) / 2 \sigma$ is $\sigma$ and has, to first order, its error.
    Where $\sigma^2$ is not positive, $\sigma = 1$ is taken, and means nothing.

    Args:
        f: the values, (chain, draw, k).
        first: $m_1$, (k,).
        second: $m_2$, (k,).
    """
    variance = second - first**2
    sigma = np.sqrt(np.where(variance > 0, variance, 1.0))
    moved = f**2 - second - 2 * first * (f - first)
    return sigma + moved / (2 * sigma), variance + moved


def ratio(above: Series, below: AnyArray, top: AnyArray, bottom: AnyArray) -> Series:
    r"""An integrand whose expectation is a ratio of expectations.

    With $m_f, m_g$ the two and $\rho = m_f / m_g$, it is $\rho + (f - m_f - \rho\, (g - m_g)) / m_g$.
    Where $m_g$ is zero, one is taken, and means nothing.

    Args:
        above: the values of f, (chain, draw, k).
        below: those of g, as many or one.
        top: $m_f$, (k,).
        bottom: $m_g$.
    """
    denominator = np.where(bottom == 0, 1.0, bottom)
    value = top / denominator
    return value + (above - top - value * (below - bottom)) / denominator


class Quantiles:
    r"""The inverse of the weighted distribution functions $F(x) = \sum_i w_i 1\{f_i \le x\}$.

    Negative weights make $F$ fall in places. Sorting its values makes it monotone, and brings it
    nearer to any monotone one (Chernozhukov, Fernández-Val and Galichon, Biometrika 2009). Between
    draws it is interpolated; beyond the first and the last of them it is NaN.

    Args:
        values: of the integrands, (chain, draw, k).
        weights: of the draws, (chain, draw), with sum 1.
        levels: at which the quantiles are wanted, (q,); all arrays below are over k times q.
    """

    def __init__(self, values: Series, weights: AnyArray, levels: np.ndarray):
        self.levels = np.tile(levels, values.shape[-1])
        self.repeated = np.repeat(values, len(levels), axis=-1)
        order = np.argsort(self.repeated.reshape(weights.size, -1), axis=0, kind="stable")
        self.ordered = np.take_along_axis(self.repeated.reshape(weights.size, -1), order, axis=0)
        own = weights.ravel()[order]
        self.heights = np.sort(np.cumsum(own, axis=0) - own / 2, axis=0)
        self.value = self.at(self.levels)

    def at(self, levels: np.ndarray) -> np.ndarray:
        """The quantiles at other levels."""
        columns = zip(levels, self.heights.T, self.ordered.T, strict=True)
        return np.array([np.interp(q, x, y, left=np.nan, right=np.nan) for q, x, y in columns])

    def indicators(self) -> np.ndarray:
        """Whether a draw lies below the quantile: series of mean q, but for the jumps of F."""
        return (self.repeated <= self.value).astype(self.repeated.dtype)

    def error(self, of_levels: np.ndarray, ess: np.ndarray) -> np.ndarray:
        """The standard error of F over its slope: half the distance of quantiles that far apart.

        That near, few draws lie between them. So the slope is taken over a wider distance, that of
        Hall and Sheather (J. R. Stat. Soc. B, 1988).

        Args:
            of_levels: the standard errors of F at the quantiles.
            ess: effective sample sizes of the indicators.
        """
        wide = np.maximum(
            of_levels, [_bandwidth(*one) for one in zip(self.levels, ess, strict=True)]
        )
        distance = self.at(self.levels + wide) - self.at(self.levels - wide)
        return distance / 2 * of_levels / wide


def _bandwidth(q: float, ess: float) -> float:
    """How far to look to either side of the level q for the slope of a quantile function."""
    normal = NormalDist()
    place = normal.inv_cdf(q)
    curvature = 1.5 * normal.pdf(place) ** 2 / (2 * place**2 + 1)
    best = (normal.inv_cdf(0.975) ** 2 * curvature / ess) ** (1 / 3)
    return min(best, q / 2, (1 - q) / 2)


def systematic(weights: np.ndarray, count: int, uniform: float) -> np.ndarray:
    """Systematic resampling: each draw as often as its weight says, rounded up or down.

    Args:
        weights: none below zero, (n,).
        count: how many indices.
        uniform: a number from 0 to 1, drawn at random.
    """
    total = np.cumsum(weights)
    places = (np.arange(count) + uniform) / count * total[-1]
    return np.minimum(np.searchsorted(total, places, side="right"), len(weights) - 1)
