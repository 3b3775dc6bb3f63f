"""Estimate posteriors of one shape together, as many at a time as fit in the cache."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import ndtri

from .._numerics import cholesky
from .._types import AnyArray
from ..auditing import (
    BATCHES,
    CHAIN_ALARM,
    DIRECTIONS,
    DIVERGING,
    LEAST_DRAWS,
    LEAST_LENGTH,
    MATERIAL,
    NORMAL_QUARTILES,
    SHARED,
    STILL,
    STUCK,
    axes_swapped,
    effective_sizes,
    false_alarms,
)
from ..chains import Averages, averages, controlled_averages, one_outcome
from ..data import DRAWS_PER_DIM, LIMITS
from ..estimation import CrossFit
from ..families import AbstractFamily, Polynomial, stein_monomials
from ..operators import ScalarLangevin
from ..solvers import Regression, moves

type Rows = Float[AnyArray, "posterior dim n"]

CORRELATED = 1e-3  # least standard deviation of a dimension given the others


class StandardisedRows(NamedTuple):
    """Standardised and whitened draws with their scores, named as in `steinax.auditing`."""

    y: Rows  # standardised draws
    u: Rows  # their scores times the covariance
    z: Rows  # whitened draws
    t: Rows  # their scores
    sound: Bool[AnyArray, " posterior"]  # false where a dimension is nearly a combination of others


def standardised_rows(draws: Rows, scores: Rows) -> StandardisedRows:
    r"""Standardise and whiten the draws of each posterior, and transform the scores accordingly.

    With $\sigma$ the standard deviations of the draws, $y$ the standardised draws and $L L^\top$ their
    correlations, $z = L^{-1} y$ has the scores $t = L^\top (\sigma s)$.
    """
    dim, n = draws.shape[1:]
    y = draws - draws.mean(axis=2, keepdims=True)
    scale = np.sqrt(np.einsum("bdn,bdn->bd", y, y) / (n - 1))[..., None]
    y /= scale
    t = scores * scale
    if dim == 1:
        return StandardisedRows(y, t, y, t, np.ones(len(y), dtype=bool))
    factor, sound = sound_cholesky(y @ y.swapaxes(1, 2) / (n - 1), CORRELATED)
    t = factor.swapaxes(1, 2) @ t
    return StandardisedRows(y, factor @ t, np.linalg.inv(factor) @ y, t, sound)


def sound_cholesky(
    matrices: Float[AnyArray, "*batch p p"], least: float
) -> tuple[AnyArray, Bool[AnyArray, "*batch"]]:
    """Compute Cholesky factors of matrices of unit diagonal, and which of them are accurate.

    A factor whose smallest diagonal entry is below `least` has lost too many digits. It is replaced by
    the identity, as is the factor of a matrix that has none.

    >>> factors, sound = sound_cholesky(np.stack([np.eye(2), np.ones((2, 2))]), 1e-3)
    >>> sound.tolist()
    [True, False]
    """
    factors = cholesky(matrices)
    sound = np.linalg.diagonal(factors).min(axis=-1) > least  # false for NaN
    return np.where(sound[..., None, None], factors, np.eye(matrices.shape[-1])), sound


def surely_hold(at: StandardisedRows, chains: int) -> Bool[AnyArray, " posterior"]:
    r"""Tell which posteriors surely satisfy all identities; where this is false the audit must decide.

    The audit allows each mean to be off by 0.02, or by its standard error $\sigma / \sqrt m$ times a
    quantile of Student's t, which is larger than that of the normal distribution, $q$. The effective
    sample size $m$ is at most $n \log_{10} n$. So a mean that is off by less than $q \sigma / \sqrt{n
    \log_{10} n}$ passes without computing autocorrelations; for the others $m$ is computed. It is the
    larger of two that the audit compares. Means that are still off by more than $q \sigma / \sqrt m$
    are left to the audit.
    """
    marginal = _marginal_series(at)
    dim, n = at.y.shape[1:]
    mean, variance = _moments(marginal)
    pair_mean, pair_variance = _pair_moments(at)
    trace_mean, trace_variance = _moments((at.z * at.t).mean(axis=1, keepdims=True) + 1.0)
    mean, variance = (
        np.hstack([mean, pair_mean, trace_mean]),
        np.hstack([variance, pair_variance, trace_variance]),
    )
    quantile = -ndtri(false_alarms(dim, dim) / 2.0)
    doubtful = _beyond(mean, variance, quantile, n)
    posterior, identity = np.nonzero(doubtful)
    if len(posterior):
        rows = _selected_series(at, marginal, posterior, identity).reshape(
            len(posterior), chains, -1
        )
        error = np.sqrt(variance[doubtful] / effective_sizes(rows)[0])
        doubtful[doubtful] = ~(np.abs(mean[doubtful]) <= quantile[identity] * error)
    return ~doubtful.any(axis=1) & _chains_hold(marginal[:, : 2 * dim], chains)


def _chains_hold(marginal: AnyArray, chains: int) -> Bool[AnyArray, " posterior"]:
    """Tell which posteriors satisfy the identities of means and squares in every single chain."""
    posteriors, count, n = marginal.shape
    if chains == 1:
        return np.ones(posteriors, dtype=bool)
    by_chain = marginal.reshape(posteriors, count * chains, n // chains)
    mean, variance = _moments(by_chain)
    quantile = float(-ndtri(CHAIN_ALARM / (2.0 * count * chains)))
    doubtful = _beyond(mean, variance, quantile, n // chains)
    if doubtful.any():
        sizes = effective_sizes(by_chain[doubtful][:, None])[0]
        error = np.sqrt(variance[doubtful] / sizes)
        doubtful[doubtful] = ~(np.abs(mean[doubtful]) <= quantile * error)
    return ~doubtful.any(axis=1)


def _beyond(mean: AnyArray, variance: AnyArray, quantile: AnyArray | float, n: int) -> AnyArray:
    """Tell which means are off by more than the largest effective sample size of n draws allows."""
    error = np.sqrt(variance / (n * np.log10(n)))
    return ~(np.abs(mean) <= np.maximum(quantile * error, MATERIAL))


def _moments(series: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Compute means and variances over the draws, each (posterior, series)."""
    n, mean = series.shape[2], series.mean(axis=2)
    return mean, _variance(np.einsum("bin,bin->bi", series, series) / n, mean, n)


def _marginal_series(at: StandardisedRows) -> Float[AnyArray, "posterior identity n"]:
    """Apply the operator to functions of single dimensions, and append the scores of whitened draws."""
    posteriors, dim, n = at.y.shape
    series = np.empty((posteriors, 5, dim, n))
    series[:, 0] = at.u
    np.multiply(at.y, at.u, out=series[:, 1])
    series[:, 1] += 1.0
    low, middle, high = _quartiles(at.y)
    width = np.where(high > low, (high - low) / NORMAL_QUARTILES, 1.0)
    w, v = (at.y - middle) / width, at.u * width
    bounded = np.tanh(w)
    np.multiply(bounded, v - bounded, out=series[:, 2])
    series[:, 2] += 1.0
    series[:, 3] = _wave(w, v)
    series[:, 4] = at.t
    return series.reshape(posteriors, 5 * dim, n)


def _wave(w: Rows, v: Rows) -> Rows:
    """Compute cos(2 w) v - 2 sin(2 w) from the tangent of w: one function instead of two."""
    tangent = np.tan(w)
    square = tangent * tangent
    return ((1.0 - square) * v - 4.0 * tangent) / (1.0 + square)


def _quartiles(y: Rows) -> tuple[AnyArray, ...]:
    """Compute the three quartiles of each dimension, each (posterior, dim, 1)."""
    rows, n = np.sort(y, axis=2), y.shape[2]
    return tuple(rows[..., (n - 1) * i // 4, None] for i in (1, 2, 3))


def _pair_moments(at: StandardisedRows) -> tuple[AnyArray, AnyArray]:
    """Compute means and variances of z_i t_j + [i = j], (posterior, dim^2), by matrix products."""
    posteriors, dim, n = at.z.shape
    product = at.z @ at.t.swapaxes(1, 2) / n
    square = (at.z**2) @ (at.t**2).swapaxes(1, 2) / n
    mean, variance = product + np.eye(dim), _variance(square, product, n)
    return mean.reshape(posteriors, -1), variance.reshape(posteriors, -1)


def _variance(square: AnyArray, mean: AnyArray, n: int) -> AnyArray:
    return np.maximum(square - mean**2, 0.0) * (n / (n - 1))


def _selected_series(
    at: StandardisedRows, marginal: AnyArray, posterior: AnyArray, identity: AnyArray
) -> Float[AnyArray, "series n"]:
    """Compute the series of selected identities, up to an additive constant."""
    dim, first = at.z.shape[1], marginal.shape[1]
    left, right = np.divmod(np.clip(identity - first, 0, dim**2 - 1), dim)
    rows = at.z[posterior, left] * at.t[posterior, right]
    is_marginal, is_trace = identity < first, identity == first + dim**2
    rows[is_marginal] = marginal[posterior[is_marginal], identity[is_marginal]]
    rows[is_trace] = (at.z * at.t)[posterior[is_trace]].mean(axis=1)
    return rows


CLOSE = 1e-5  # of a standard deviation: numbers that may be equal up to rounding
PART = 0.5  # of the number of shared draws that the audit refuses
MARGIN = 1.1  # for rounding, and for dividing a variance by n or n - 1

type Posteriors = Float[AnyArray, "posterior dim chain draw"]
type FunctionValues = Float[AnyArray, "posterior k chain draw"]
type Verdicts = Bool[AnyArray, " posterior"]


def unfit(draws: Posteriors, scores: Posteriors, f: FunctionValues) -> Verdicts:
    """Tell which posteriors have numbers that are not finite, constant, or too large or small to square.

    This includes everything that `Sample`, `estimate` or its integrands would refuse.
    """
    limit = float(np.finfo(np.float64).max) ** (1 / 3)
    low, high = (LIMITS * np.sqrt([np.finfo(np.float64).tiny, np.finfo(np.float64).max])).tolist()
    with np.errstate(all="ignore"):  # numbers that are not finite fail each comparison
        span = draws.max(axis=(2, 3)) - draws.min(axis=(2, 3))
        steep, size = _largest(scores) * span, _largest(f)
        fit = (span >= 1 / limit) & (span <= limit) & (steep <= limit)
        usable = ((size >= low) & (size <= high)) | (size == 0)
    return ~(fit.all(axis=1) & usable.all(axis=1))


def _largest(values: AnyArray) -> AnyArray:
    return np.maximum(values.max(axis=(2, 3)), -values.min(axis=(2, 3)))


def _sharing(y: Float[AnyArray, "posterior chain draw"]) -> Verdicts:
    """Tell where chains may share draws: many equal numbers in different chains, in one dimension."""
    posteriors, chains, length = y.shape
    if chains == 1:
        return np.zeros(posteriors, dtype=bool)
    flat = y.reshape(posteriors, -1)
    order = np.argsort(flat, axis=1)
    value, chain = np.take_along_axis(flat, order, axis=1), order // length
    near = value[:, 1:] - value[:, :-1] <= CLOSE
    switches = chain[:, 1:] != chain[:, :-1]
    return (near & switches).sum(axis=1) > PART * SHARED * length


def suspicious(
    draws: Posteriors, y: Posteriors, diverging: Bool[AnyArray, "posterior chain draw"] | None
) -> Verdicts:
    """Tell where the audit may find chains that are identical, stuck or full of divergences.

    All cases that it calls fatal are included; the audit decides about the others.

    Args:
        draws: not standardised.
        y: draws standardised to mean 0 and variance 1 in each dimension.
        diverging: which draws diverged.
    """
    twins = _sharing(y[:, 0])
    stays = (draws[:, 0, :, 1:] == draws[:, 0, :, :-1]).mean(axis=2)
    square = np.einsum("bdcn,bdcn->bdc", y, y) / y.shape[3] - y.mean(axis=3) ** 2
    still = square.max(axis=1) < MARGIN * STILL**2
    flagged = twins | axes_swapped(y) | (stays > STUCK).any(axis=1) | still.any(axis=1)
    if diverging is not None:
        flagged |= diverging.mean(axis=(1, 2)) > DIVERGING
    return flagged


NUMBERS = ("value", "mcse", "plain_value", "plain_mcse", "worth", "ess", "rhat", "freedom")


class Slice(NamedTuple):
    """Estimates of a slice of posteriors, and which of them need an audit or a separate estimate."""

    numbers: AnyArray  # (number, posterior, k), in the order of NUMBERS
    alone: AnyArray  # to be estimated one by one: (posterior,)
    doubted: AnyArray  # to be audited: (posterior,)


def batched(family: AbstractFamily, chains: int, length: int, dim: int) -> bool:
    """Tell whether posteriors are computed together: small ones, with polynomials up to degree 2.

    For these no penalty is used, all dimensions are whitened, and the audit uses every draw and every
    direction.
    """
    if not (isinstance(family, Polynomial) and isinstance(family.operator, ScalarLangevin)):
        return False
    n, p = chains * length, family.size(None, dim) if family.degree <= 2 else 0
    enough = n >= max(LEAST_DRAWS, DRAWS_PER_DIM * dim, 4 * p) and length >= LEAST_LENGTH
    return p > 0 and enough and length <= BATCHES and dim <= DIRECTIONS


def compute(
    draws: Posteriors,
    scores: Posteriors,
    f: FunctionValues,
    diverging: AnyArray | None,
    degree: int,
    check: bool,
) -> Slice:
    """Compute cross-fitted estimates of several posteriors, each equal to that of `estimate`.

    Args:
        draws: (posterior, dim, chain, draw).
        scores: (posterior, dim, chain, draw).
        f: the integrands, (posterior, k, chain, draw).
        diverging: (posterior, chain, draw), or None.
        degree: of the polynomial.
        check: whether to audit.
    """
    alone = unfit(draws, scores, f)
    doubted = np.zeros_like(alone)
    numbers = np.full((len(NUMBERS), *f.shape[:2]), np.nan)
    fit = np.flatnonzero(~alone)
    if len(fit) == 0:
        return Slice(numbers, alone, doubted)
    if len(fit) < len(alone):
        draws, scores, f = draws[fit], scores[fit], f[fit]
        diverging = None if diverging is None else diverging[fit]
    posteriors, k, chains, length = f.shape
    at = standardised_rows(
        *(array.reshape(posteriors, -1, chains * length) for array in (draws, scores))
    )
    if check:
        doubted[fit] = ~surely_hold(at, chains) | suspicious(
            draws, at.y.reshape(draws.shape), diverging
        )
    folds = CrossFit().boundaries(chains, length)
    regression = Regression(stein_monomials(at.z, at.t, (1.0,) * degree).mT)
    held_out = regression.leave_out(f.reshape(posteriors, k, -1).mT, folds, expected=False)
    alone[fit] = ~(at.sound & regression.sound)
    unseen = (moves(held_out.residual, held_out.intercepts, folds) ** 2).sum(axis=1)
    rows = f.reshape(-1, chains, length)
    scale = np.abs(rows).max(axis=(1, 2))
    plain = averages(rows, scale)
    series = np.ascontiguousarray(held_out.residual.mT).reshape(rows.shape)
    better = controlled_averages(series, scale, unseen.ravel())
    numbers[:, fit] = _numbers(better, plain).reshape(len(NUMBERS), posteriors, k)
    return Slice(numbers, alone, doubted & ~alone)


def _numbers(better: Averages, plain: Averages) -> AnyArray:
    alike = one_outcome(plain.mean, plain.mcse)
    mcse, plain_mcse = (np.where(alike, np.nan, each.mcse) for each in (better, plain))
    worth = (plain_mcse / mcse) ** 2
    return np.stack(
        [
            better.mean,
            mcse,
            plain.mean,
            plain_mcse,
            worth,
            plain.ess * worth,
            better.rhat,
            better.freedom,
        ]
    )
