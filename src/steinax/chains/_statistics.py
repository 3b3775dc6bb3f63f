import warnings
from dataclasses import replace

import equinox as eqx
import numpy as np

from .._types import AnyArray, Series
from ._batches import batch_means
from ._quantiles import degrees_of_freedom
from ._rhat import split_rhat

# Rounding leaves about this much of a sum's relative error: below it a standard error says
# nothing. It is the floor that a perfect control variate is reported with.
FLOOR = 4.0


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

    The same numbers as ArviZ gives, the effective sample size by arviz-stats. A series that is
    constant but for rounding error, as a perfect control variate leaves it, gets the standard error
    of that rounding.

    Args:
        series: shape (chain, draw, k).
        scale: the size of the numbers that the series was computed from, (k,), for the floor; by
            default its own largest entries.

    >>> import numpy as np
    >>> bool(chain_statistics(np.ones((4, 100, 1))).mcse[0] > 0)
    True
    """
    from arviz_stats.base.array import array_stats

    series = _finite(series)
    size = np.abs(series).max(axis=(0, 1)) if scale is None else np.asarray(scale)
    floor = floor_of(size)
    spread = np.ptp(series, axis=(0, 1))
    constant = spread <= floor
    unit = (series - series[0, 0]) / np.where(spread > 0, spread, 1.0)  # ArviZ knows no scale
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # 0 / 0 on constant series: floored below
        ess = array_stats.ess(unit, chain_axis=0, draw_axis=1, method="mean")  # type: ignore
        mcse = spread * unit.std(axis=(0, 1), ddof=1) / np.sqrt(ess)
        rhat = split_rhat(unit)
    draws = series.shape[0] * series.shape[1]
    return ChainStatistics(
        series.mean(axis=(0, 1)),
        np.where(constant, floor, np.maximum(mcse, floor)),
        np.where(constant, draws, ess),
        np.where(constant, 1.0, rhat),
        degrees_of_freedom(unit, np.where(constant, draws, ess)),
        batch_means(series),
    )


def floor_of(size: AnyArray) -> np.ndarray:
    """The standard error that rounding leaves of a mean of numbers of this size, (k,)."""
    return FLOOR * np.finfo(np.float64).eps * np.maximum(size, np.finfo(np.float64).tiny)


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


def controlled_statistics(series: Series, f: AnyArray, unseen: AnyArray) -> ChainStatistics:
    """The same of what control variates leave, with the means of the chains as a further floor.

    Args:
        series: f - g, (chain, draw, k).
        f: itself, of the same axes, on as many draws or more.
        unseen: the variance of the mean that the series does not show, (k,) or one for all.
    """
    found = chain_statistics(series, np.abs(f).max(axis=(0, 1)))
    error = np.maximum(found.mcse, between_chain_error(np.asarray(series, np.float64).mean(axis=1)))
    return replace(found, mcse=np.hypot(error, np.sqrt(unseen)))


def between_chain_error(means: AnyArray) -> np.ndarray:
    r"""The standard error that the chains' own means vouch for, (k,): a floor for any other.

    With $S^2$ the variance of the means of $M$ chains, $S^2 / M$ estimates the squared error of
    their average from $M - 1$ degrees of freedom, whatever happens within chains. It is divided by
    the 99% quantile of $\chi^2_{M-1} / (M - 1)$, so that chains which agree are hardly ever charged
    for it. Zero for one chain.

    Args:
        means: of each chain, (chain, k).

    >>> between_chain_error(np.arange(4.0)[:, None]).round(2).tolist()
    [0.33]
    """
    from scipy.special import chdtri

    chains = means.shape[0]
    if chains < 2:
        return np.zeros(means.shape[1])
    unlikely = chdtri(chains - 1, 0.01) / (chains - 1)
    return np.sqrt(means.var(axis=0, ddof=1) / chains / unlikely)
