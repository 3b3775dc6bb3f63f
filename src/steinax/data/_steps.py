"""Where integrands with two values jump: as thresholds on combinations of the coordinates."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy.special import expit, logit

from .._types import AnyArray
from ._coordinates import stacked
from ._sample import Sample, has_families, on_the_reals

SAME = 1e-5  # the largest difference from a function of a coordinate, in standard deviations
FLAT = 1e-6  # the largest distance from a plane, relative to that between points in it
PAIRS = 6  # draws on each side between which a jump is searched for
PARTS, ROUNDS = 8, 13  # a line is cut into parts, and the one with the jump is cut again
NUDGE = 1e-6  # standard deviations, by which an argument is moved to see whether the jump moves
ARGUMENTS = 2000  # the most numbers that a function depends on


class Step(NamedTuple):
    r"""Where an integrand with two values jumps: it is `high` where $a^\top x$ exceeds a threshold.

    The coordinates $x$ fill $R^d$: those of `on_the_reals`.
    """

    along: np.ndarray  # a, (dim,)
    threshold: float
    low: float
    high: float


class Shape(NamedTuple):
    """An increasing function of one number, with its inverse and its derivative."""

    value: Callable[[Any], Any]
    inverse: Callable[[Any], Any]
    derivative: Callable[[Any], Any]


# Functions of a coordinate by which models constrain a parameter, up to scale and shift.
LINEAR = Shape(lambda u: u, lambda y: y, np.ones_like)
SHAPES = (
    LINEAR,
    Shape(np.exp, np.log, np.exp),
    Shape(expit, logit, lambda u: expit(u) * expit(-u)),
)


@dataclass(frozen=True)
class Link:
    r"""A monotone function of a combination $c = a^\top x$ of coordinates, increasing in $c$.

    Attributes:
        along: $a$, (dim,).
        shape: the function, up to scale and shift.
        slope: the scale; if it is negative, the function is of $-c$.
        shift: the shift.

    >>> link = Link(np.array([-1.0]), SHAPES[1], slope=-2.0, shift=5.0)
    >>> round(link.combination(3.0), 9), round(link.value(0.0), 9)
    (-0.0, 3.0)
    """

    along: np.ndarray
    shape: Shape
    slope: float = 1.0
    shift: float = 0.0

    def combination(self, value: float) -> float:
        """The combination that gives a value; NaN or infinite if none does."""
        with np.errstate(invalid="ignore", divide="ignore"):
            inner = self.shape.inverse((value - self.shift) / self.slope)
        return float(np.sign(self.slope) * inner)

    def value(self, combination: float) -> float:
        """The value that a combination gives."""
        inner = self.shape.value(np.sign(self.slope) * combination)
        return float(self.shift + self.slope * inner)

    def derivative(self, combination: float) -> float:
        """The derivative of the value by the combination."""
        return float(abs(self.slope) * self.shape.derivative(np.sign(self.slope) * combination))


def links(values: AnyArray, sample: Sample) -> list[Link | None]:
    """Find combinations of the coordinates that values are monotone functions of; None where there is none.

    Args:
        values: on the draws, (n, k).
        sample: the draws.
    """
    values = np.asarray(values, np.float64).reshape(sample.size, -1)
    found: list[Link | None] = [None] * values.shape[1]
    if has_families(sample):
        return found
    x, _ = stacked(sample, False, on_the_reals)
    spread = values.std(axis=0)
    y = (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    best = np.full(values.shape[1], SAME)
    for shape in SHAPES:
        with np.errstate(over="ignore", invalid="ignore"):
            columns = shape.value(x)
            columns = (columns - columns.mean(axis=0)) / columns.std(axis=0)
        columns = np.where(np.isfinite(columns), columns, 0.0)
        correlation = columns.T @ y / len(y)
        at = np.abs(correlation).argmax(axis=0)
        sign = np.sign(correlation[at, np.arange(len(at))])
        apart = np.abs(y - sign * columns[:, at]).max(axis=0)
        for i in np.flatnonzero((apart < best) & (spread > 0)):
            best[i] = apart[i]
            slope, shift = np.polyfit(shape.value(x[:, at[i]]), values[:, i], 1)
            along = np.sign(slope) * np.eye(x.shape[1])[at[i]]
            found[i] = Link(along, shape, float(slope), float(shift))
    rest = [i for i, link in enumerate(found) if link is None and spread[i] > 0]
    if rest and len(x) > 2 * x.shape[1]:
        _add_linear(found, rest, x, values)
    return found


def _add_linear(
    found: list[Link | None], rest: list[int], x: np.ndarray, values: np.ndarray
) -> None:
    """Find values that are linear in all coordinates."""
    centre, spread = x.mean(axis=0), x.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    y = values[:, rest]
    mean = y.mean(axis=0)
    z = (x - centre) / spread
    slopes = np.linalg.lstsq(z, y - mean, rcond=None)[0]
    apart = np.abs(y - mean - z @ slopes).max(axis=0)
    for j, i in enumerate(rest):
        if apart[j] < SAME * y[:, j].std():
            along = slopes[:, j] / spread
            found[i] = Link(along, LINEAR, shift=float(mean[j] - along @ centre))


def steps_above(values: AnyArray, thresholds: AnyArray, sample: Sample) -> tuple[Step | None, ...]:
    """The steps of the integrands `values > thresholds`; None where values are no function of a combination.

    Args:
        values: on the draws, (n, k).
        thresholds: one for each, (k,).
        sample: the draws.
    """
    places = (
        None if link is None else (link.along, link.combination(float(t)))
        for link, t in zip(links(values, sample), np.asarray(thresholds), strict=True)
    )
    return tuple(
        None if place is None or not np.isfinite(place[1]) else Step(*place, 0.0, 1.0)
        for place in places
    )


def steps_of(
    function: Any, selected: slice, width: int, values: np.ndarray, sample: Sample
) -> tuple[Step | None, ...]:
    """Find where the columns of a function jump, by evaluating it between draws; None where it is not found.

    Between a draw with one value and a draw with the other the jump is located, in terms of the
    function's arguments. If all such points lie in a plane that separates the draws, and its distance from
    them is a monotone function of a combination of coordinates, that is where the integrand jumps.

    Args:
        function: a `DrawFunction`.
        selected: some of its columns.
        width: the number of all of them.
        values: of the selected columns on the draws, (..., k).
        sample: the draws.
    """
    values = values.reshape(sample.size, -1)
    low, high = values.min(axis=0), values.max(axis=0)
    two = (low < high) & ((values == low) | (values == high)).all(axis=0)
    found: list[Step | None] = [None] * len(two)
    if not two.any() or sample.weights is not None or has_families(sample):
        return tuple(found)
    try:
        planes = Jumps(function, selected, width, values).planes(np.flatnonzero(two))
    except Exception:  # a function need not be defined between draws
        return tuple(found)
    if not planes:
        return tuple(found)
    distance = np.stack([plane[0] for plane in planes.values()], axis=1)
    ends = steps_above(distance, np.array([plane[1] for plane in planes.values()]), sample)
    for i, step in zip(planes, ends, strict=True):
        found[i] = None if step is None else step._replace(low=low[i], high=high[i])
    return tuple(found)


class Jumps:
    """Search for the jumps of a function of draws, in terms of its arguments.

    Args:
        function: a `DrawFunction`.
        selected: some of its columns.
        width: the number of all of them.
        values: of the selected columns on the draws, (n, k).
    """

    def __init__(self, function: Any, selected: slice, width: int, values: np.ndarray):
        leaves, self.tree = jax.tree.flatten(function.draws)
        self.shapes = [leaf.shape[1:] for leaf in leaves]
        arrays = [np.asarray(leaf, np.float64).reshape(len(values), -1) for leaf in leaves]
        self.edges = np.cumsum([array.shape[1] for array in arrays])[:-1]
        self.arguments = np.concatenate(arrays, axis=1)
        self.spread = self.arguments.std(axis=0)
        self.function, self.selected, self.width, self.values = function, selected, width, values
        self.high = values.max(axis=0)
        self.rng = np.random.default_rng(0)

    def evaluate(self, points: np.ndarray) -> np.ndarray:
        """Evaluate columns at some arguments, (rows, k): whether they have their higher value."""
        parts = np.split(points, self.edges, axis=1)
        leaves = [p.reshape(-1, *shape) for p, shape in zip(parts, self.shapes, strict=True)]
        moved = replace(self.function, draws=jax.tree.unflatten(self.tree, leaves))
        return moved.read(self.selected, self.width) == self.high

    def planes(self, columns: np.ndarray) -> dict[int, tuple[np.ndarray, float]]:
        """Find the planes in which columns jump: a combination of arguments on all draws, and a threshold."""
        if self.arguments.shape[1] > ARGUMENTS:
            return {}
        under, over = self._between(columns, PAIRS)
        active = self._active(columns, under[:, 0])
        most = int(active.sum(axis=1).max())
        if most + 2 > PAIRS:
            under, over = self._between(columns, most + 4)
        points, found = (under + over) / 2, {}
        for column, at, places in zip(columns, active, points, strict=True):
            plane = self._plane(int(column), np.flatnonzero(at), places)
            if plane is not None:
                found[int(column)] = plane
        return found

    def _between(self, columns: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Approach jumps on lines between pairs of draws, from both sides: (column, count, argument)."""
        pairs = []
        for column in columns:
            above = self.values[:, column] == self.high[column]
            sides = (np.flatnonzero(~above), np.flatnonzero(above))
            pairs.append([self.arguments[self.rng.choice(side, count)] for side in sides])
        under, over = (np.stack(side) for side in zip(*pairs, strict=True))
        which = np.repeat(columns, count)
        share = np.linspace(0, 1, PARTS + 1)[:, None, None, None]
        for _ in range(ROUNDS):
            points = under + share * (over - under)
            inner = points[1:-1].reshape(-1, points.shape[-1])
            above = self.evaluate(inner)[np.arange(len(inner)), np.tile(which, PARTS - 1)]
            first = _first_above(above.reshape(PARTS - 1, *under.shape[:2]))[None, ..., None]
            under, over = (np.take_along_axis(points, first + end, axis=0)[0] for end in (0, 1))
        return under, over

    def _active(self, columns: np.ndarray, under: np.ndarray) -> np.ndarray:
        """Which arguments move the jump of each column, (column, argument)."""
        nudges = np.concatenate([np.diag(self.spread), -np.diag(self.spread)]) * NUDGE
        points = (under[:, None] + nudges).reshape(-1, under.shape[1])
        which = np.repeat(columns, len(nudges))
        above = self.evaluate(points)[np.arange(len(which)), which]
        return above.reshape(len(columns), 2, -1).any(axis=1)

    def _plane(
        self, column: int, at: np.ndarray, points: np.ndarray
    ) -> tuple[np.ndarray, float] | None:
        """Fit a plane to points at which a column jumps, and check that it separates the draws."""
        if not len(at):
            return None
        scaled = points[:, at] / self.spread[at]
        centre = scaled.mean(axis=0)
        _, sizes, normals = np.linalg.svd(scaled - centre)
        sizes = np.pad(sizes, (0, max(len(at) - len(sizes), 0)))
        if len(at) > 1 and not sizes[-1] < FLAT * sizes[-2]:
            return None
        if len(at) == 1 and not np.ptp(scaled) < FLAT:
            return None
        distance = self.arguments[:, at] / self.spread[at] @ normals[-1]
        threshold = float(centre @ normals[-1])
        above = self.values[:, column] == self.high[column]
        if np.array_equal(distance > threshold, ~above):
            distance, threshold = -distance, -threshold
        return (distance, threshold) if np.array_equal(distance > threshold, above) else None


def _first_above(above: np.ndarray) -> np.ndarray:
    """How many points of each line, along the first axis, come before the first above the jump."""
    return np.where(above.any(axis=0), above.argmax(axis=0), len(above))


def joined(parts: Sequence[tuple[int, tuple[Step | None, ...]]]) -> tuple[Step | None, ...]:
    """Put the steps of several integrands side by side, given the number of columns of each."""
    if not any(steps for _, steps in parts):
        return ()
    return tuple(step for count, steps in parts for step in steps or (None,) * count)
