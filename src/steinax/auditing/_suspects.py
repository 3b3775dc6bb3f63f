"""Errors of the scores that would explain why they do not fit the log densities."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from .._types import AnyArray
from ._trapezoid import Misfit

EXPLAINED = 0.1  # of the squared misfit: what an error may leave on pairs it was not fitted to
REMAINING = 0.2  # of the work: the misfit that may remain
STEADY = 0.3  # the part of an error that may change when distances are extrapolated to zero
SIMPLER = 3.0  # times the least misfit: what a simpler error may leave
PAIRS = 4  # for each coefficient, at least
TIED = 3  # draws whose scores share the largest size, at least
ROBUST_STEPS, RIDGE = 5, 1e-10


@dataclass(frozen=True)
class Suspect:
    """An error of the scores that explains the misfit.

    Attributes:
        kind: `constant`, `tempered`, `clipped` or `smooth`.
        bias: what it adds to the estimates of the means, in standard deviations, (dim,).
        size: its root mean square in each column, in the same units, (dim,).
        explained: the part of the squared misfit that it leaves.
    """

    kind: str
    bias: AnyArray
    size: AnyArray
    explained: float


@dataclass(frozen=True)
class Form:
    """A form that an error of the scores may have.

    Attributes:
        kind: its name.
        columns: the trapezoidal rule for each of its parts, (pair, k).
        error: the error at the draws, (n, dim), for coefficients, (k,).
    """

    kind: str
    columns: AnyArray
    error: Callable[[AnyArray], AnyArray]


def suspect(misfit: Misfit, least: float) -> Suspect | None:
    """The simplest error of the scores that explains the misfit and matters.

    Args:
        misfit: of log densities and scores.
        least: the bias from which on it matters, in standard deviations.
    """
    found = [one for form in _forms(misfit) if (one := _explains(misfit, form, least)) is not None]
    best = min((one.explained for one in found), default=0.0)
    return next((one for one in found if one.explained <= max(SIMPLER * best, 0.05)), None)


def _forms(misfit: Misfit) -> Iterator[Form]:
    """What is suspected, the simpler first: a constant, a factor, clipping, and lines with both."""
    y, score, dim = misfit.y, misfit.score, misfit.y.shape[1]
    step, middle = misfit.steps()
    work = misfit.work[:, None]
    yield Form("constant", step, lambda c: np.broadcast_to(c, y.shape))
    yield Form("tempered", work, lambda c: c * score)
    clipped = _tied(misfit.raw)[:, None]
    if clipped.any():
        part = clipped * score
        of_part = 0.5 * ((part[misfit.first] + part[misfit.second]) * step).sum(1, keepdims=True)
        yield Form("clipped", of_part, lambda c: c * part)
    columns = np.concatenate([step, middle * step, work], axis=1)
    yield Form("smooth", columns, lambda c: c[:dim] + c[dim:-1] * y + c[-1] * score)


def _tied(scores: AnyArray) -> AnyArray:
    """Which draws share the largest norm of their scores, or the largest entry, as clipping leaves them."""
    largest = [np.linalg.norm(scores, axis=1), np.abs(scores).max(axis=1)]
    tied = [np.isclose(one, one.max(), rtol=1e-6, atol=0.0) for one in largest]
    distinct = [len(np.unique(scores[mask], axis=0)) for mask in tied]
    masks = [m for m, count in zip(tied, distinct, strict=True) if TIED <= count < len(scores)]
    return masks[0] if masks else np.zeros(len(scores), dtype=bool)


def _explains(misfit: Misfit, form: Form, least: float) -> Suspect | None:
    bends = _bends(misfit)
    if len(bends) < PAIRS * (form.columns.shape[1] + bends.shape[1]):
        return None
    error, bias, effects = _effects(misfit, form, form.columns)
    worst = int(np.abs(effects).argmax())
    if abs(effects[worst]) < least:
        return None
    at_zero = _effects(misfit, form, np.concatenate([form.columns, bends], axis=1))[2]
    if abs(at_zero[worst] - effects[worst]) > STEADY * abs(effects[worst]):
        return None
    left = _unexplained(form.columns, misfit.left, 1.0 / misfit.square, misfit.first % 2 == 0)
    if left > EXPLAINED or np.sqrt(left) * misfit.share > REMAINING:
        return None
    return Suspect(form.kind, bias, np.sqrt((error**2).mean(axis=0)), left)


def _bends(misfit: Misfit) -> AnyArray:
    """What the trapezoidal rule's own error is made of, in third order of the distance: (pair, 3 dim).

    Beside these columns an error of the scores is that at distance zero, where the rule has none.
    """
    step, middle = misfit.steps()
    parts = [step**3, middle * step**3, misfit.square[:, None] * step]
    return np.concatenate(parts, axis=1)


def _effects(misfit: Misfit, form: Form, columns: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
    """The error fitted to all pairs, and what it adds to estimates.

    Args:
        misfit: of log densities and scores.
        form: of the error.
        columns: those of the form, and perhaps further ones after them.

    Returns:
        The error, (n, dim), the bias of each mean, and the biases of means and squares in whitened
        coordinates. Biases are in standard deviations, so that all plain averages have one standard error.
    """
    coefficients = _robust(columns, misfit.left, 1.0 / misfit.square)
    error = form.error(-coefficients[: form.columns.shape[1]])
    white = error @ misfit.factor
    z = np.linalg.solve(misfit.factor, misfit.y.T).T
    means, squares = white.mean(axis=0), (z * white).mean(axis=0) / np.sqrt(2.0)
    return error, misfit.factor @ means, np.concatenate([means, squares])


def _unexplained(columns: AnyArray, left: AnyArray, weight: AnyArray, half: AnyArray) -> float:
    """The part of the squared misfit left on pairs that were not fitted to, the worse of two halves."""
    cap = 6.0 * np.median(np.abs(left) * weight) + np.finfo(np.float64).tiny
    parts = []
    for fitted in (half, ~half):
        coefficients = _robust(columns[fitted], left[fitted], weight[fitted])
        after, before = (
            np.mean(np.minimum(np.abs(weight * one)[~fitted], cap) ** 2)
            for one in (left - columns @ coefficients, left)
        )
        parts.append(after / max(before, np.finfo(np.float64).tiny))
    return max(parts)


def _robust(columns: AnyArray, right: AnyArray, weight: AnyArray) -> AnyArray:
    """Weighted least squares in which outliers count little (Huber's weights)."""
    tiny = np.finfo(np.float64).tiny
    size = np.sqrt(((weight[:, None] * columns) ** 2).mean(axis=0)) + tiny
    now, coefficients = weight, np.zeros(columns.shape[1])
    for _ in range(ROBUST_STEPS):
        scaled = columns * (now[:, None] / size)
        gram = scaled.T @ scaled
        gram[np.diag_indices_from(gram)] += RIDGE * np.trace(gram) + tiny
        coefficients = np.linalg.solve(gram, scaled.T @ (right * now)) / size
        off = weight * np.abs(right - columns @ coefficients)
        typical = 1.5 * 1.4826 * np.median(off) + tiny
        now = weight * np.sqrt(np.minimum(1.0, typical / np.maximum(off, tiny)))
    return coefficients
