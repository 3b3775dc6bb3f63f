from dataclasses import replace

import equinox as eqx
import numpy as np

from .._types import AnyArray, Series
from ._averages import Averages, averages
from ._batches import batch_means
from ._floors import between_chain_error

NUMBERS = 2**16  # of the series that are worked on together: they stay in the cache


class ChainStatistics(eqx.Module):
    """The mean of each series, how sure it is, and whether the chains agree: arrays over k.

    Attributes:
        mean: over all draws.
        mcse: its Monte Carlo standard error.
        ess: the effective sample size.
        rhat: split R-hat.
        freedom: degrees of freedom of the standard error, for intervals.
        batches: means of consecutive draws less the mean, (batch, k), for correlations of means.

    >>> import numpy as np
    >>> series = np.random.default_rng(0).normal(size=(4, 250, 1))
    >>> chain_statistics(series).mcse.round(3).tolist()
    [0.031]
    """

    mean: AnyArray
    mcse: AnyArray
    ess: AnyArray
    rhat: AnyArray
    freedom: AnyArray
    batches: AnyArray


def chain_statistics(series: Series, scale: AnyArray | None = None) -> ChainStatistics:
    """Mean, Monte Carlo standard error, effective sample size and split R-hat of each series.

    The same numbers as ArviZ gives. A series that is constant but for rounding error, as a perfect
    control variate leaves it, gets the standard error of that rounding.

    Args:
        series: shape (chain, draw, k).
        scale: the size of the numbers that the series was computed from, (k,), for the floor; by
            default its own largest entries.

    >>> import numpy as np
    >>> bool(chain_statistics(np.ones((4, 100, 1))).mcse[0] > 0)
    True
    """
    series = _finite(series)
    chains, length, k = series.shape
    size = _largest(series) if scale is None else np.asarray(scale, np.float64)
    width = max(NUMBERS // (chains * length), 1)
    parts = []
    for start in range(0, k, width):
        part = slice(start, start + width)
        rows = np.ascontiguousarray(np.moveaxis(series[..., part], -1, 0))
        parts.append(averages(rows, size[part]))
    found = Averages(*map(np.concatenate, zip(*parts, strict=True)))
    return ChainStatistics(*found, batch_means(series))


def _finite(series: Series) -> np.ndarray:
    series = np.asarray(series)
    if series.dtype.kind not in "fiub" or series.ndim != 3 or 0 in series.shape:
        raise ValueError(
            f"the series are of type {series.dtype} and shape {series.shape}: give real numbers as "
            "(chain, draw, k), at least one of each."
        )
    if not np.all(np.isfinite(series)):
        raise ValueError(
            "the series are not finite on every draw, and have no average: leave out the draws on "
            "which they are not."
        )
    return series.astype(np.float64, copy=False)


def _largest(series: AnyArray) -> np.ndarray:
    """The largest absolute value of each series, without an array of all of them."""
    return np.maximum(series.max(axis=(0, 1)), -series.min(axis=(0, 1)))


def controlled_statistics(series: Series, f: AnyArray, unseen: AnyArray) -> ChainStatistics:
    """The same of what control variates leave, with the means of the chains as a further floor.

    Args:
        series: f - g, (chain, draw, k).
        f: itself, of the same axes, on as many draws or more.
        unseen: the variance of the mean that the series does not show, (k,) or one for all.
    """
    found = chain_statistics(series, _largest(np.asarray(f)))
    error = np.maximum(found.mcse, between_chain_error(np.asarray(series, np.float64).mean(axis=1)))
    return replace(found, mcse=np.hypot(error, np.sqrt(unseen)))
