"""Means, Monte Carlo standard errors, effective sample sizes and R-hat of chains."""

from dataclasses import replace
from typing import ClassVar, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Float

from .._types import AnyArray, Series


def linearised(
    series: Float[AnyArray, "*draws k"], weights: Float[AnyArray, "*draws"] | None
) -> np.ndarray:
    r"""Series whose plain averages are weighted ones, and vary as these do.

    The self-normalised average of $r$ with weights $w$ is $c = \sum_i w_i r_i / \sum_i w_i$. The series

    $$ \ell_i = c + \frac{w_i}{\bar w} (r_i - c) $$

    has the mean $c$, and the standard error of its mean, autocorrelation included, is that of $c$ by the
    delta method: the error of a ratio of two averages. Without weights the series is what it was.

    Args:
        series: $r$, the axes of the draws first and the integrands last.
        weights: $w$, one for each draw, of whatever sum.

    >>> linearised(np.array([[1.0], [5.0]]), np.array([1.5, 0.5])).tolist()
    [[0.5], [3.5]]
    """
    series = np.asarray(series)
    if weights is None:
        return series
    share = shares(weights)
    axes = tuple(range(series.ndim - 1))
    centre = (share * series).mean(axis=axes)
    return centre + share * (series - centre)


def shares(weights: Float[AnyArray, "*draws"] | None) -> Float[AnyArray, "*axes 1"]:
    """Weights of mean 1, with an axis for the columns of the draws; ones where there are none.

    >>> shares(np.array([1.0, 3.0])).tolist()
    [[0.5], [1.5]]
    """
    if weights is None:
        return np.ones(1)
    weights = np.asarray(weights, np.float64)
    return (weights / weights.mean())[..., None]


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
    return _rhat(rho.between, rho.within, half)


BATCHES = 100  # at most, of all chains together, or a few more


def batch_means(series: Series) -> np.ndarray:
    r"""Means of consecutive draws less the mean of all, (batch, k), for correlations of averages.

    Chains of $L$ draws give $\sqrt L$ batches each, fewer where chains are many. What is left over
    at the start of a chain is left out.

    >>> batch_means(np.random.default_rng(0).normal(size=(4, 250, 3))).shape
    (60, 3)
    """
    chains, length, k = series.shape
    each = max(min(int(np.sqrt(length)), -(-BATCHES // chains)), 1)
    size = length // each
    cut = np.asarray(series)[:, length - each * size :]
    means = cut.reshape(chains, each, size, k).mean(axis=2).reshape(chains * each, k)
    return means - means.mean(axis=0)


def correlation(batches: np.ndarray) -> np.ndarray:
    """Correlations of averages, (k, k), from the batches of their series.

    Averages that do not vary are taken to be independent of all others.

    >>> correlation(np.array([[1.0, -2.0], [-1.0, 2.0]])).round(1).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    size = np.sqrt((batches**2).sum(axis=0))
    unit = batches / np.where(size > 0, size, 1.0)
    found = np.clip(unit.T @ unit, -1.0, 1.0)
    np.fill_diagonal(found, 1.0)
    return found


# Rounding leaves about this much of a sum's relative error: below it a standard error says
# nothing. It is the floor that a perfect control variate is reported with.
FLOOR = 4.0


def floor_of(size: AnyArray) -> np.ndarray:
    """The standard error that rounding leaves of a mean of numbers of this size, (k,)."""
    return FLOOR * np.finfo(np.float64).eps * np.maximum(size, np.finfo(np.float64).tiny)


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


PER_DEGREE = 2.0  # effective draws for each degree of freedom of a standard error
TAILS = 4.0  # how much a heavy tail takes of them: 2 in theory, for independent draws


def freedom_of(kurtosis: AnyArray, ess: AnyArray, draws: int) -> np.ndarray:
    r"""How many degrees of freedom the standard errors of the means of some series have, (k,).

    A standard error from few effective draws is itself uncertain, and more so where few draws make
    most of it. With $m$ effective draws (at most as many as there are draws) and kurtosis $\kappa$,

    $$ \frac1\nu = \frac2m + \frac{\max(\kappa - 3, 0)}{4 m} , $$

    and $\nu$ is at least 1.

    Args:
        kurtosis: of each series, (k,).
        ess: effective sample sizes, (k,).
        draws: of all chains.

    >>> freedom_of(np.array([3.0, 9.0]), np.array([1000.0, 1000.0]), 1000).round().tolist()
    [500.0, 286.0]
    """
    draws = np.minimum(ess, draws)
    return 1 / np.clip((PER_DEGREE + np.maximum(kurtosis - 3, 0) / TAILS) / draws, 1e-300, 1.0)


def t_quantile(level: float, freedom: AnyArray) -> np.ndarray:
    """How many standard errors an interval reaches to each side, by Student's distribution.

    Args:
        level: the probability that the interval should cover.
        freedom: degrees of freedom, (k,).

    >>> t_quantile(0.95, np.array([5.0, 500.0])).round(2).tolist()
    [2.57, 1.96]
    """
    from scipy.special import stdtrit

    if not 0 < level < 1:
        raise ValueError(f"level {level}: give the probability to cover, such as 0.95.")
    return np.asarray(stdtrit(freedom, (1 + level) / 2))


def split_rhat(series: Series) -> np.ndarray:
    """Split R-hat of each series (chain, draw, k): do the halves of all chains agree on the mean?

    Not the rank-normalised one. What a good control variate leaves is tiny on most draws and not
    on a few; ranks see the tiny ones only, whose level differs from fold to fold, and call for
    alarm when the means, which are what is averaged, agree. NaN for a single chain.

    >>> series = np.random.default_rng(0).normal(size=(4, 100, 2))
    >>> bool(np.all(split_rhat(series) < 1.05))
    True
    """
    chains, length, k = series.shape
    if chains < 2 or length < 4:
        return np.full(k, np.nan)
    half = length // 2
    split = np.concatenate([series[:, :half], series[:, -half:]])
    return rhat_of_halves(split.mean(axis=1), split.var(axis=1, ddof=1), half)


def rhat_of_halves(means: AnyArray, variances: AnyArray, half: int) -> np.ndarray:
    """Split R-hat from the means and variances of half chains of `half` draws, each (2 chain, k)."""
    return _rhat(means.var(axis=0, ddof=1), variances.mean(axis=0), half)


def _rhat(between: AnyArray, within: AnyArray, half: int) -> np.ndarray:
    """R-hat from the variance of the means of halves of `half` draws and the mean of their variances."""
    return np.sqrt((half * between / within + half - 1) / half)


SHORTEST = 4  # draws of a chain that has an effective sample size

type ManySeries = Float[AnyArray, "series chain draw"]


class Averages(NamedTuple):
    """Arrays over the series."""

    mean: AnyArray
    mcse: AnyArray
    ess: AnyArray
    rhat: AnyArray
    freedom: AnyArray


def averages(rows: ManySeries, scale: AnyArray) -> Averages:
    """Mean, standard error, effective sample size, R-hat and degrees of freedom of each series.

    A series of fewer than four draws a chain has no error, as in ArviZ.

    Args:
        rows: the series.
        scale: the size of the numbers that each was computed from, for the floor of its error.
    """
    floor = floor_of(scale)
    spread = np.ptp(rows, axis=(1, 2))
    constant = spread <= floor
    unit = rows - rows[:, :1, :1]
    unit /= np.where(spread > 0, spread, 1.0)[:, None, None]
    draws = rows.shape[1] * rows.shape[2]
    variance, kurtosis = _moments(unit.reshape(-1, draws))
    ess = rhat = np.full(len(rows), np.nan)
    with np.errstate(all="ignore"):  # 0 / 0 on constant series: floored below
        if rows.shape[2] >= SHORTEST:
            rho = correlations(unit)
            ess, rhat = effective_size(rho), rhat_of(rho, rows.shape[1])
        mcse = spread * np.sqrt(variance / ess)
    ess = np.where(constant, draws, ess)
    return Averages(
        rows.mean(axis=(1, 2)),
        np.where(constant, floor, np.maximum(mcse, floor)),
        ess,
        np.where(constant, 1.0, rhat),
        freedom_of(kurtosis, ess, draws),
    )


def _moments(flat: Float[AnyArray, "series n"]) -> tuple[AnyArray, AnyArray]:
    """Variances and kurtoses."""
    n = flat.shape[1]
    square = flat - flat.mean(axis=1, keepdims=True)
    square *= square
    sums = square.sum(axis=1)
    fourth = np.einsum("kn,kn->k", square, square) / n
    return sums / (n - 1), fourth / np.where(sums > 0, sums / n, 1.0) ** 2


def controlled_averages(rows: ManySeries, scale: AnyArray, unseen: AnyArray) -> Averages:
    """The numbers that `controlled_statistics` gives for each series.

    Args:
        rows: f - g.
        scale: the size of f.
        unseen: the variance of the mean that the series does not show.
    """
    found = averages(rows, scale)
    return found._replace(mcse=with_floor(found.mcse, rows.mean(axis=2).T, unseen))


def with_floor(mcse: AnyArray, means: AnyArray, unseen: AnyArray) -> np.ndarray:
    """The standard error with that of the chains' means as a floor, and unseen variance added."""
    return np.hypot(np.maximum(mcse, between_chain_error(means)), np.sqrt(unseen))


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

    references: ClassVar[tuple[str, ...]] = ("vehtari2021rank",)
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
    means = np.asarray(series, np.float64).mean(axis=1)
    return replace(found, mcse=with_floor(found.mcse, means, unseen))
