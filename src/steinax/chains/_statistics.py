import warnings

import equinox as eqx
import numpy as np

from .._types import AnyArray, Series
from ._rhat import split_rhat

# Rounding leaves about this much of a sum's relative error: below it a standard error says
# nothing. It is the floor that a perfect control variate is reported with.
FLOOR = 4.0


class ChainStatistics(eqx.Module):
    """The mean of each series, how sure it is, and whether the chains agree: arrays over k.

    >>> import numpy as np
    >>> series = np.random.default_rng(0).normal(size=(4, 250, 1))
    >>> chain_statistics(series).mcse.round(3).tolist()
    [0.031]
    """

    mean: AnyArray
    mcse: AnyArray
    ess: AnyArray
    rhat: AnyArray


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

    series = np.asarray(series, dtype=np.float64)
    size = np.abs(series).max(axis=(0, 1)) if scale is None else np.asarray(scale)
    floor = FLOOR * np.finfo(np.float64).eps * np.maximum(size, np.finfo(np.float64).tiny)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # 0 / 0 on constant series: floored below
        ess = array_stats.ess(series, chain_axis=0, draw_axis=1, method="mean")  # type: ignore
        mcse = series.std(axis=(0, 1), ddof=1) / np.sqrt(ess)
        rhat = split_rhat(series)
    constant = np.ptp(series, axis=(0, 1)) <= floor
    return ChainStatistics(
        series.mean(axis=(0, 1)),
        np.where(constant, floor, np.maximum(mcse, floor)),
        np.where(constant, series.shape[0] * series.shape[1], ess),
        np.where(constant, 1.0, rhat),
    )
