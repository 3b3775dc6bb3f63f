from typing import NamedTuple

import numpy as np

from .._types import AnyArray, Series


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


def effective_sizes(rows: AnyArray) -> tuple[AnyArray, AnyArray]:
    """The effective sample size for the mean of each series (k, chain, draw), and the lags used."""
    half = rows.shape[2] // 2
    split = np.concatenate([rows[..., :half], rows[..., -half:]], axis=1)
    k, chains, length = split.shape
    means = split.mean(axis=2)
    covariance = _autocovariances(split - means[..., None])
    within = covariance[:, :1] * length / (length - 1.0)
    total = covariance[:, :1] + means.var(axis=1, ddof=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = 1.0 - (within - covariance) / total
    correlation[:, 0] = 1.0
    pairs = correlation[:, : length - length % 2].reshape(k, -1, 2).sum(axis=2)
    kept = np.logical_and.accumulate(pairs > 0, axis=1)
    kept[:, 0] = True
    pairs = np.minimum.accumulate(np.where(kept, pairs, 0.0), axis=1)
    tau = np.maximum(2.0 * pairs.sum(axis=1) - 1.0, 1.0 / np.log10(chains * length))
    ess = np.where(total[:, 0] > 0, chains * length / tau, chains * length)
    return ess, 2.0 * kept.sum(axis=1)


def _autocovariances(centred: AnyArray) -> AnyArray:
    """Autocovariances at every lag, averaged over the chains: (k, draw)."""
    length = centred.shape[2]
    padded = 1 << (2 * length - 1).bit_length()
    spectrum = np.fft.rfft(centred, padded)
    power = np.einsum("kcf,kcf->kf", spectrum.real, spectrum.real)
    power += np.einsum("kcf,kcf->kf", spectrum.imag, spectrum.imag)
    return np.fft.irfft(power, padded)[:, :length] / (length * centred.shape[1])
