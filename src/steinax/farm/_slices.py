"""A few posteriors of one shape, computed together: as many as fit in the cache."""

from typing import NamedTuple

import numpy as np

from .._types import AnyArray
from ..auditing._audit import LEAST, LEAST_LENGTH
from ..auditing._identities import BATCHES, DIRECTIONS
from ..chains._averages import Averages, averages, controlled_averages
from ..data._affine import DRAWS_PER_DIM
from ..estimation import CrossFit
from ..estimation._stability import moves
from ..families import AbstractFamily, Polynomial
from ..operators import ScalarLangevin
from ._coordinates import coordinates
from ._fitting import cross_fit, features
from ._identities import surely_hold
from ._integrity import Functions, Posteriors, suspicious, unfit

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
    left = cross_fit(features(at, degree), f.reshape(posteriors, k, -1), folds)
    alone[fit] = ~(at.sound & left.sound)
    unseen = (moves(left.rest.swapaxes(1, 2), left.intercepts, folds) ** 2).sum(axis=1)
    rows = f.reshape(-1, chains, length)
    scale = np.abs(rows).max(axis=(1, 2))
    plain = averages(rows, scale)
    better = controlled_averages(left.rest.reshape(rows.shape), scale, unseen.ravel())
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
            better.ess,
            better.rhat,
            better.freedom,
        ]
    )
