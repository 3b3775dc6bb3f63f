"""Means, Monte Carlo standard errors, effective sample sizes and R-hat of chains."""

from dataclasses import replace
from typing import ClassVar, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Bool, Float

from .._types import AnyArray, Series

# k-hat of weights or integrands above which averages converge slowly, or not at all
HEAVY, HOPELESS = 0.7, 1.0
OUTLYING = 6.0  # the tail is light if the largest deviation is below this many standard deviations
LIMIT = 1.0 / 3.0  # k-hat above which the third moment is infinite: standard errors converge slowly
PRIOR_K, PRIOR_DRAWS, PRIOR_SCALE = 0.5, 10, 3  # the weak prior of Vehtari et al. (2024)
TIES = 1e-12


def pareto_khat(columns: Float[AnyArray, "n p"]) -> Float[AnyArray, " p"]:
    r"""Estimate the tail index $\hat k$ of each column: moments beyond the order $1/k$ are infinite.

    A generalised Pareto distribution is fitted to the largest $\min(n/5, 3\sqrt n)$ of
    $|x - \operatorname{median}(x)|$ by the method of Zhang and Stephens (2009) with the weak prior
    of Vehtari et al. (2024); arviz-stats gives the same values for such a tail. Both tails are
    pooled: a column is as heavy as its heavier side. The result is NaN for a tail of fewer than five
    draws, and for one whose values are all equal.

    Args:
        columns: shape (n, p).

    >>> draws = np.random.default_rng(0).standard_t(2, size=(1000, 1))
    >>> pareto_khat(np.hstack([draws, np.tanh(draws)])).round(1).tolist()
    [0.5, -2.1]
    """
    excess = _tail(np.asarray(columns, dtype=np.float64))
    p, m = excess.shape
    if m < 5:
        return np.full(p, np.nan)
    grid = 30 + int(m**0.5)
    quartile = excess[:, int(m / 4 + 0.5) - 1]
    usable = quartile > np.maximum(excess[:, 0], TIES * excess[:, -1])
    excess = np.where(usable[:, None], excess, 1.0 + np.arange(m))
    quartile = np.where(usable, quartile, 2.0)
    steps = 1.0 - np.sqrt(grid / (np.arange(1, grid + 1) - 0.5))
    b = steps[:, None] / (PRIOR_SCALE * quartile) + 1.0 / excess[:, -1]
    k = _mean_log(b, excess)
    log_weight = m * (np.log(-b / k) - k - 1.0)
    weight = np.exp(log_weight - log_weight.max(axis=0))
    weight /= weight.sum(axis=0)
    weight = np.where(weight >= 10 * np.finfo(np.float64).eps, weight, 0.0)
    b = (b * weight).sum(axis=0) / weight.sum(axis=0)
    k = _mean_log(b[None], excess)[0]
    k = (m * k + PRIOR_DRAWS * PRIOR_K) / (m + PRIOR_DRAWS)
    return np.where(usable, k, np.nan)


def heavy(columns: Float[AnyArray, "n p"], errors: float = 2.0) -> Bool[AnyArray, " p"]:
    r"""Mark the columns that are clearly heavy-tailed: $\hat k$ above 1/3 by two standard errors.

    The standard error is $(1 + \hat k) / \sqrt M$ for a tail of $M$ draws. Without it, light columns
    are flagged by chance: at 100 draws the tail has 20, and the standard error is 0.3. A column that
    is constant is not heavy.

    Args:
        columns: shape (n, p).
        errors: the number of standard errors; with 0 every column above the limit is flagged.

    >>> draws = np.random.default_rng(0).normal(size=(1000, 1))
    >>> heavy(np.hstack([draws, np.exp(3 * draws)])).tolist()
    [False, True]
    """
    k = pareto_khat(columns)
    return np.nan_to_num(k - errors * _khat_error(k, len(columns)), nan=-1.0) > LIMIT


def may_lack_mean(columns: Float[AnyArray, "n p"]) -> Bool[AnyArray, " p"]:
    r"""Mark the columns with a tail so heavy that their mean may not exist: $\hat k$ above 0.7.

    $\hat k$ must also exceed 1/2, where the variance becomes infinite, by one and a half standard errors,
    or short samples of light tails would be flagged by chance. The mean is infinite from $k = 1$ on.
    Columns whose largest deviation is at most six standard deviations are never marked.

    Args:
        columns: shape (n, p).

    >>> draws = np.random.default_rng(0).normal(size=(4000, 2))
    >>> may_lack_mean(np.stack([draws[:, 0], draws[:, 0] / draws[:, 1]], axis=1)).tolist()
    [False, True]
    """
    columns = np.asarray(columns, np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        deviation = np.abs(columns - columns.mean(axis=0)).max(axis=0)
        far = np.flatnonzero(deviation > OUTLYING * columns.std(axis=0))
    flags = np.zeros(columns.shape[1], dtype=bool)
    far = far[np.isfinite(deviation[far])]
    if len(far):
        k = pareto_khat(columns[:, far])
        lower = k - 1.5 * _khat_error(k, len(columns))
        flags[far] = (k > HEAVY) & (lower > 0.5)  # false for NaN
    return flags


def _khat_error(k: AnyArray, n: int) -> AnyArray:
    """Compute the standard error of k-hat from n draws."""
    return (1.0 + k) / np.sqrt(max(tail_length(n), 1))


def tail_length(n: int) -> int:
    """Compute how many of n draws make up the tail."""
    return int(np.ceil(min(n / 5.0, 3.0 * np.sqrt(n))))


def _tail(columns: AnyArray) -> AnyArray:
    """Compute the excesses of the m largest deviations from the median over the next one: (p, m), sorted."""
    n = len(columns)
    m = min(tail_length(n), n - 1)
    rows = np.sort(columns.T, axis=1)
    middle = 0.5 * (rows[:, (n - 1) // 2] + rows[:, n // 2])
    largest = np.sort(np.abs(rows - middle[:, None]), axis=1)[:, n - m - 1 :]
    return largest[:, 1:] - largest[:, :1]


def _mean_log(b: AnyArray, excess: AnyArray) -> AnyArray:
    """Compute the mean of log(1 - b x) over each tail for each b of the grid: (grid, p)."""
    out, work = np.empty_like(b), np.empty_like(excess)
    for row, mean in zip(b, out, strict=True):
        np.multiply(excess, -row[:, None], out=work)
        work += 1.0
        np.log(work, out=work).mean(axis=1, out=mean)
    return out


def linearised(
    series: Float[AnyArray, "*draws k"], weights: Float[AnyArray, "*draws"] | None
) -> np.ndarray:
    r"""Linearise weighted averages: series whose plain averages are the weighted ones, errors included.

    The self-normalised average of $r$ with weights $w$ is $c = \sum_i w_i r_i / \sum_i w_i$. The series

    $$ \ell_i = c + \frac{w_i}{\bar w} (r_i - c) $$

    has the mean $c$, and the standard error of its mean, autocorrelation included, is that of $c$ by the
    delta method: the error of a ratio of two averages. Without weights the series is returned unchanged.

    Args:
        series: $r$, the axes of the draws first and the integrands last.
        weights: $w$, one for each draw; they need not be normalised.

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
    """Normalise weights to mean 1 and append an axis for columns; ones if there are no weights.

    >>> shares(np.array([1.0, 3.0])).tolist()
    [[0.5], [1.5]]
    """
    if weights is None:
        return np.ones(1)
    weights = np.asarray(weights, np.float64)
    return (weights / weights.mean())[..., None]


class Correlations(NamedTuple):
    """Autocorrelations and variances of split chains: arrays over the series."""

    at: AnyArray  # autocorrelations, (series, lag)
    within: AnyArray  # the mean of the variances of the halves
    between: AnyArray  # the variance of the means of the halves
    moves: AnyArray  # whether a series is not constant
    draws: int  # the number of draws in all halves together


def correlations(rows: Float[AnyArray, "series chain draw"]) -> Correlations:
    r"""Compute the autocorrelations $\rho_t = 1 - (W - \hat\gamma_t) / V$ of split chains.

    $\hat\gamma_t$ is the autocovariance at lag $t$, averaged over the halves, $W$ their mean variance and
    $V$ the variance of all draws, that between the means of the halves included, as for R-hat.
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
        rho = (within[:, None] - covariance) / (covariance[:, 0] + between)[:, None]
    np.subtract(1.0, rho, out=rho)
    rho[:, 0] = 1.0
    return Correlations(rho, within, between, moves, 2 * chains * half)


def _autocovariances(centred: AnyArray) -> AnyArray:
    """Compute autocovariances at every lag, averaged over the chains: (series, draw)."""
    from scipy.fft import next_fast_len

    length = centred.shape[2]
    padded = next_fast_len(2 * length - 1, real=True)
    spectrum = np.fft.rfft(centred, padded).view(np.float64)
    power = np.einsum("kcf,kcf->kf", spectrum, spectrum)  # real and imaginary parts in turn
    power = power[:, ::2] + power[:, 1::2]
    return np.fft.irfft(power, padded)[:, :length] / (length * centred.shape[1])


def effective_size(rho: Correlations) -> Float[AnyArray, " series"]:
    r"""Compute the effective sample size for the mean of each series, as arviz-stats does.

    Autocorrelations are summed in pairs $P_j = \rho_{2j} + \rho_{2j+1}$ as long as these are positive,
    each capped by the previous one (Geyer's initial monotone sequence); of the first pair that is not
    positive, the even term is added if it is positive. A constant series gets the number of draws.

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
    """Sum autocorrelations in pairs, as many as arviz-stats uses; also return the first of each pair."""
    count = max((rho.shape[1] - 3) // 2, 0) + 1
    even, odd = rho[:, : 2 * count : 2], rho[:, 1 : 2 * count : 2]
    return even + odd, even


def rhat_of(rho: Correlations, chains: int) -> Float[AnyArray, " series"]:
    """Compute split R-hat from autocorrelations of half chains; NaN for a single chain."""
    if chains < 2:
        return np.full(len(rho.within), np.nan)
    half = rho.draws // (2 * chains)
    return _rhat(rho.between, rho.within, half)


BATCHES = 100  # approximate largest number of batches of all chains together


def batch_means(series: Series) -> np.ndarray:
    r"""Compute centred means of consecutive draws, (batch, k), for correlations of averages.

    Chains of $L$ draws give $\sqrt L$ batches each, fewer if there are many chains. An incomplete
    batch at the start of a chain is left out.

    >>> batch_means(np.random.default_rng(0).normal(size=(4, 250, 3))).shape
    (60, 3)
    """
    chains, length, k = series.shape
    count = max(min(int(np.sqrt(length)), -(-BATCHES // chains)), 1)
    size = length // count
    cut = np.asarray(series)[:, length - count * size :]
    means = cut.reshape(chains, count, size, k).mean(axis=2).reshape(chains * count, k)
    return means - means.mean(axis=0)


def correlation(batches: np.ndarray) -> np.ndarray:
    """Compute the correlations of averages, (k, k), from the batches of their series.

    Averages that do not vary are treated as independent of all others.

    >>> correlation(np.array([[1.0, -2.0], [-1.0, 2.0]])).round(1).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    size = np.sqrt((batches**2).sum(axis=0))
    unit = batches / np.where(size > 0, size, 1.0)
    matrix = np.clip(unit.T @ unit, -1.0, 1.0)
    np.fill_diagonal(matrix, 1.0)
    return matrix


# Rounding error of a mean, in units of the machine epsilon: smaller standard errors mean nothing.
# It is the standard error that is reported for a perfect control variate.
FLOOR = 4.0


def floor_of(size: AnyArray) -> np.ndarray:
    """Compute the rounding error of means of numbers of this size, (k,): a floor for standard errors."""
    return FLOOR * np.finfo(np.float64).eps * np.maximum(size, np.finfo(np.float64).tiny)


def one_outcome(mean: AnyArray, mcse: AnyArray) -> np.ndarray:
    """Tell which series are 0 on every draw, or 1, as that of a rare event may be, (k,).

    The draws then do not tell how accurate its probability is.

    >>> one_outcome(np.array([0.0, 1.0, 2.0, 1e-20]), np.array([0.0, 1e-16, 0.0, 1e-22])).tolist()
    [True, True, False, False]
    """
    rounding = floor_of(np.abs(mean))
    return (mcse <= rounding) & ((mean == 0) | (np.abs(mean - 1) <= rounding))


def between_chain_error(means: AnyArray) -> np.ndarray:
    r"""Compute a lower bound of the standard error from the means of the chains, (k,).

    With $S^2$ the variance of the means of $M$ chains, $S^2 / M$ estimates the squared error of
    their average with $M - 1$ degrees of freedom, whatever happens within chains. It is divided by
    the 99% quantile of $\chi^2_{M-1} / (M - 1)$, so that it hardly ever exceeds the standard error of
    chains that agree. Zero for one chain.

    Args:
        means: the means of each chain, (chain, k).

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
TAILS = 4.0  # divisor of the excess kurtosis: 2 in theory, for independent draws


def freedom_of(kurtosis: AnyArray, ess: AnyArray, draws: int) -> np.ndarray:
    r"""Compute the degrees of freedom of the standard errors of the means of series, (k,).

    A standard error from few effective draws is itself uncertain, and more so if few draws dominate
    it. With $m$ effective draws (at most the number of draws) and kurtosis $\kappa$,

    $$ \frac1\nu = \frac2m + \frac{\max(\kappa - 3, 0)}{4 m} , $$

    and $\nu$ is at least 1.

    Args:
        kurtosis: the kurtosis of each series, (k,).
        ess: effective sample sizes, (k,).
        draws: the number of draws in all chains.

    >>> freedom_of(np.array([3.0, 9.0]), np.array([1000.0, 1000.0]), 1000).round().tolist()
    [500.0, 286.0]
    """
    draws = np.minimum(ess, draws)
    return 1 / np.clip((PER_DEGREE + np.maximum(kurtosis - 3, 0) / TAILS) / draws, 1e-300, 1.0)


def t_quantile(level: float, freedom: AnyArray) -> np.ndarray:
    """Compute the half-width of an interval in standard errors, from Student's distribution.

    Args:
        level: the probability that the interval should cover.
        freedom: degrees of freedom, (k,).

    >>> t_quantile(0.95, np.array([5.0, 500.0])).round(2).tolist()
    [2.57, 1.96]
    """
    from scipy.special import stdtrit

    if np.ndim(level) or not 0 < level < 1:
        raise ValueError(
            f"level {level}: give the probability that an interval covers, one number such as 0.95."
        )
    return np.asarray(stdtrit(freedom, (1 + level) / 2))


def split_rhat(series: Series) -> np.ndarray:
    """Compute split R-hat of each series (chain, draw, k), without rank normalisation.

    The residuals of a good control variate are tiny on most draws and large on a few. Ranks are
    dominated by the tiny ones, whose level differs from fold to fold, so rank-normalised R-hat would be
    high although the means agree. NaN for a single chain.

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
    """Compute split R-hat from means and variances, (2 chain, k), of half chains of `half` draws."""
    return _rhat(means.var(axis=0, ddof=1), variances.mean(axis=0), half)


def _rhat(between: AnyArray, within: AnyArray, half: int) -> np.ndarray:
    """Compute R-hat from the variance between and the mean variance within half chains of `half` draws."""
    return np.sqrt((half * between / within + half - 1) / half)


SHORTEST = 4  # least number of draws of a chain for an effective sample size

type ManySeries = Float[AnyArray, "series chain draw"]


class Averages(NamedTuple):
    """Means, standard errors, effective sample sizes, R-hat and degrees of freedom of series."""

    mean: AnyArray
    mcse: AnyArray
    ess: AnyArray
    rhat: AnyArray
    freedom: AnyArray


def averages(rows: ManySeries, scale: AnyArray) -> Averages:
    """Compute mean, standard error, effective sample size, R-hat and degrees of freedom of each series.

    The standard error of chains of fewer than four draws is NaN, as in ArviZ.

    Args:
        rows: the series.
        scale: the size of the numbers that each series was computed from, for the floor of its error.
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
    """Compute the variance and the kurtosis of each series."""
    n = flat.shape[1]
    square = flat - flat.mean(axis=1, keepdims=True)
    square *= square
    sums = square.sum(axis=1)
    fourth = np.einsum("kn,kn->k", square, square) / n
    return sums / (n - 1), fourth / np.where(sums > 0, sums / n, 1.0) ** 2


def controlled_averages(rows: ManySeries, scale: AnyArray, unseen: AnyArray) -> Averages:
    """Compute the averages of series f - g, with the errors of `controlled_statistics`.

    Args:
        rows: f - g.
        scale: the size of f.
        unseen: additional variance of the mean that the series does not show.
    """
    result = averages(rows, scale)
    return result._replace(mcse=with_floor(result.mcse, rows.mean(axis=2).T, unseen))


def with_floor(mcse: AnyArray, means: AnyArray, unseen: AnyArray) -> np.ndarray:
    """Apply the floor from the means of the chains to standard errors, and add unseen variance."""
    return np.hypot(np.maximum(mcse, between_chain_error(means)), np.sqrt(unseen))


NUMBERS = 2**16  # numbers that are processed at once, so that they fit in the cache


class ChainStatistics(eqx.Module):
    """Means of series with their standard errors and convergence diagnostics: arrays over k.

    Attributes:
        mean: the mean over all draws.
        mcse: the Monte Carlo standard error of the mean.
        ess: the effective sample size.
        rhat: split R-hat.
        freedom: degrees of freedom of the standard error, for intervals.
        batches: centred means of consecutive draws, (batch, k), for correlations of means.

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
    """Compute mean, Monte Carlo standard error, effective sample size and split R-hat of each series.

    The numbers equal those of ArviZ. A series that is constant up to rounding, such as the residuals
    of a perfect control variate, gets the standard error of the rounding.

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
    blocks = []
    for start in range(0, k, width):
        block = slice(start, start + width)
        rows = np.ascontiguousarray(np.moveaxis(series[..., block], -1, 0))
        blocks.append(averages(rows, size[block]))
    result = Averages(*map(np.concatenate, zip(*blocks, strict=True)))
    return ChainStatistics(*result, batch_means(series))


def _finite(series: Series) -> np.ndarray:
    """Return the series as float64, or refuse wrong shapes, types and values that are not finite."""
    series = np.asarray(series)
    if series.dtype.kind not in "fiub" or series.ndim != 3 or 0 in series.shape:
        raise ValueError(
            f"the series are of type {series.dtype} and shape {series.shape}: give real numbers as "
            "(chain, draw, k), at least one of each."
        )
    if not np.all(np.isfinite(series)):
        raise ValueError(
            "the series are not finite on every draw, so they have no average: leave out the draws on "
            "which they are not finite."
        )
    return series.astype(np.float64, copy=False)


def _largest(series: AnyArray) -> np.ndarray:
    """Compute the largest absolute value of each series without a copy of them."""
    return np.maximum(series.max(axis=(0, 1)), -series.min(axis=(0, 1)))


def controlled_statistics(series: Series, f: AnyArray, unseen: AnyArray) -> ChainStatistics:
    """Compute statistics of residuals f - g of control variates, with a floor from the chains' means.

    Args:
        series: f - g, (chain, draw, k).
        f: the integrands, (chain, draw, k), on as many draws or more.
        unseen: additional variance of the mean that the series does not show, (k,) or one for all.
    """
    statistics = chain_statistics(series, _largest(np.asarray(f)))
    means = np.asarray(series, np.float64).mean(axis=1)
    return replace(statistics, mcse=with_floor(statistics.mcse, means, unseen))
