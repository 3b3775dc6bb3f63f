"""Stein identities of draws and scores: deviations, errors, critical values, and what the audit finds."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from .._numerics import solve_triangular
from .._types import AnyArray, Chains, Points, Series
from ..chains import correlations, linearised, shares
from ..data import DRAWS_PER_DIM

type Names = tuple[str, ...]
type ChainWeights = Float[AnyArray, "chain draw"] | None

# Nominal rates of false alarms of one audit, each split among its identities (Bonferroni).
BIAS_ALARM = 5e-5  # means and squares, which bound the bias of estimates, and temperature
FALSE_ALARM = 2e-5  # all others
CHAIN_ALARM = 1e-5  # means and squares of single chains
MATERIAL = 0.02  # smaller deviations, in standard deviations, are never reported
QUANTILE = 3.0  # an error at the printed limit goes unnoticed once in 700 audits
DIRECTIONS = 20  # directions along which pairs are tested; all dimensions if there are fewer
NORMAL_QUARTILES = 1.349  # interquartile range of a standard normal
BATCHES = 1000  # longer chains are first averaged over consecutive draws


@dataclass(frozen=True)
class Finding:
    """A problem or remark reported by the audit.

    Args:
        kind: one word, such as `sign`, `jacobian`, `lag` or `divergences`; the guide lists them.
        message: what is wrong and what to do next.
        fatal: whether estimates from the sample would be wrong; otherwise it is a remark.
        columns: the names of the dimensions concerned, if any.

    >>> Finding("short", "3 draws are too few: give 20.", fatal=False).kind
    'short'
    """

    kind: str
    message: str
    fatal: bool = True
    columns: Names = ()


def named(names: Names, mask: AnyArray) -> Names:
    """Select the names at which a mask is true."""
    return tuple(name for name, chosen in zip(names, mask, strict=True) if chosen)


@dataclass(frozen=True)
class Repair:
    """Draws and scores with one common mistake undone, and the message that describes it."""

    kind: str
    draws: Chains
    scores: Chains
    message: str
    columns: Names = ()
    fitted: int = 0  # number of parameters that were fitted to find it
    kept: slice = slice(None)  # the draws of every chain that are kept


class Means(NamedTuple):
    """Means with their standard errors, the degrees of freedom of these, and the means' skewness."""

    mean: AnyArray
    error: AnyArray
    freedom: AnyArray
    skewness: AnyArray


def means_and_errors(series: Series) -> Means:
    r"""Compute the mean of each series, its standard error, and the degrees of freedom of that error.

    The effective sample size is that of arviz-stats: split chains and Geyer's initial monotone
    sequence, here for all series at once. The degrees of freedom come from the kurtosis $\kappa$ of
    the series: the sample variance of $n$ effective draws is as precise as one of $2 n / (\kappa - 1)$
    Gaussian draws, and a variance dominated by one draw gets two. In addition, an effective sample size
    from $m$ autocovariances is as precise as $n / m$ independent chains. The series come from one sampler,
    so no effective sample size may exceed the median one: in short chains many are overestimated.

    Args:
        series: shape (chain, draw, k), at least four draws.

    >>> series = np.random.default_rng(0).normal(size=(4, 250, 1))
    >>> means = means_and_errors(series)
    >>> means.error.round(3).tolist(), bool(means.freedom[0] > 100)
    ([0.031], True)
    """
    n, tiny = series.shape[0] * series.shape[1], np.finfo(np.float64).tiny
    rows = np.ascontiguousarray(np.moveaxis(series, -1, 0))
    mean = rows.mean(axis=(1, 2))
    rows = rows - mean[:, None, None]
    size = np.maximum(np.abs(rows).max(axis=(1, 2)), tiny)
    rows /= size[:, None, None]  # so that fourth powers do not overflow
    square = (rows**2).reshape(-1, n)
    variance = square.sum(axis=1) / (n - 1)
    fourth = np.einsum("kn,kn->k", square, square) / n
    kurtosis = fourth / np.maximum(variance**2, tiny)
    third = np.einsum("kn,kn->k", square, rows.reshape(-1, n)) / n
    skewness = third / np.maximum(variance**1.5, tiny)
    ess, lags = effective_sizes(rows)
    ess, lags = np.minimum(ess, np.median(ess)), np.maximum(lags, np.median(lags))
    uncertainty = np.maximum(kurtosis - 1.0, 1.0) / (2.0 * np.minimum(ess, n)) + lags / n
    error, freedom = size * np.sqrt(variance / ess), np.maximum(1.0 / uncertainty, 1.0)
    return Means(mean, error, freedom, skewness / np.sqrt(ess))


def effective_sizes(rows: Float[AnyArray, "k chain draw"]) -> tuple[AnyArray, AnyArray]:
    """Compute the effective sample size for the mean of each series, and the number of lags used.

    The last term that arviz-stats adds to the sum of pairs is left out.
    """
    rho = correlations(rows)
    even = rho.at.shape[1] // 2 * 2
    pairs = rho.at[:, :even:2] + rho.at[:, 1:even:2]
    kept = np.logical_and.accumulate(pairs > 0, axis=1)
    kept[:, 0] = True
    pairs = np.minimum.accumulate(np.where(kept, pairs, 0.0), axis=1)
    tau = np.maximum(2.0 * pairs.sum(axis=1) - 1.0, 1.0 / np.log10(rho.draws))
    return np.where(rho.moves, rho.draws / tau, rho.draws), 2.0 * kept.sum(axis=1)


@dataclass(frozen=True)
class Identities:
    """Deviations of the Stein identities with their errors and critical values, arrays over identities.

    The first dim entries are the means of the scores and the next dim the products of each dimension with
    its score; then come two bounded functions of each dimension, the means and pairs of directions, and
    last the mean over dimensions of the products.
    """

    deviation: AnyArray
    error: AnyArray
    critical: AnyArray
    widest: AnyArray  # the critical values on the side where they are wider
    dim: int

    @property
    def allowed(self) -> AnyArray:
        """The largest allowed deviation of each identity."""
        return np.maximum(self.critical * self.error, MATERIAL)

    @property
    def strength(self) -> AnyArray:
        """The deviations in units of the allowed ones: an identity fails above 1."""
        return np.abs(self.deviation) / self.allowed

    @property
    def misfit(self) -> float:
        """The sum of the squared deviations in units of their errors."""
        return float(np.sum((self.deviation / self.error) ** 2))

    @property
    def hold(self) -> bool:
        """Whether all identities hold."""
        return bool(np.all(self.strength <= 1.0))

    @property
    def limit(self) -> AnyArray:
        """The largest errors that the first 2 dim identities may miss: (2, dim), means and squares."""
        error, widest = self.error[: 2 * self.dim], self.widest[: 2 * self.dim]
        return (np.maximum(widest * error, MATERIAL) + QUANTILE * error).reshape(2, self.dim)

    def label(self, index: int, names: tuple[str, ...]) -> str:
        """Describe one identity in words."""
        kind, i = divmod(index, self.dim)
        if index == self.strength.size - 1:
            return "all dimensions times their scores"
        if kind >= 4:
            return "a combination of the dimensions with the score along another"
        return (
            f"the mean score of {names[i]}",
            f"{names[i]} times its score",
            f"tanh of {names[i]} times its score",
            f"a cosine of {names[i]} times its score",
        )[kind]


class Coordinates(NamedTuple):
    """Standardised and whitened draws and scores, in the notation of `identities`."""

    y: Chains  # standardised draws
    u: Chains  # their scores times the covariance
    z: Chains  # whitened draws, projected to some directions if there are many dimensions
    t: Chains  # scores of the whitened draws


def identities(
    draws: Chains, scores: Chains, weights: ChainWeights = None, at: Coordinates | None = None
) -> Identities:
    r"""Test the Stein identities of draws and scores.

    With $y_i$ the standardised dimension $i$, $\Sigma$ the covariance of the draws and $u = \Sigma s$
    in units of the standard deviations (for a Gaussian $u = -y$), and with whitened draws $z$ and
    their scores $t$, correct scores give

    $$E[\varphi(y_i)\,u_i + \varphi'(y_i)] = 0 \;\text{ for }\;
      \varphi = 1,\; y,\; \tanh w,\; \cos 2 w, \qquad E[t_j] = 0, \qquad
      E[z_i t_j] = -1_{i = j}, \qquad E[z \cdot t] = -d.$$

    where $w$ is $y$ centred at its median and scaled by its quartiles. The mean of $u_i$ is what a
    constant error of the scores adds to the estimate of $E[y_i]$ by a first-degree control variate, and
    the mean of $y_i u_i + 1$ is what a linear error adds to $E[y_i^2]$, so these bound the bias. The
    bounded functions find errors that heavy tails hide from the others. Beyond 20 dimensions $z$ and $t$
    are projected to 20 random directions. With weights all means are self-normalised weighted means.

    Args:
        draws: the draws of all chains.
        scores: their scores.
        weights: importance weights of the draws, if any.
        at: the `coordinates` of draws and scores, if they are known.
    """
    y, u, z, t = coordinates(draws, scores, weights) if at is None else at
    dim, count = y.shape[2], z.shape[2]
    unit = np.eye(count)
    pairs = (z[..., i : i + 1] * t + unit[i] for i in range(count))
    trace = (z * t).mean(axis=2, keepdims=True) + 1.0
    rates = false_alarms(dim, count)
    return tested(chain(own_identities(y, u), [t], pairs, [trace]), dim, weights, rates)


def false_alarms(dim: int, directions: int) -> AnyArray:
    """Compute the rate of false alarms of each identity: larger for means, squares and the trace.

    The trace has at least a quarter of them: it averages over dimensions, and in many it is the most precise.
    """
    size = 4 * dim + directions + directions**2 + 1
    rates = np.full(size, FALSE_ALARM / size)
    of_trace = max(0.25, 1 / (2 * dim + 1))
    rates[: 2 * dim], rates[-1] = BIAS_ALARM * (1 - of_trace) / (2 * dim), BIAS_ALARM * of_trace
    return rates


def chain_identities(
    draws: Chains, scores: Chains, weights: ChainWeights = None, at: Coordinates | None = None
) -> AnyArray:
    """Compute the largest deviation of each chain's means and squares; a chain fails above 1.

    The arguments are those of `identities`.
    """
    chains, length, dim = draws.shape
    y, u, _, _ = coordinates(draws, scores, weights) if at is None else at
    series = linearised(np.concatenate([u, y * u + 1.0], axis=2), weights)
    by_chain = np.moveaxis(series, 0, 1).reshape(1, length, -1)  # every chain has its own series
    tests = tested(
        [by_chain], dim, None, np.full(by_chain.shape[2], CHAIN_ALARM / by_chain.shape[2])
    )
    return tests.strength.reshape(chains, -1).max(axis=1)


def tested(
    series: Iterable[Chains], dim: int, weights: ChainWeights = None, rates: AnyArray | None = None
) -> Identities:
    """Test whether series that have mean zero for correct scores deviate from it.

    Args:
        series: arrays of series, each (chain, draw, k).
        dim: the dimension of a draw.
        weights: importance weights of the draws, if any.
        rates: the rate of false alarms of each series; equal ones by default.
    """
    batched = [_batched(linearised(block, weights)) for block in series]
    means = means_and_errors(np.concatenate(batched, axis=2))
    rounding = np.finfo(np.float64).eps * (1.0 + np.abs(means.mean))
    error = np.maximum(means.error, rounding)
    equal = np.full(means.mean.size, FALSE_ALARM / means.mean.size)
    return Identities(means.mean, error, *critical(means, equal if rates is None else rates), dim)


def own_identities(y: Chains, u: Chains) -> list[AnyArray]:
    """Apply the Stein operator to four functions of each dimension: mean zero for correct scores."""
    low, middle, high = _quartiles(y)
    width = np.where(high > low, (high - low) / NORMAL_QUARTILES, 1.0)
    w, v = (y - middle) / width, u * width
    bounded = np.tanh(w)
    wave = np.cos(2.0 * w) * v - 2.0 * np.sin(2.0 * w)
    return [u, y * u + 1.0, bounded * v + 1.0 - bounded**2, wave]


def _quartiles(y: Chains) -> AnyArray:
    """Compute the quartiles of each dimension, (3, dim)."""
    rows = np.sort(y.reshape(-1, y.shape[2]).T, axis=1)
    return rows[:, np.arange(1, 4) * (rows.shape[1] - 1) // 4].T


def coordinates(draws: Chains, scores: Chains, weights: ChainWeights = None) -> Coordinates:
    """Standardise and whiten the draws, and transform the scores accordingly."""
    dim = draws.shape[2]
    n = draws.shape[0] * draws.shape[1]
    y, scale = standardised(draws, weights)
    s = scores * scale
    z, t, u = y, s, s
    rows = y if weights is None else np.sqrt(shares(weights)) * y
    factor = covariance_factor(rows.reshape(n, dim), n - 1.0)
    if factor is not None:
        t = s @ factor
        u = t @ factor.T
        z = solve_triangular(factor, y.reshape(n, dim).T).T.reshape(y.shape)
    if dim > DIRECTIONS:
        normal = np.random.default_rng(0).normal(size=(dim, DIRECTIONS))
        basis = np.linalg.qr(normal)[0]
        z, t = z @ basis, t @ basis
    return Coordinates(y, u, z, t)


def covariance_factor(rows: Points, freedom: float) -> AnyArray | None:
    """Compute the Cholesky factor of the covariance of centred rows, for whitening them.

    Args:
        rows: rows of mean 0 and variance about 1, (n, dim).
        freedom: the divisor of sums of squares.

    Returns:
        The factor; None if there are too few rows, one column, or linearly dependent columns.
    """
    n, dim = rows.shape
    if dim == 1 or n < DRAWS_PER_DIM * dim:
        return None
    factor = np.linalg.qr(rows, mode="r").T / np.sqrt(freedom)
    return factor if np.abs(np.diag(factor)).min() > 1e-7 else None


def standardised(draws: Chains, weights: ChainWeights = None) -> tuple[AnyArray, AnyArray]:
    """Scale draws to mean 0 and variance 1 in each dimension; return them and their former deviations."""
    share = shares(weights)
    centred = draws - (draws if weights is None else share * draws).mean(axis=(0, 1))
    size = np.maximum(np.abs(centred).max(axis=(0, 1)), np.finfo(np.float64).tiny)
    centred = centred / size  # so that squares do not overflow or underflow
    n = draws.shape[0] * draws.shape[1]
    scale = np.sqrt((share * centred**2).sum(axis=(0, 1)) / (n - 1))
    return centred / scale, scale * size


def _batched(series: Chains) -> AnyArray:
    """Average consecutive draws so that no chain is longer than `BATCHES`."""
    length = series.shape[1]
    size = -(-length // BATCHES)
    if size == 1:
        return series
    kept = length - length % size  # less than a thousandth is dropped
    shape = (series.shape[0], kept // size, size, series.shape[2])
    return series[:, :kept].reshape(shape).mean(axis=2)


def critical(found: Means, rates: AnyArray) -> tuple[AnyArray, AnyArray]:
    r"""Compute critical values from Student's t, wider on the side of an undersampled long tail.

    If the skewness $\gamma$ of a mean has the opposite sign to its deviation, $\gamma (1 + 2 t^2) / 6$ is
    added (Johnson, 1978), at most $t$. The second result is always the wider of the two sides.
    """
    from scipy.special import stdtrit

    t = -stdtrit(found.freedom, rates / 2.0)
    widening = np.minimum(np.abs(found.skewness) * (1.0 + 2.0 * t**2) / 6.0, t)
    return t + widening * (found.mean * found.skewness < 0), t + widening
