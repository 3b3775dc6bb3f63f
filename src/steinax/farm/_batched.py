"""Posteriors of one shape, computed together: as many as fit in the cache."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import ndtri

from .._linalg import cholesky
from .._types import AnyArray
from ..auditing._audit import DIVERGING, LEAST, LEAST_LENGTH, SHARED, STILL, STUCK
from ..auditing._identities import (
    BATCHES,
    CHAIN_ALARM,
    DIRECTIONS,
    MATERIAL,
    NORMAL_QUARTILES,
    effective_sizes,
    false_alarms,
)
from ..chains._statistics import Averages, averages, controlled_averages
from ..data._coordinates import DRAWS_PER_DIM
from ..data._integrands import LIMITS
from ..estimation import CrossFit
from ..estimation._splits import moves
from ..families import AbstractFamily, Polynomial
from ..families._polynomial import stein_monomials
from ..operators import ScalarLangevin
from ..solvers import Regression

type Rows = Float[AnyArray, "posterior dim n"]

CORRELATED = 1e-3  # the least part of a dimension that the others must leave to it


class Coordinates(NamedTuple):
    """The names are those of `steinax.auditing`: see there for what they are."""

    y: Rows  # standardised draws
    u: Rows  # their scores times the covariance
    z: Rows  # whitened draws
    t: Rows  # their scores
    sound: Bool[AnyArray, " posterior"]  # whether no dimension is nearly a combination of others


def coordinates(draws: Rows, scores: Rows) -> Coordinates:
    r"""Standardise and whiten the draws of each posterior, and carry the scores along.

    With $y$ the draws less their means over their standard deviations and $L L^\top$ their
    correlations, $z = L^{-1} y$ has the scores $t = L^\top (\sigma s)$.
    """
    dim, n = draws.shape[1:]
    y = draws - draws.mean(axis=2, keepdims=True)
    scale = np.sqrt(np.einsum("bdn,bdn->bd", y, y) / (n - 1))[..., None]
    y /= scale
    t = scores * scale
    if dim == 1:
        return Coordinates(y, t, y, t, np.ones(len(y), dtype=bool))
    root, sound = sound_cholesky(y @ y.swapaxes(1, 2) / (n - 1), CORRELATED)
    t = root.swapaxes(1, 2) @ t
    return Coordinates(y, root @ t, np.linalg.inv(root) @ y, t, sound)


def sound_cholesky(
    matrices: Float[AnyArray, "*batch p p"], least: float
) -> tuple[AnyArray, Bool[AnyArray, "*batch"]]:
    """Cholesky factors of matrices of unit diagonal, and which of them are to be trusted.

    A factor whose smallest diagonal entry is below `least` has lost too many digits. The identity
    stands for it, and for that of a matrix that has none.

    >>> factors, sound = sound_cholesky(np.stack([np.eye(2), np.ones((2, 2))]), 1e-3)
    >>> sound.tolist()
    [True, False]
    """
    factors = cholesky(matrices)
    sound = np.linalg.diagonal(factors).min(axis=-1) > least  # false for what is no number
    return np.where(sound[..., None, None], factors, np.eye(matrices.shape[-1])), sound


def surely_hold(at: Coordinates, chains: int) -> Bool[AnyArray, " posterior"]:
    r"""Whether all identities hold, whatever the audit's finer points: false where it must decide.

    The audit allows each mean to be off by 0.02, or by its standard error $\sigma / \sqrt m$ times a
    quantile of Student's, which is larger than that of the normal distribution, $q$. The effective
    sample size $m$ is at most $n \log_{10} n$. So what is off by less than $q \sigma / \sqrt{n
    \log_{10} n}$ holds, and no autocorrelation is needed to know; for the others their own $m$ is
    found. It is the larger of two that the audit compares. What is still off by more than
    $q \sigma / \sqrt m$ is left to the audit itself.
    """
    own = _own_series(at)
    dim, n = at.y.shape[1:]
    mean, variance = _moments(own)
    pairs, spread = _pair_moments(at)
    trace, width = _moments((at.z * at.t).mean(axis=1, keepdims=True) + 1.0)
    mean, variance = np.hstack([mean, pairs, trace]), np.hstack([variance, spread, width])
    quantile = -ndtri(false_alarms(dim, dim) / 2.0)
    doubtful = _beyond(mean, variance, quantile, n)
    posterior, identity = np.nonzero(doubtful)
    if len(posterior):
        rows = _some_series(at, own, posterior, identity).reshape(len(posterior), chains, -1)
        error = np.sqrt(variance[doubtful] / effective_sizes(rows)[0])
        doubtful[doubtful] = ~(np.abs(mean[doubtful]) <= quantile[identity] * error)
    return ~doubtful.any(axis=1) & _chains_hold(own[:, : 2 * dim], chains)


def _chains_hold(own: AnyArray, chains: int) -> Bool[AnyArray, " posterior"]:
    """Whether the means and squares of every chain hold alone."""
    posteriors, count, n = own.shape
    if chains == 1:
        return np.ones(posteriors, dtype=bool)
    apart = own.reshape(posteriors, count * chains, n // chains)
    mean, variance = _moments(apart)
    quantile = float(-ndtri(CHAIN_ALARM / (2.0 * count * chains)))
    doubtful = _beyond(mean, variance, quantile, n // chains)
    if doubtful.any():
        sizes = effective_sizes(apart[doubtful][:, None])[0]
        error = np.sqrt(variance[doubtful] / sizes)
        doubtful[doubtful] = ~(np.abs(mean[doubtful]) <= quantile * error)
    return ~doubtful.any(axis=1)


def _beyond(mean: AnyArray, variance: AnyArray, quantile: AnyArray | float, n: int) -> AnyArray:
    """Which means are off by more than the largest effective sample size of n draws allows."""
    error = np.sqrt(variance / (n * np.log10(n)))
    return ~(np.abs(mean) <= np.maximum(quantile * error, MATERIAL))


def _moments(series: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Means and variances over the draws, each (posterior, series)."""
    n, mean = series.shape[2], series.mean(axis=2)
    return mean, _variance(np.einsum("bin,bin->bi", series, series) / n, mean, n)


def _own_series(at: Coordinates) -> Float[AnyArray, "posterior identity n"]:
    """Functions of single dimensions through the operator, and the scores of whitened draws."""
    posteriors, dim, n = at.y.shape
    own = np.empty((posteriors, 5, dim, n))
    own[:, 0] = at.u
    np.multiply(at.y, at.u, out=own[:, 1])
    own[:, 1] += 1.0
    low, middle, high = _quartiles(at.y)
    width = np.where(high > low, (high - low) / NORMAL_QUARTILES, 1.0)
    w, v = (at.y - middle) / width, at.u * width
    bounded = np.tanh(w)
    np.multiply(bounded, v - bounded, out=own[:, 2])
    own[:, 2] += 1.0
    own[:, 3] = _wave(w, v)
    own[:, 4] = at.t
    return own.reshape(posteriors, 5 * dim, n)


def _wave(w: Rows, v: Rows) -> Rows:
    """cos(2 w) v - 2 sin(2 w), from the tangent of w: one function in place of two."""
    tangent = np.tan(w)
    square = tangent * tangent
    return ((1.0 - square) * v - 4.0 * tangent) / (1.0 + square)


def _quartiles(y: Rows) -> tuple[AnyArray, ...]:
    """The quartiles of each dimension, each (posterior, dim, 1)."""
    rows, n = np.sort(y, axis=2), y.shape[2]
    return tuple(rows[..., (n - 1) * i // 4, None] for i in (1, 2, 3))


def _pair_moments(at: Coordinates) -> tuple[AnyArray, AnyArray]:
    """Means and variances of z_i t_j + 1 where i = j, (posterior, dim^2), by matrix products."""
    posteriors, dim, n = at.z.shape
    product = at.z @ at.t.swapaxes(1, 2) / n
    square = (at.z**2) @ (at.t**2).swapaxes(1, 2) / n
    mean, variance = product + np.eye(dim), _variance(square, product, n)
    return mean.reshape(posteriors, -1), variance.reshape(posteriors, -1)


def _variance(square: AnyArray, mean: AnyArray, n: int) -> AnyArray:
    return np.maximum(square - mean**2, 0.0) * (n / (n - 1))


def _some_series(
    at: Coordinates, own: AnyArray, posterior: AnyArray, identity: AnyArray
) -> Float[AnyArray, "series n"]:
    """The series of some identities, less what is constant in them."""
    dim, first = at.z.shape[1], own.shape[1]
    left, right = np.divmod(np.clip(identity - first, 0, dim**2 - 1), dim)
    rows = at.z[posterior, left] * at.t[posterior, right]
    mine, trace = identity < first, identity == first + dim**2
    rows[mine] = own[posterior[mine], identity[mine]]
    rows[trace] = (at.z * at.t)[posterior[trace]].mean(axis=1)
    return rows


CLOSE = 1e-5  # of a standard deviation: numbers that may be the same up to rounding
PART = 0.5  # of the draws that the audit calls shared
MARGIN = 1.1  # for rounding, and for the two ways to divide a variance

type Posteriors = Float[AnyArray, "posterior dim chain draw"]
type Functions = Float[AnyArray, "posterior k chain draw"]
type Verdicts = Bool[AnyArray, " posterior"]


def unfit(draws: Posteriors, scores: Posteriors, f: Functions) -> Verdicts:
    """Whether numbers are not finite, never change, or are too large or small to be squared.

    Whatever `Sample`, `estimate` or its integrands would refuse is among them.
    """
    limit = float(np.finfo(np.float64).max) ** (1 / 3)
    low, high = (LIMITS * np.sqrt([np.finfo(np.float64).tiny, np.finfo(np.float64).max])).tolist()
    with np.errstate(all="ignore"):  # what is not finite fails each comparison
        span = draws.max(axis=(2, 3)) - draws.min(axis=(2, 3))
        steep, size = _largest(scores) * span, _largest(f)
        fit = (span >= 1 / limit) & (span <= limit) & (steep <= limit)
        usable = ((size >= low) & (size <= high)) | (size == 0)
    return ~(fit.all(axis=1) & usable.all(axis=1))


def _largest(values: AnyArray) -> AnyArray:
    return np.maximum(values.max(axis=(2, 3)), -values.min(axis=(2, 3)))


def _sharing(y: Float[AnyArray, "posterior chain draw"]) -> Verdicts:
    """Whether chains may share draws, by one dimension: many equal numbers in different chains."""
    posteriors, chains, length = y.shape
    if chains == 1:
        return np.zeros(posteriors, dtype=bool)
    flat = y.reshape(posteriors, -1)
    order = np.argsort(flat, axis=1)
    value, chain = np.take_along_axis(flat, order, axis=1), order // length
    near = value[:, 1:] - value[:, :-1] <= CLOSE
    other = chain[:, 1:] != chain[:, :-1]
    return (near & other).sum(axis=1) > PART * SHARED * length


def suspicious(
    draws: Posteriors, y: Posteriors, diverging: Bool[AnyArray, "posterior chain draw"] | None
) -> Verdicts:
    """Whether the audit may find chains that are the same, stuck or full of divergences.

    What it calls fatal is always among them; it decides about the others.

    Args:
        draws: as they are.
        y: of mean 0 and variance 1 in each dimension.
        diverging: which draws diverged.
    """
    twins = _sharing(y[:, 0])
    stays = (draws[:, 0, :, 1:] == draws[:, 0, :, :-1]).mean(axis=2)
    square = np.einsum("bdcn,bdcn->bdc", y, y) / y.shape[3] - y.mean(axis=3) ** 2
    still = square.max(axis=1) < MARGIN * STILL**2
    found = twins | (stays > STUCK).any(axis=1) | still.any(axis=1)
    if diverging is not None:
        found |= diverging.mean(axis=(1, 2)) > DIVERGING
    return found


NUMBERS = ("value", "mcse", "plain_value", "plain_mcse", "worth", "ess", "rhat", "freedom")


class Slice(NamedTuple):
    """What some posteriors give, and which of them are left to others."""

    numbers: AnyArray  # (number, posterior, k), in the order of NUMBERS
    alone: AnyArray  # to be estimated one by one: (posterior,)
    doubted: AnyArray  # to be audited: (posterior,)


def batched(family: AbstractFamily, chains: int, length: int, dim: int) -> bool:
    """Whether posteriors of a shape are computed together: small ones, by polynomials up to degree 2.

    Then nothing is penalised, all dimensions are whitened, and the audit takes every draw and every
    direction as it is.
    """
    if not (isinstance(family, Polynomial) and isinstance(family.operator, ScalarLangevin)):
        return False
    n, p = chains * length, family.size(None, dim) if family.degree <= 2 else 0
    enough = n >= max(LEAST, DRAWS_PER_DIM * dim, 4 * p) and length >= LEAST_LENGTH
    return p > 0 and enough and length <= BATCHES and dim <= DIRECTIONS


def compute(
    draws: Posteriors,
    scores: Posteriors,
    f: Functions,
    diverging: AnyArray | None,
    degree: int,
    look: bool,
) -> Slice:
    """Cross-fitted estimates of some posteriors, each as `estimate` gives it.

    Args:
        draws: (posterior, dim, chain, draw).
        scores: the same.
        f: the integrands, (posterior, k, chain, draw).
        diverging: (posterior, chain, draw), or None.
        degree: of the polynomial.
        look: whether to audit.
    """
    alone = unfit(draws, scores, f)
    doubted = np.zeros_like(alone)
    found = np.full((len(NUMBERS), *f.shape[:2]), np.nan)
    fit = np.flatnonzero(~alone)
    if len(fit) == 0:
        return Slice(found, alone, doubted)
    if len(fit) < len(alone):
        draws, scores, f = draws[fit], scores[fit], f[fit]
        diverging = None if diverging is None else diverging[fit]
    posteriors, k, chains, length = f.shape
    at = coordinates(*(one.reshape(posteriors, -1, chains * length) for one in (draws, scores)))
    if look:
        doubted[fit] = ~surely_hold(at, chains) | suspicious(
            draws, at.y.reshape(draws.shape), diverging
        )
    folds = CrossFit().boundaries(chains, length)
    made = Regression(stein_monomials(at.z, at.t, (1.0,) * degree).mT)
    held = made.leave_out(f.reshape(posteriors, k, -1).mT, folds, expected=False)
    alone[fit] = ~(at.sound & made.sound)
    unseen = (moves(held.residual, held.intercepts, folds) ** 2).sum(axis=1)
    rows = f.reshape(-1, chains, length)
    scale = np.abs(rows).max(axis=(1, 2))
    plain = averages(rows, scale)
    series = np.ascontiguousarray(held.residual.mT).reshape(rows.shape)
    better = controlled_averages(series, scale, unseen.ravel())
    found[:, fit] = _numbers(better, plain).reshape(len(NUMBERS), posteriors, k)
    return Slice(found, alone, doubted & ~alone)


def _numbers(better: Averages, plain: Averages) -> AnyArray:
    worth = (plain.mcse / better.mcse) ** 2
    return np.stack(
        [
            better.mean,
            better.mcse,
            plain.mean,
            plain.mcse,
            worth,
            plain.ess * worth,
            better.rhat,
            better.freedom,
        ]
    )
