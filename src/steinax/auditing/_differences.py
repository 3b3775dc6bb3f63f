"""Scores against finite differences of the log density, at a few draws."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .._types import AnyArray, Points
from ..data import Sample
from ._integrity import listed
from ._report import Finding

DRAWS = 5  # at which the density is evaluated
STEP = 1e-4  # of a standard deviation; the error of the difference is of its square
DIRECTIONS = 50  # beyond so many dimensions differences are taken along random directions
CLOSE = 1e-3  # of the typical score: scores may be off by so much, for the differences are
ROUNDING = 1e-10  # of the log density: what a difference may be off by


def differences(sample: Sample, log_density: Callable[[AnyArray], Any]) -> Finding | None:
    r"""The columns whose scores differ from $(\log\pi(x + h e) - \log\pi(x - h e)) / 2h$, if any do.

    Args:
        sample: the draws and scores.
        log_density: takes one draw, an array (dim,), and returns a number.
    """
    x, score = (np.asarray(one, np.float64) for one in (sample.x, sample.score))
    rows = np.linspace(0, len(x) - 1, DRAWS + 2).astype(int)[1:-1]
    scale = np.maximum(x.std(axis=0), np.finfo(np.float64).tiny)
    along = _directions(sample.dim)
    slopes, rounding = _slopes(log_density, x[rows], along * scale)
    wanted = score[rows] * scale @ along.T
    typical = np.sqrt(((score * scale) ** 2).mean()) + 1.0
    off = np.abs(slopes - wanted)
    wrong = off > CLOSE * np.maximum(np.abs(wanted), typical) + rounding
    if not wrong.any():
        return None
    worst = np.unravel_index(np.where(wrong, off, 0.0).argmax(), off.shape)
    draw = int(rows[worst[0]])
    columns: tuple[str, ...] = ()
    if len(along) == sample.dim:
        columns = tuple(
            name for name, one in zip(sample.names, wrong.any(axis=0), strict=True) if one
        )
    where = f" of {listed(columns)}" if columns else ""
    size = float(scale[worst[1]]) if columns else 1.0
    message = (
        f"the scores{where} are not the gradients of log_density: at draw {draw % sample.length} of chain "
        f"{draw // sample.length} a finite difference gives {slopes[worst] / size:.6g} and the score is "
        f"{wanted[worst] / size:.6g}. Correct the gradient, or give the log density that was sampled, on the "
        "unconstrained space with its Jacobian."
    )
    return Finding("differences", message, columns=columns)


def _directions(dim: int) -> AnyArray:
    """Along which differences are taken, (direction, dim)."""
    if dim <= DIRECTIONS:
        return np.eye(dim)
    normal = np.random.default_rng(0).normal(size=(dim, DIRECTIONS))
    return np.linalg.qr(normal)[0].T


def _slopes(
    log_density: Callable[[AnyArray], Any], points: Points, steps: AnyArray
) -> tuple[AnyArray, float]:
    """Central differences at each point along each step, and what rounding may add to them."""
    largest = 0.0

    def at(point: AnyArray) -> float:
        nonlocal largest
        value = np.asarray(log_density(point), np.float64)
        if value.shape != () or not np.isfinite(value):
            raise ValueError(
                f"log_density gives {value} for the draw {point}: it must take one draw, an array of shape "
                f"{point.shape}, and return one finite number."
            )
        largest = max(largest, abs(float(value)))
        return float(value)

    slopes = [[at(x + STEP * v) - at(x - STEP * v) for v in steps] for x in points]
    return np.array(slopes) / (2.0 * STEP), ROUNDING * largest / (2.0 * STEP)
