from dataclasses import replace

import numpy as np

from .._types import AnyArray
from ._averages import SHORTEST
from ._batches import batch_means
from ._effective import correlations, effective_size
from ._floors import between_chain_error, floor_of
from ._quantiles import freedom_of
from ._rhat import rhat_of_halves
from ._statistics import ChainStatistics
from ._sums import ChainSums


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
    error = np.maximum(found.mcse, unit * between_chain_error(sums.chain_means))
    return replace(found, mcse=np.hypot(error, np.sqrt(unseen)))
