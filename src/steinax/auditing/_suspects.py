"""Errors of the scores that would explain why they do not fit the log densities."""

from dataclasses import dataclass

import numpy as np

from .._types import AnyArray
from ._trapezoid import Misfit

EXPLAINED = (
    0.3  # of the squared misfit: what a suspected error may leave, on pairs it was not fitted to
)
STEADY = 0.5  # the part of an error that may change when distances are extrapolated to zero
APART = 1.05  # the ratio of squared distances from which on they are extrapolated
SIMPLER = 3.0  # times the least misfit: what a simpler error may leave
PAIRS = 4  # for each coefficient, at least
TIED = 3  # draws whose scores share the largest size, at least
ROBUST_STEPS = 5


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


def suspect(misfit: Misfit, least: float) -> Suspect | None:
    """The simplest error of the scores that explains the misfit and matters.

    Args:
        misfit: of log densities and scores.
        least: the bias from which on it matters, in standard deviations.
    """
    found = [
        one
        for kind, field in _fields(misfit).items()
        if (one := _explains(misfit, kind, field, least)) is not None
    ]
    best = min((one.explained for one in found), default=0.0)
    return next((one for one in found if one.explained <= max(SIMPLER * best, 0.05)), None)


def _fields(misfit: Misfit) -> dict[str, AnyArray]:
    """Vector fields that an error may be made of, the simpler first: each (n, k, dim)."""
    n, dim = misfit.y.shape
    constant = np.broadcast_to(np.eye(dim), (n, dim, dim))
    tempered = misfit.score[:, None, :]
    fields = {"constant": constant, "tempered": tempered}
    clipped = _tied(misfit.raw)
    if clipped.any():
        fields["clipped"] = tempered * clipped[:, None, None]
    line = misfit.y[:, :, None] * constant
    return fields | {"smooth": np.concatenate([constant, line, tempered], axis=1)}


def _tied(scores: AnyArray) -> AnyArray:
    """Which draws share the largest norm of their scores, or the largest entry, as clipping leaves them."""
    largest = [np.linalg.norm(scores, axis=1), np.abs(scores).max(axis=1)]
    tied = [np.isclose(one, one.max(), rtol=1e-6, atol=0.0) for one in largest]
    distinct = [len(np.unique(scores[mask], axis=0)) for mask in tied]
    masks = [m for m, count in zip(tied, distinct, strict=True) if TIED <= count < len(scores)]
    return masks[0] if masks else np.zeros(len(scores), dtype=bool)


def _explains(misfit: Misfit, kind: str, field: AnyArray, least: float) -> Suspect | None:
    columns = misfit.between(field)
    if len(columns) < PAIRS * columns.shape[1]:
        return None
    everything = np.ones(len(columns), dtype=bool)
    error, bias, effects = _effects(misfit, field, columns, everything)
    if np.abs(effects).max() < least or not _steady(misfit, field, columns, effects):
        return None
    left = _unexplained(columns, misfit.left, 1.0 / misfit.square, misfit.first % 2 == 0)
    size = np.sqrt((error**2).mean(axis=0))
    return Suspect(kind, bias, size, left) if left <= EXPLAINED else None


def _effects(
    misfit: Misfit, field: AnyArray, columns: AnyArray, pairs: AnyArray
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """The error fitted to some pairs, and what it adds to estimates.

    Returns:
        The error, (n, dim), the bias of each mean, and the biases of means and squares in whitened
        coordinates. Biases are in standard deviations, so that all plain averages have one standard error.
    """
    weight = 1.0 / misfit.square
    coefficients = _robust(columns[pairs], misfit.left[pairs], weight[pairs])
    error = -np.einsum("nkd,k->nd", field, coefficients)
    white = error @ misfit.factor
    z = np.linalg.solve(misfit.factor, misfit.y.T).T
    means, squares = white.mean(axis=0), (z * white).mean(axis=0) / np.sqrt(2.0)
    return error, misfit.factor @ means, np.concatenate([means, squares])


def _steady(misfit: Misfit, field: AnyArray, columns: AnyArray, effects: AnyArray) -> bool:
    """Whether the error remains at distance zero, where the trapezoidal rule has none of its own."""
    near = misfit.square < np.median(misfit.square)
    close, far = (misfit.square[part].mean() for part in (near, ~near))
    if far < APART * close:
        return False
    at_close, at_far = (_effects(misfit, field, columns, part)[2] for part in (near, ~near))
    at_zero = (at_close * far - at_far * close) / (far - close)
    worst = int(np.abs(effects).argmax())
    return bool(abs(at_zero[worst] - effects[worst]) <= STEADY * abs(effects[worst]))


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
    now, coefficients = weight, np.zeros(columns.shape[1])
    tiny = np.finfo(np.float64).tiny
    for _ in range(ROBUST_STEPS):
        coefficients = np.linalg.lstsq(columns * now[:, None], right * now, rcond=1e-8)[0]
        off = weight * np.abs(right - columns @ coefficients)
        typical = 1.5 * 1.4826 * np.median(off) + tiny
        now = weight * np.sqrt(np.minimum(1.0, typical / np.maximum(off, tiny)))
    return coefficients
