from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from .._types import AnyArray, Series
from ..chains._effective import correlations


class Means(NamedTuple):
    """Means, their standard errors, the freedom of these, and the skewness of the means."""

    mean: AnyArray
    error: AnyArray
    freedom: AnyArray
    skewness: AnyArray


def means_and_errors(series: Series) -> Means:
    r"""The mean of each series, its standard error, and the degrees of freedom of that error.

    The effective sample size is that of arviz-stats: split chains and Geyer's initial monotone
    sequence, here for all series at once. The degrees of freedom come from the kurtosis $\kappa$ of
    the series: the sample variance of $n$ effective draws is as sure as one of $2 n / (\kappa - 1)$
    Gaussian draws, and a variance that one draw makes up gets two. To this comes that an effective
    sample size from $m$ autocovariances is as sure as $n / m$ independent chains. The series are of one
    sampler: none is believed to forget faster than half of them do, for in short chains many seem to.

    Args:
        series: shape (chain, draw, k), at least four draws.

    >>> series = np.random.default_rng(0).normal(size=(4, 250, 1))
    >>> found = means_and_errors(series)
    >>> found.error.round(3).tolist(), bool(found.freedom[0] > 100)
    ([0.031], True)
    """
    n, tiny = series.shape[0] * series.shape[1], np.finfo(np.float64).tiny
    rows = np.ascontiguousarray(np.moveaxis(series, -1, 0))
    mean = rows.mean(axis=(1, 2))
    rows = rows - mean[:, None, None]
    size = np.maximum(np.abs(rows).max(axis=(1, 2)), tiny)
    rows /= size[:, None, None]  # fourth powers of what is very large would not be numbers
    square = (rows**2).reshape(-1, n)
    variance = square.sum(axis=1) / (n - 1)
    fourth = np.einsum("kn,kn->k", square, square) / n
    kurtosis = fourth / np.maximum(variance**2, tiny)
    third = np.einsum("kn,kn->k", square, rows.reshape(-1, n)) / n
    skewness = third / np.maximum(variance**1.5, tiny)
    ess, lags = effective_sizes(rows)
    ess, lags = np.minimum(ess, np.median(ess)), np.maximum(lags, np.median(lags))
    unsure = np.maximum(kurtosis - 1.0, 1.0) / (2.0 * np.minimum(ess, n)) + lags / n
    error, freedom = size * np.sqrt(variance / ess), np.maximum(1.0 / unsure, 1.0)
    return Means(mean, error, freedom, skewness / np.sqrt(ess))


def effective_sizes(rows: Float[AnyArray, "k chain draw"]) -> tuple[AnyArray, AnyArray]:
    """The effective sample size for the mean of each series, and the lags used.

    Without the last term that arviz-stats adds to the sum of pairs.
    """
    rho = correlations(rows)
    even = rho.at.shape[1] // 2 * 2
    pairs = rho.at[:, :even:2] + rho.at[:, 1:even:2]
    kept = np.logical_and.accumulate(pairs > 0, axis=1)
    kept[:, 0] = True
    pairs = np.minimum.accumulate(np.where(kept, pairs, 0.0), axis=1)
    tau = np.maximum(2.0 * pairs.sum(axis=1) - 1.0, 1.0 / np.log10(rho.draws))
    return np.where(rho.moves, rho.draws / tau, rho.draws), 2.0 * kept.sum(axis=1)
