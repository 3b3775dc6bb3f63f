"""The Stein identities of many posteriors at once: those of `steinax.auditing`."""

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import ndtri

from .._types import AnyArray
from ..auditing._errors import effective_sizes
from ..auditing._identities import CHAIN_ALARM, MATERIAL, NORMAL_QUARTILES, false_alarms
from ._coordinates import Coordinates, Rows


def surely_hold(at: Coordinates, chains: int) -> Bool[AnyArray, " posterior"]:
    r"""Whether all identities hold, whatever the audit's finer points: false where it must decide.

    The audit allows each mean to be off by 0.02, or by its standard error $\sigma / \sqrt m$ times a
    quantile of Student's, which is larger than that of the normal distribution, $q$. The effective
    sample size $m$ is at most $n \log_{10} n$. So what is off by less than $q \sigma / \sqrt{n
    \log_{10} n}$ holds, and no autocorrelation is needed to know; for the others their own $m$ is
    found. It is the larger of two that the audit compares. What is still off by more than
    $q \sigma / \sqrt m$ is left to the audit itself.
    """
    own = _own_series(at)
    dim, n = at.y.shape[1:]
    mean, variance = _moments(own)
    pairs, spread = _pair_moments(at)
    trace, width = _moments((at.z * at.t).mean(axis=1, keepdims=True) + 1.0)
    mean, variance = np.hstack([mean, pairs, trace]), np.hstack([variance, spread, width])
    quantile = -ndtri(false_alarms(dim, dim) / 2.0)
    doubtful = _beyond(mean, variance, quantile, n)
    posterior, identity = np.nonzero(doubtful)
    if len(posterior):
        rows = _some_series(at, own, posterior, identity).reshape(len(posterior), chains, -1)
        error = np.sqrt(variance[doubtful] / effective_sizes(rows)[0])
        doubtful[doubtful] = ~(np.abs(mean[doubtful]) <= quantile[identity] * error)
    return ~doubtful.any(axis=1) & _chains_hold(own[:, : 2 * dim], chains)


def _chains_hold(own: AnyArray, chains: int) -> Bool[AnyArray, " posterior"]:
    """Whether the means and squares of every chain hold alone."""
    posteriors, count, n = own.shape
    if chains == 1:
        return np.ones(posteriors, dtype=bool)
    apart = own.reshape(posteriors, count * chains, n // chains)
    mean, variance = _moments(apart)
    quantile = float(-ndtri(CHAIN_ALARM / (2.0 * count * chains)))
    doubtful = _beyond(mean, variance, quantile, n // chains)
    if doubtful.any():
        sizes = effective_sizes(apart[doubtful][:, None])[0]
        error = np.sqrt(variance[doubtful] / sizes)
        doubtful[doubtful] = ~(np.abs(mean[doubtful]) <= quantile * error)
    return ~doubtful.any(axis=1)


def _beyond(mean: AnyArray, variance: AnyArray, quantile: AnyArray | float, n: int) -> AnyArray:
    """Which means are off by more than the largest effective sample size of n draws allows."""
    error = np.sqrt(variance / (n * np.log10(n)))
    return ~(np.abs(mean) <= np.maximum(quantile * error, MATERIAL))


def _moments(series: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Means and variances over the draws, each (posterior, series)."""
    n, mean = series.shape[2], series.mean(axis=2)
    return mean, _variance(np.einsum("bin,bin->bi", series, series) / n, mean, n)


def _own_series(at: Coordinates) -> Float[AnyArray, "posterior identity n"]:
    """Functions of single dimensions through the operator, and the scores of whitened draws."""
    posteriors, dim, n = at.y.shape
    own = np.empty((posteriors, 5, dim, n))
    own[:, 0] = at.u
    np.multiply(at.y, at.u, out=own[:, 1])
    own[:, 1] += 1.0
    low, middle, high = _quartiles(at.y)
    width = np.where(high > low, (high - low) / NORMAL_QUARTILES, 1.0)
    w, v = (at.y - middle) / width, at.u * width
    bounded = np.tanh(w)
    np.multiply(bounded, v - bounded, out=own[:, 2])
    own[:, 2] += 1.0
    own[:, 3] = _wave(w, v)
    own[:, 4] = at.t
    return own.reshape(posteriors, 5 * dim, n)


def _wave(w: Rows, v: Rows) -> Rows:
    """cos(2 w) v - 2 sin(2 w), from the tangent of w: one function in place of two."""
    tangent = np.tan(w)
    square = tangent * tangent
    return ((1.0 - square) * v - 4.0 * tangent) / (1.0 + square)


def _quartiles(y: Rows) -> tuple[AnyArray, ...]:
    """The quartiles of each dimension, each (posterior, dim, 1)."""
    rows, n = np.sort(y, axis=2), y.shape[2]
    return tuple(rows[..., (n - 1) * i // 4, None] for i in (1, 2, 3))


def _pair_moments(at: Coordinates) -> tuple[AnyArray, AnyArray]:
    """Means and variances of z_i t_j + 1 where i = j, (posterior, dim^2), by matrix products."""
    posteriors, dim, n = at.z.shape
    product = at.z @ at.t.swapaxes(1, 2) / n
    square = (at.z**2) @ (at.t**2).swapaxes(1, 2) / n
    mean, variance = product + np.eye(dim), _variance(square, product, n)
    return mean.reshape(posteriors, -1), variance.reshape(posteriors, -1)


def _variance(square: AnyArray, mean: AnyArray, n: int) -> AnyArray:
    return np.maximum(square - mean**2, 0.0) * (n / (n - 1))


def _some_series(
    at: Coordinates, own: AnyArray, posterior: AnyArray, identity: AnyArray
) -> Float[AnyArray, "series n"]:
    """The series of some identities, less what is constant in them."""
    dim, first = at.z.shape[1], own.shape[1]
    left, right = np.divmod(np.clip(identity - first, 0, dim**2 - 1), dim)
    rows = at.z[posterior, left] * at.t[posterior, right]
    mine, trace = identity < first, identity == first + dim**2
    rows[mine] = own[posterior[mine], identity[mine]]
    rows[trace] = (at.z * at.t)[posterior[trace]].mean(axis=1)
    return rows
