"""Effective sample sizes of many series at once."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from .._types import AnyArray


class Correlations(NamedTuple):
    """Of the halves of chains: arrays over the series."""

    at: AnyArray  # autocorrelations, (series, lag)
    within: AnyArray  # the mean of the variances of the halves
    between: AnyArray  # the variance of their means
    moves: AnyArray  # whether a series changes at all
    draws: int  # of all halves together


def correlations(rows: Float[AnyArray, "series chain draw"]) -> Correlations:
    r"""Autocorrelations $\rho_t = 1 - (W - \hat\gamma_t) / V$ of chains that are split into halves.

    $\hat\gamma_t$ is the autocovariance at lag $t$, averaged over the halves, $W$ their mean variance
    and $V$ that of all draws, the means of the halves among them, as for R-hat.
    """
    series, chains, length = rows.shape
    rows = np.ascontiguousarray(rows)
    half = length // 2
    if length % 2:
        rows = np.concatenate([rows[..., :half], rows[..., -half:]], axis=1)
    split = rows.reshape(series, 2 * chains, half)
    moves = np.ptp(split, axis=(1, 2)) >= np.finfo(np.float64).resolution
    means = split.mean(axis=2)
    covariance = _autocovariances(split - means[..., None])
    within = covariance[:, 0] * (half / (half - 1.0))
    between = means.var(axis=1, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = (within[:, None] - covariance) / (covariance[:, 0] + between)[:, None]
    np.subtract(1.0, found, out=found)
    found[:, 0] = 1.0
    return Correlations(found, within, between, moves, 2 * chains * half)


def _autocovariances(centred: AnyArray) -> AnyArray:
    """Autocovariances at every lag, averaged over the chains: (series, draw)."""
    from scipy.fft import next_fast_len

    length = centred.shape[2]
    padded = next_fast_len(2 * length - 1, real=True)
    spectrum = np.fft.rfft(centred, padded).view(np.float64)
    power = np.einsum("kcf,kcf->kf", spectrum, spectrum)  # real and imaginary parts in turn
    power = power[:, ::2] + power[:, 1::2]
    return np.fft.irfft(power, padded)[:, :length] / (length * centred.shape[1])


def effective_size(rho: Correlations) -> Float[AnyArray, " series"]:
    r"""The effective sample size for the mean of each series, as arviz-stats has it.

    Autocorrelations are summed in pairs $P_j = \rho_{2j} + \rho_{2j+1}$ for as long as these are
    positive, each at most as large as the one before (Geyer's initial monotone sequence); of the first
    pair that is not, the even one is added where it is positive. As many as there are draws for a
    constant.

    >>> rows = np.random.default_rng(0).normal(size=(3, 4, 250))
    >>> effective_size(correlations(rows)).shape
    (3,)
    """
    pairs, even = _pairs(rho.at)
    last = np.where((pairs > 0).all(axis=1), pairs.shape[1] - 1, (pairs <= 0).argmax(axis=1))
    before = np.arange(pairs.shape[1]) < last[:, None]
    lowest = np.minimum.accumulate(pairs, axis=1)
    series = np.arange(len(pairs))
    whole, half = pairs[series, last], even[series, last]
    more = np.where((half > 0) | (whole >= 0), half, 0.0)
    tau = 2.0 * np.where(before, lowest, 0.0).sum(axis=1) - 1.0 + more
    tau = np.maximum(tau, 1.0 / np.log10(rho.draws))
    return np.where(rho.moves, rho.draws / tau, rho.draws)


def _pairs(rho: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Sums of two correlations, all that arviz-stats looks at, and the first of each two."""
    count = max((rho.shape[1] - 3) // 2, 0) + 1
    even, odd = rho[:, : 2 * count : 2], rho[:, 1 : 2 * count : 2]
    return even + odd, even


def rhat_of(rho: Correlations, chains: int) -> Float[AnyArray, " series"]:
    """R-hat of the halves of chains, as `split_rhat` has it; NaN for a single chain."""
    if chains < 2:
        return np.full(len(rho.within), np.nan)
    half = rho.draws // (2 * chains)
    return np.sqrt((half * rho.between / rho.within + half - 1) / half)
