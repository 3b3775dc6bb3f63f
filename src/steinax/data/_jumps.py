"""Where integrands jump or bend: steps, thresholds, and their planes and curves in the coordinates."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import expit, logit

from .._types import AnyArray
from ._coordinates import stacked
from ._functions import Compiled, DrawFunction
from ._sample import Sample, has_families, on_the_reals

SAME = 1e-5  # the largest difference from a function of a coordinate, in standard deviations
FLAT = 1e-6  # the largest distance from a plane, relative to that between points in it
PAIRS = 6  # draws on each side between which a jump is searched for
PARTS, ROUNDS = 8, 13  # a line is cut into parts, and the one with the jump is cut again
NUDGE = 1e-6  # standard deviations, by which an argument is moved to see whether the jump moves
ARGUMENTS = 2000  # the most numbers that a function depends on
CURVED = (
    400  # and the most, and of coordinates, for functions whose second derivatives are computed
)
NUMBERS, BLOCK = 2**20, 256  # the most second derivatives at once, and points
FEW = 200  # and the most for functions that jump in several planes
PLACES = 40  # points at which these are searched for


class Step(NamedTuple):
    r"""A jump of an integrand: a number times $1\{a_1^\top x > t_1\}$, or times a product of two of these.

    The coordinates $x$ fill $R^d$: those of `on_the_reals`.
    """

    along: Any  # a, (1 or 2, dim), or a `Curve`, a smooth function of x in the place of a'x
    threshold: np.ndarray  # t, (1 or 2,)
    size: float


# The jumps of an integrand, which is their sum and a constant; none if they are not known.
type Steps = tuple[Step, ...]
SIDES = (False, True)  # of a plane: below and above


class Shape(NamedTuple):
    """An increasing function of one number, with its inverse and its derivative, and by jax."""

    value: Callable[[Any], Any]
    inverse: Callable[[Any], Any]
    derivative: Callable[[Any], Any]
    traced: Callable[[Any], Any]


# Functions of a coordinate by which models constrain a parameter, up to scale and shift.
LINEAR = Shape(lambda u: u, lambda y: y, np.ones_like, lambda u: u)
SHAPES = (
    LINEAR,
    Shape(np.exp, np.log, np.exp, jnp.exp),
    Shape(expit, logit, lambda u: expit(u) * expit(-u), jax.nn.sigmoid),
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


def steps_above(values: AnyArray, thresholds: AnyArray, sample: Sample) -> tuple[Steps, ...]:
    """The steps of the integrands `values > thresholds`; none if no combination gives the values.

    Args:
        values: on the draws, (n, k).
        thresholds: one for each, (k,).
        sample: the draws.
    """
    found = []
    for link, t in zip(links(values, sample), np.asarray(thresholds), strict=True):
        step = link and Step(link.along[None], np.array([link.combination(float(t))]), 1.0)
        found.append((step,) if step and np.isfinite(step.threshold[0]) else ())
    return tuple(found)


class Curve:
    """A smooth function of the coordinates, with the derivatives that fields along its gradient need.

    Args:
        function: one whose arguments are functions of combinations of coordinates.
        known: these functions, one for each number among the arguments.
        column: of the function's value.
        positive: whether to take the logarithm.
    """

    def __init__(
        self, function: DrawFunction, known: Sequence[Link], column: int, positive: bool = False
    ):
        self.function, self.known, self.column = function, known, column
        self.positive = positive
        self.compiled = jax.jit(jax.vmap(self._one, in_axes=(0, None)))

    def value(self, x: jax.Array) -> jax.Array:
        """The function at one point, (dim,)."""
        slope, shift = (
            np.array([getattr(k, name) for k in self.known]) for name in ("slope", "shift")
        )
        along = np.sign(slope)[:, None] * np.array([link.along for link in self.known])
        numbers = jnp.asarray(along) @ x
        for shape in SHAPES[1:]:
            at = np.flatnonzero([link.shape is shape for link in self.known])
            numbers = numbers.at[at].set(shape.traced(numbers[at]))
        row = self.function.put(shift + slope * numbers)
        value = jnp.ravel(self.function.one(row))[self.column]
        return jnp.log(value) if self.positive else value

    def _one(self, x: jax.Array, matrix: jax.Array) -> tuple[jax.Array, ...]:
        value, gradient = jax.value_and_grad(self.value)(x)
        bend, field = jax.hessian(self.value)(x), matrix @ gradient
        return value, field, gradient @ field, jnp.sum(matrix * bend), field @ bend @ field

    def __call__(self, x: AnyArray, matrix: AnyArray) -> tuple[np.ndarray, ...]:
        r"""Evaluate the function and its derivatives at points.

        Args:
            x: points, (n, dim).
            matrix: $S$, (dim, dim).

        Returns:
            The values $c$, (n,), $v = S \nabla c$, (n, dim), and $\nabla c^\top v$, $\mathrm{tr}\, S H$ and
            $v^\top H v$ with the second derivatives $H$ of $c$, (n,) each.
        """
        n, size = len(x), min(max(NUMBERS // x.shape[1] ** 2, 1), BLOCK)
        rows = np.asarray(x)[np.minimum(np.arange(-(-n // size) * size), n - 1)]  # whole blocks
        with self.function.scope():
            parts = [self.compiled(part, matrix) for part in np.split(rows, len(rows) // size)]
        return tuple(np.concatenate(each)[:n] for each in zip(*parts, strict=True))


def curved_steps(
    function: DrawFunction, columns: Sequence[int], threshold: float, sample: Sample
) -> tuple[Steps, ...]:
    """The steps of the events that columns of a function exceed a threshold, by its derivatives.

    There are none if jax cannot compute them, if a column is flat, or if the function's arguments are not
    functions of the coordinates. Of positive columns the logarithm is used, whose tails are shorter.

    Args:
        function: of the draws.
        columns: of its value.
        threshold: to exceed.
        sample: the draws.
    """
    none: tuple[Steps, ...] = ((),) * len(columns)
    arguments = function.arguments
    if not columns or max(sample.dim, arguments.shape[1]) > CURVED:
        return none
    known = [link for link in links(arguments, sample) if link is not None]
    if len(known) < arguments.shape[1]:
        return none
    parts = [sample, *sample.training]
    rows = np.concatenate([stacked(part, False, on_the_reals)[0] for part in parts])
    return tuple(_curved(function, known, column, threshold, rows) for column in columns)


def _curved(
    function: DrawFunction, known: Sequence[Link], column: int, threshold: float, rows: np.ndarray
) -> Steps:
    """The step of one column, if its derivatives at the draws are finite and not zero at most of them."""
    for positive in (True, False) if threshold > 0 else (False,):
        curve = Curve(function, known, column, positive)
        try:
            found = curve(rows, np.eye(rows.shape[1]))
        except Exception:  # a function need not be one of jax
            return ()
        if all(np.isfinite(each).all() for each in found) and np.median(found[2]) > 0:
            return (Step(curve, np.array([np.log(threshold) if positive else threshold]), 1.0),)
    return ()


def steps_of(
    function: DrawFunction, selected: slice, width: int, values: np.ndarray, sample: Sample
) -> tuple[Steps, ...]:
    """Find where the columns of a function jump, by evaluating it between draws.

    Between a draw with one value and a draw with the other the jump is located, in terms of the
    function's arguments. If all such points lie in a few planes, which decide between the two values on every
    draw, and distances from planes are monotone functions of combinations of coordinates, that is where
    the integrand jumps.

    Args:
        function: of the draws.
        selected: some of its columns.
        width: the number of all of them.
        values: of the selected columns on the draws, (..., k).
        sample: the draws.
    """
    values = values.reshape(sample.size, -1)
    low, high = values.min(axis=0), values.max(axis=0)
    two = (low < high) & ((values == low) | (values == high)).all(axis=0)
    found: list[Steps] = [()] * len(two)
    if not two.any() or sample.weights is not None or has_families(sample):
        return tuple(found)
    try:
        planes = Jumps(function, selected, width, values).planes(np.flatnonzero(two))
    except Exception:  # a function need not be defined between draws
        return tuple(found)
    if not planes:
        return tuple(found)
    flat = [plane for several in planes.values() for plane in several]
    distance = np.stack([plane.distance for plane in flat], axis=1)
    ends = iter(steps_above(distance, np.array([plane.threshold for plane in flat]), sample))
    for i, several in planes.items():
        known = [_oriented(step, plane.above) for plane in several for step in next(ends)]
        if len(known) == len(several):
            found[i] = _combined(known, values[:, i])
    return tuple(found)


def _combined(known: Sequence[tuple[Step, np.ndarray]], values: np.ndarray) -> Steps:
    """The steps of an integrand that depends on whether a draw is above one plane, or several."""
    (one, first), (two, second) = known[0], known[-1]
    if all(np.allclose(step.along, one.along) for step, _ in known):
        known = sorted(known, key=lambda each: each[0].threshold[0])
        sides = [
            np.ones(len(values), bool),
            *(above for _, above in known),
            np.zeros(len(values), bool),
        ]
        levels = [_value(values, a & ~b) for a, b in pairwise(sides)]
        found = [
            step._replace(size=size) for (step, _), size in zip(known, np.diff(levels), strict=True)
        ]
    elif len(known) == 2:
        found = _corner(
            one, two, [[_value(values, (first == a) & (second == b)) for b in SIDES] for a in SIDES]
        )
    else:
        return ()
    sizes = [step.size for step in found]
    return tuple(step for step in found if step.size) if np.isfinite(sizes).all() else ()


def _corner(one: Step, two: Step, cells: Sequence[Sequence[float]]) -> list[Step]:
    """The steps of an integrand with a value in each of the four cells between two planes."""
    (none, right), (left, both) = values = np.array(cells)
    usual = np.median(values)
    odd = np.argwhere(values != usual)
    if len(odd) == 1:  # only one corner is different
        sign = 2 * odd[0] - 1
        size = float(values[tuple(odd[0])] - usual)
    else:
        sign, size = np.ones(2), float(both - left - right + none)
    along, threshold = map(np.concatenate, zip(one[:2], two[:2], strict=True))
    corner = Step(sign[:, None] * along, sign * threshold, size)
    if len(odd) == 1:
        return [corner]
    return [one._replace(size=left - none), two._replace(size=right - none), corner]


def _oriented(step: Step, above: np.ndarray) -> tuple[Step, np.ndarray]:
    """A step of one combination, of length 1, with a positive largest weight, and where it is exceeded."""
    length = np.linalg.norm(step.along) * np.sign(step.along.flat[np.abs(step.along).argmax()])
    step = step._replace(along=step.along / length, threshold=step.threshold / length)
    return step, above if length > 0 else ~above


def _value(values: np.ndarray, among: np.ndarray) -> float:
    """The value of an integrand on some draws, which all have the same; NaN if there are none."""
    return float(values[among][0]) if among.any() else np.nan


class Plane(NamedTuple):
    """A plane in the space of a function's arguments, and on which side of it draws are."""

    distance: np.ndarray  # of the draws, up to a constant, (n,)
    threshold: float  # the constant

    @property
    def above(self) -> np.ndarray:
        """Which draws are on its upper side, (n,)."""
        return self.distance > self.threshold


class Jumps:
    """Search for the jumps of a function of draws, in terms of its arguments.

    Args:
        function: of the draws.
        selected: some of its columns.
        width: the number of all of them.
        values: of the selected columns on the draws, (n, k).
    """

    def __init__(self, function: DrawFunction, selected: slice, width: int, values: np.ndarray):
        self.arguments = function.arguments
        self.spread = self.arguments.std(axis=0)
        if function.has_loops():
            function = replace(function, f=Compiled(function.f))
        self.function, self.selected, self.width, self.values = function, selected, width, values
        self.high = values.max(axis=0)
        self.rng = np.random.default_rng(0)

    def evaluate(self, points: np.ndarray) -> np.ndarray:
        """Evaluate columns at some arguments, (rows, k): whether they have their higher value."""
        moved = replace(self.function, draws=self.function.put(points))
        return moved.read(self.selected, self.width) == self.high

    def planes(self, columns: np.ndarray) -> dict[int, list[Plane]]:
        """Find the planes in which columns jump, for those where planes explain all values."""
        if self.arguments.shape[1] > ARGUMENTS:
            return {}
        under, over = self._between(columns, PAIRS)
        active = self._active(columns, under[:, :1])[:, 0]
        most = int(active.sum(axis=1).max())
        if most + 2 > PAIRS:
            under, over = self._between(columns, most + 4)
        points = (under + over) / 2
        found = {}
        for column, at, places in zip(columns, active, points, strict=True):
            planes = self._fitted(np.flatnonzero(at), places)
            if self._explained(int(column), planes):
                found[int(column)] = planes
        if self.arguments.shape[1] <= FEW:
            found |= self._several(np.setdiff1d(columns, list(found)))
        return dict(sorted(found.items()))

    def _several(self, columns: np.ndarray) -> dict[int, list[Plane]]:
        """Find planes in which columns jump: points with the same active arguments belong together."""
        found = {}
        if not len(columns):
            return found
        under, over = self._between(columns, PLACES)
        active, points = self._active(columns, under), (under + over) / 2
        for column, at, places in zip(columns, active, points, strict=True):
            sets, which = np.unique(at, axis=0, return_inverse=True)
            planes = [
                plane
                for i, one in enumerate(sets)
                for plane in self._fitted(np.flatnonzero(one), places[which == i])
            ]
            if self._explained(int(column), planes):
                found[int(column)] = planes
        return found

    def _explained(self, column: int, planes: Sequence[Plane]) -> bool:
        """Whether the value of a column on each draw follows from the sides of planes that it is on."""
        cells = sum(2**i * plane.above for i, plane in enumerate(planes))
        values = self.values[:, column]
        return bool(planes) and all(np.ptp(values[cells == c]) == 0 for c in np.unique(cells))

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
        """Which arguments move the jump of each column at each point, (column, point, argument)."""
        nudges = np.concatenate([np.diag(self.spread), -np.diag(self.spread)]) * NUDGE
        points = (under[..., None, :] + nudges).reshape(-1, under.shape[-1])
        which = np.repeat(columns, under.shape[1] * len(nudges))
        above = self.evaluate(points)[np.arange(len(which)), which]
        return above.reshape(*under.shape[:2], 2, -1).any(axis=2)

    def _fitted(self, at: np.ndarray, points: np.ndarray) -> list[Plane]:
        """Fit a plane to points at which a column jumps, or several if one argument moves the jump."""
        if not len(at):
            return []
        scaled, arguments = points[:, at] / self.spread[at], self.arguments[:, at] / self.spread[at]
        if len(at) == 1:
            places = np.sort(scaled[:, 0])
            places = np.split(places, 1 + np.flatnonzero(np.diff(places) > FLAT))
            return [Plane(arguments[:, 0], float(each.mean())) for each in places]
        centre = scaled.mean(axis=0)
        _, sizes, normals = np.linalg.svd(scaled - centre)
        sizes = np.pad(sizes, (0, max(len(at) - len(sizes), 0)))
        if not sizes[-1] < FLAT * sizes[-2]:
            return []
        return [Plane(arguments @ normals[-1], float(centre @ normals[-1]))]


def _first_above(above: np.ndarray) -> np.ndarray:
    """How many points of each line, along the first axis, come before the first above the jump."""
    return np.where(above.any(axis=0), above.argmax(axis=0), len(above))


def joined(parts: Sequence[tuple[int, tuple[Steps, ...]]]) -> tuple[Steps, ...]:
    """Put the steps of several integrands side by side, given the number of columns of each."""
    if not any(steps for _, steps in parts):
        return ()
    return tuple(step for count, steps in parts for step in steps or ((),) * count)
