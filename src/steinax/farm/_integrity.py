"""Which of many posteriors need a closer look before they are believed, or cannot be computed with."""

import numpy as np
from jaxtyping import Bool, Float

from .._types import AnyArray
from ..auditing._integrity import DIVERGING, SHARED, STILL, STUCK
from ..data._integrands import LIMITS

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
