"""The Stein identities of draws and scores, and how sure it is that they are off."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from .._linalg import solve_triangular
from .._types import AnyArray, Chains, Points, Series
from ..chains import linearised
from ..chains._statistics import correlations, shares
from ..data._coordinates import DRAWS_PER_DIM

type Weights = Float[AnyArray, "chain draw"] | None

# Nominal rates of false alarms of one audit, each shared by its identities as Bonferroni has it.
BIAS_ALARM = 5e-5  # means and squares, which are what estimates are off by, and temperature
FALSE_ALARM = 2e-5  # all others
CHAIN_ALARM = 1e-5  # means and squares of single chains
MATERIAL = 0.02  # a smaller deviation is not reported, however sure: in standard deviations
QUANTILE = 3.0  # an error at the printed limit escapes once in 700 audits
DIRECTIONS = 20  # pairs are tested along so many directions, all dimensions when there are fewer
NORMAL_QUARTILES = 1.349  # from the first to the third, of a standard normal
BATCHES = 1000  # longer chains are averaged over consecutive draws first


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


@dataclass(frozen=True)
class Identities:
    """By how much each Stein identity is off, and how sure that is: arrays over the identities.

    The first dim entries are those of the scores' means, the next dim those of each dimension with
    itself, then two bounded functions of each dimension, then the means and pairs of directions, and the
    mean over dimensions of each with itself last.
    """

    deviation: AnyArray
    error: AnyArray
    critical: AnyArray
    widest: AnyArray  # the critical values on the side where they are wider
    dim: int

    @property
    def allowed(self) -> AnyArray:
        """How far off an identity may be."""
        return np.maximum(self.critical * self.error, MATERIAL)

    @property
    def strength(self) -> AnyArray:
        """The deviations in units of what is allowed: an identity fails above 1."""
        return np.abs(self.deviation) / self.allowed

    @property
    def misfit(self) -> float:
        """The sum of the squared deviations in units of their errors."""
        return float(np.sum((self.deviation / self.error) ** 2))

    @property
    def hold(self) -> bool:
        """Whether none fails."""
        return bool(np.all(self.strength <= 1.0))

    @property
    def limit(self) -> AnyArray:
        """What could hide from the first 2 dim identities: (2, dim), means and squares."""
        error, widest = self.error[: 2 * self.dim], self.widest[: 2 * self.dim]
        return (np.maximum(widest * error, MATERIAL) + QUANTILE * error).reshape(2, self.dim)

    def label(self, index: int, names: tuple[str, ...]) -> str:
        """One identity in words."""
        sort, i = divmod(index, self.dim)
        if index == self.strength.size - 1:
            return "all dimensions times their scores"
        if sort >= 4:
            return "a combination of the dimensions with the score along another"
        return (
            f"the mean score of {names[i]}",
            f"{names[i]} times its score",
            f"tanh of {names[i]} times its score",
            f"a cosine of {names[i]} times its score",
        )[sort]


class Coordinates(NamedTuple):
    """Draws and scores as the identities take them: see `identities` for what each is."""

    y: Chains  # standardised draws
    u: Chains  # their scores times the covariance
    z: Chains  # whitened draws, along some directions where there are many dimensions
    t: Chains  # their scores


def identities(
    draws: Chains, scores: Chains, weights: Weights = None, at: Coordinates | None = None
) -> Identities:
    r"""Test the Stein identities of draws and scores.

    With $y_i$ the standardised dimension $i$, $\Sigma$ the covariance of the draws and $u = \Sigma s$
    in units of the standard deviations (for a Gaussian $u = -y$), and with whitened draws $z$ and
    their scores $t$, right scores give

    $$E[\varphi(y_i)\,u_i + \varphi'(y_i)] = 0 \;\text{ for }\;
      \varphi = 1,\; y,\; \tanh w,\; \cos 2 w, \qquad E[t_j] = 0, \qquad
      E[z_i t_j] = -1_{i = j}, \qquad E[z \cdot t] = -d.$$

    where $w$ is $y$ centred at its median and scaled by its quartiles. The mean of $u_i$ is what a
    constant error of the scores adds to the estimate of $E[y_i]$ by a first-degree control variate,
    and that of $y_i u_i + 1$ what a linear one adds to $E[y_i^2]$, so these bound a bias. The bounded
    functions find what heavy tails hide from the others. Beyond 20 dimensions $z$ and $t$ are seen
    along 20 random directions. With weights all means are self-normalised weighted ones.

    Args:
        draws: of all chains.
        scores: the same.
        weights: of the draws, where they have some.
        at: the `coordinates` of all this, where they are known.
    """
    y, u, z, t = coordinates(draws, scores, weights) if at is None else at
    dim, count = y.shape[2], z.shape[2]
    one = np.eye(count)
    pairs = (z[..., i : i + 1] * t + one[i] for i in range(count))
    trace = (z * t).mean(axis=2, keepdims=True) + 1.0
    rates = false_alarms(dim, count)
    return tested(chain(own_identities(y, u), [t], pairs, [trace]), dim, weights, rates)


def false_alarms(dim: int, directions: int) -> AnyArray:
    """The rate of false alarms of each identity: means, squares and the trace have the larger ones."""
    size = 4 * dim + directions + directions**2 + 1
    rates = np.full(size, FALSE_ALARM / size)
    rates[[*range(2 * dim), -1]] = BIAS_ALARM / (2 * dim + 1)
    return rates


def chain_identities(
    draws: Chains, scores: Chains, weights: Weights = None, at: Coordinates | None = None
) -> AnyArray:
    """The means and squares of every chain: the largest deviation of each, a chain fails above 1.

    The arguments are those of `identities`.
    """
    chains, length, dim = draws.shape
    y, u, _, _ = coordinates(draws, scores, weights) if at is None else at
    series = linearised(np.concatenate([u, y * u + 1.0], axis=2), weights)
    apart = np.moveaxis(series, 0, 1).reshape(1, length, -1)  # each chain's are series of one chain
    found = tested([apart], dim, None, np.full(apart.shape[2], CHAIN_ALARM / apart.shape[2]))
    return found.strength.reshape(chains, -1).max(axis=1)


def tested(
    series: Iterable[Chains], dim: int, weights: Weights = None, rates: AnyArray | None = None
) -> Identities:
    """Series that are of mean zero when scores are right: how far off they are, and how sure that is.

    Args:
        series: each (chain, draw, some).
        dim: the dimension of a draw.
        weights: of the draws, where they have some.
        rates: of false alarms, one for each series; equal ones by default.
    """
    each = [_batched(linearised(part, weights)) for part in series]
    found = means_and_errors(np.concatenate(each, axis=2))
    rounding = np.finfo(np.float64).eps * (1.0 + np.abs(found.mean))
    error = np.maximum(found.error, rounding)
    equal = np.full(found.mean.size, FALSE_ALARM / found.mean.size)
    return Identities(found.mean, error, *critical(found, equal if rates is None else rates), dim)


def own_identities(y: Chains, u: Chains) -> list[AnyArray]:
    """Four functions of each dimension, through the operator: of mean zero when scores are right."""
    low, middle, high = _quartiles(y)
    width = np.where(high > low, (high - low) / NORMAL_QUARTILES, 1.0)
    w, v = (y - middle) / width, u * width
    bounded = np.tanh(w)
    wave = np.cos(2.0 * w) * v - 2.0 * np.sin(2.0 * w)
    return [u, y * u + 1.0, bounded * v + 1.0 - bounded**2, wave]


def _quartiles(y: Chains) -> AnyArray:
    """The quartiles of each dimension: (3, dim)."""
    rows = np.sort(y.reshape(-1, y.shape[2]).T, axis=1)
    return rows[:, np.arange(1, 4) * (rows.shape[1] - 1) // 4].T


def coordinates(draws: Chains, scores: Chains, weights: Weights = None) -> Coordinates:
    """Standardise and whiten the draws, and carry the scores along."""
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
    """The Cholesky factor of the covariance of centred rows, by which they are whitened.

    Args:
        rows: of mean 0 and of variance about 1, (n, dim).
        freedom: what sums of squares are divided by.

    Returns:
        None where there are too few rows, one column, or columns that depend on each other.
    """
    n, dim = rows.shape
    if dim == 1 or n < DRAWS_PER_DIM * dim:
        return None
    factor = np.linalg.qr(rows, mode="r").T / np.sqrt(freedom)
    return factor if np.abs(np.diag(factor)).min() > 1e-7 else None


def standardised(draws: Chains, weights: Weights = None) -> tuple[AnyArray, AnyArray]:
    """Draws of mean 0 and variance 1 in each dimension, and the standard deviations they had."""
    share = shares(weights)
    centred = draws - (draws if weights is None else share * draws).mean(axis=(0, 1))
    size = np.maximum(np.abs(centred).max(axis=(0, 1)), np.finfo(np.float64).tiny)
    centred = centred / size  # squares of what is very large or small would not be numbers
    n = draws.shape[0] * draws.shape[1]
    scale = np.sqrt((share * centred**2).sum(axis=(0, 1)) / (n - 1))
    return centred / scale, scale * size


def _batched(series: Chains) -> AnyArray:
    """Means of consecutive draws, so that no chain is longer than `BATCHES`."""
    length = series.shape[1]
    size = -(-length // BATCHES)
    if size == 1:
        return series
    kept = length - length % size  # what is left over is less than a thousandth
    shape = (series.shape[0], kept // size, size, series.shape[2])
    return series[:, :kept].reshape(shape).mean(axis=2)


def critical(found: Means, rates: AnyArray) -> tuple[AnyArray, AnyArray]:
    r"""Quantiles of Student's t, wider on the side where a long tail was too rarely drawn.

    A mean whose skewness $\gamma$ points away from its deviation needs $\gamma (1 + 2 t^2) / 6$ more
    (Johnson, 1978), here at most as much again. The second result is the wider side, whichever it is.
    """
    from scipy.special import stdtrit

    t = -stdtrit(found.freedom, rates / 2.0)
    more = np.minimum(np.abs(found.skewness) * (1.0 + 2.0 * t**2) / 6.0, t)
    return t + more * (found.mean * found.skewness < 0), t + more
