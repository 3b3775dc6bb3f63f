"""Control variates for functions that jump: fields with a kink where a combination passes a threshold."""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._numerics import namespace
from .._types import AnyArray, Point, Points
from ..data import covariance_of
from ..operators import AbstractOperator, Langevin
from ._base import AbstractLinearFamily

GRID = 257  # points on which a marginal distribution is tabulated
BEYOND = 3.0  # standard deviations that the grid reaches beyond the draws
DEGREES = (1, 3, 5, 7)  # of the polynomial of the marginal score
DRAWS = 12  # for each of its coefficients
STEEP = 0.05  # the least slope of the marginal score, downwards, in units of the variance
RIDGE = 1e-12  # a smaller entry on the diagonal of its factorisation is zero
NARROW = 600.0  # the largest difference of log densities that is tabulated


class Marginal(NamedTuple):
    r"""Approximate marginal distributions of combinations $c = a^\top x$, tabulated.

    With $b$ a direction such that $a^\top b = 1$, the score of the marginal density of $c$ is
    $E[s^\top b \mid c]$. A polynomial fitted to $s^\top b$, made decreasing, is integrated to a log-concave
    density. Whatever the error of this approximation, control variates that are built on it have mean zero.
    """

    along: AnyArray  # a, (dim, J)
    field: AnyArray  # b, (dim, J)
    centre: AnyArray  # the mean of c, (J,)
    scale: AnyArray  # its standard deviation, (J,)
    start: AnyArray  # the first point of the grid, of (c - centre) / scale, (J,)
    step: AnyArray  # the distance of its points, (J,)
    score: AnyArray  # of the marginal density, (grid, J)
    below: AnyArray  # the distribution function over the density, (grid, J)
    above: AnyArray  # one minus the distribution function, over the density, (grid, J)

    def of(self, which: Sequence[int] | np.ndarray) -> "Marginal":
        """Select combinations, which may repeat."""
        return Marginal(*(each[..., np.asarray(which)] for each in self))

    def place(self, x: Points) -> AnyArray:
        """The standardised combinations at many points, (n, J)."""
        return (x @ self.along - self.centre) / self.scale

    def fields(self, z: AnyArray, threshold: AnyArray) -> tuple[AnyArray, AnyArray]:
        r"""The functions $\varphi$ of the control variates of jumps at thresholds, and their slopes.

        They solve $\varphi' + \varphi\, m = 1\{z > t\} - P(z > t)$, with $m$ the marginal score.

        Args:
            z: standardised combinations, (..., J).
            threshold: also standardised, (J,).

        Returns:
            Values and slopes, (..., J) each.
        """
        xp = namespace(z, self.below)
        left, right = (self._at(threshold, *table)[0] for table in self._tables())
        whole = left + right
        (low, rise), (high, fall) = (self._at(z, *table) for table in self._tables())
        under = z <= threshold
        value = xp.where(under, -right * low, -left * high) / whole
        return value, xp.where(under, -right * rise, -left * fall) / whole

    def _tables(self) -> tuple[tuple[AnyArray, AnyArray], ...]:
        """The two tables with their slopes, from the differential equations that they solve."""
        return (self.below, 1 - self.score * self.below), (self.above, -1 - self.score * self.above)

    def _at(self, z: AnyArray, values: AnyArray, slopes: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Interpolate a table by cubics, constant beyond the grid; also return the slope."""
        xp, column = namespace(z, values), np.arange(values.shape[1])
        at = (z - self.start) / self.step
        cell = xp.clip(xp.floor(at), 0, len(values) - 2).astype(int)
        u = xp.clip(at - cell, 0.0, 1.0)
        first, last = values[cell, column], values[cell + 1, column]
        rise, fall = self.step * slopes[cell, column], self.step * slopes[cell + 1, column]
        change = last - first
        value = first + u * (
            rise + u * (3 * change - 2 * rise - fall + u * (rise + fall - 2 * change))
        )
        slope = rise + u * (6 * change - 4 * rise - 2 * fall + 3 * u * (rise + fall - 2 * change))
        inside = (at > 0) & (at < len(values) - 1)
        return value, xp.where(inside, slope, 0.0) / self.step

    def density(self, threshold: AnyArray) -> AnyArray:
        """The approximate densities of combinations at thresholds, (J,)."""
        z = (threshold - self.centre) / self.scale
        left, right = (self._at(z, *table)[0] for table in self._tables())
        return 1 / ((left + right) * self.scale)

    def densities(self, x: Points, score: Points, threshold: AnyArray) -> AnyArray:
        """Integrands whose expectations are the densities of combinations at thresholds, (n, J).

        They are the images of fields that jump there: the flux through the jump is the density.
        """
        xp, z = namespace(x, self.below), self.place(x)
        t = (threshold - self.centre) / self.scale
        left, right = (self._at(t, *table)[0] for table in self._tables())
        (low, rise), (high, fall) = (self._at(z, *table) for table in self._tables())
        value, slope = xp.where(z <= t, low, -high), xp.where(z <= t, rise, -fall)
        image = slope + value * (score @ self.field) * self.scale
        return image / ((left + right) * self.scale)

    def images(self, x: Points, score: Points, threshold: AnyArray) -> AnyArray:
        r"""The control variates of jumps at thresholds, (n, J): $\varphi'(z) + \varphi(z)\, \sigma s^\top b$.

        Args:
            x: points, (n, dim).
            score: their scores, (n, dim).
            threshold: of each combination, (J,).
        """
        value, slope = self.fields(self.place(x), (threshold - self.centre) / self.scale)
        return slope + value * (score @ self.field) * self.scale


def marginals(x: Points, score: Points, along: AnyArray) -> Marginal:
    r"""Approximate the marginal distributions of combinations from draws and scores.

    Args:
        x: draws, (n, dim).
        score: their scores, (n, dim).
        along: the combinations $a$, (dim, J).
    """
    xp = namespace(x)
    field = covariance_of(x, score)[1] @ along
    length = xp.sum(along * field, axis=0)
    field = field / xp.where(length > 0, length, 1.0)
    c = x @ along
    centre, scale = xp.mean(c, axis=0), xp.std(c, axis=0)
    scale = xp.where(scale > 0, scale, 1.0)
    z, slope = (c - centre) / scale, (score @ field) * scale
    first, last = xp.min(z, axis=0), xp.max(z, axis=0)
    start = first - BEYOND
    step = (last + BEYOND - start) / (GRID - 1)
    middle = start + (xp.arange(GRID - 1) + 0.5)[:, None] * step
    steep = xp.minimum(_derivative(z, slope, xp.clip(middle, first, last)), -STEEP) * step
    steps = _added_up(xp.zeros_like(start), steep)
    columns = xp.arange(len(step))
    at = (z - start) / step
    cell = xp.clip(xp.floor(at), 0, GRID - 2).astype(int)
    level = steps[cell, columns] + (at - cell) * steep[cell, columns]
    fitted = steps + xp.mean(slope - level, axis=0)
    below, above = _mills(fitted, step)
    return Marginal(along, field, centre, scale, start, step, fitted, below, above)


def _derivative(z: AnyArray, slope: AnyArray, at: AnyArray) -> AnyArray:
    """The derivative of a polynomial of each column of z that is fitted to one of slopes.

    The degree is the one of least expected error, as judged by generalised cross-validation.
    """
    xp, n = namespace(z), len(z)
    size = xp.max(xp.abs(z), axis=0)
    most = max(degree for degree in DEGREES if degree == 1 or DRAWS * degree <= n)
    power = xp.arange(most + 1)
    unit = (z / size).T
    powers = [xp.ones_like(unit)]
    for _ in range(most):
        powers.append(powers[-1] * unit)
    basis, upper = xp.linalg.qr(xp.stack(powers, axis=-1))  # (J, n, power), (J, power, power)
    parts = (basis.mT @ slope.T[..., None])[..., 0]
    left = xp.sum(slope**2, axis=0)[:, None] - xp.cumsum(parts**2, axis=1)
    left = xp.where(left > 0, left, 0.0) / (1 - 2 * (power + 1) / n) ** 2
    allowed = np.isin(np.arange(most + 1), DEGREES)
    best = xp.argmin(xp.where(allowed, left, np.inf), axis=1)
    parts = xp.where(power <= best[:, None], parts, 0.0)
    # a zero on the diagonal: the column does not move, and neither does its polynomial
    flat = xp.abs(xp.linalg.diagonal(upper)) < RIDGE
    upper = upper + xp.where(flat, 1.0, 0.0)[..., None] * xp.eye(most + 1)
    fit = xp.linalg.solve(upper, xp.where(flat, 0.0, parts)[..., None])[..., 0].T
    return sum(k * fit[k] * (at / size) ** (k - 1) / size for k in range(1, most + 1))


def _mills(score: AnyArray, step: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Integrate a score on a grid, and the density from both sides; return the integrals over the density."""
    xp = namespace(score)
    log = _added_up(xp.zeros_like(step), (score[1:] + score[:-1]) / 2 * step)
    density = xp.exp(xp.maximum(log - xp.max(log, axis=0), -NARROW))
    rise = density * score * step
    cells = ((density[1:] + density[:-1]) / 2 + (rise[:-1] - rise[1:]) / 12) * step
    cells = xp.maximum(cells, 0.0)
    below = _added_up(density[0] / xp.maximum(score[0], STEEP), cells)
    above = _added_up(density[-1] / xp.maximum(-score[-1], STEEP), cells[::-1])[::-1]
    return below / density, above / density


def _added_up(first: AnyArray, others: AnyArray) -> AnyArray:
    """Cumulative sums over rows, of a first one and all others."""
    xp = namespace(others)
    return xp.cumsum(xp.concat([first[None], others]), axis=0)


def _numbers(thresholds: float | Sequence[float] | AnyArray) -> tuple[float, ...]:
    return tuple(float(each) for each in np.atleast_1d(np.asarray(thresholds)))


class Kinks(AbstractLinearFamily):
    r"""Vector fields with a kink where a combination $c = a^\top x$ of coordinates passes a threshold.

    Nothing smooth follows a jump, and the control variate of a field with a kink has one: it is
    $\varphi'(c) + \varphi(c)\, b^\top s$ for the field $\varphi(c)\, b$ with $a^\top b = 1$. Here $\varphi$
    solves Stein's equation of $1\{c > t\}$ for an approximate marginal distribution of $c$, from the draws
    and scores that the family is fitted to, and $b$ is proportional to $S a$ with $S$ the covariance. For a
    Gaussian $1\{c > t\}$ minus the control variate is constant, the probability itself.

    `estimate` uses it without being asked for integrands with two values that jump where a combination of
    coordinates passes a threshold, and fits other families to what is left.

    Args:
        along: the combination: the name of a column, its index, or the weights of all columns.
        thresholds: one or several.
        operator: on vector fields.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 100, 3))
    >>> above = {"p": x[..., 0] > 1.0}
    >>> est = sx.estimate(above, sx.Sample(x, -x), sx.Kinks("x[0]", (1.0,)))
    >>> bool(est.worth[0] > 1000)
    True
    """

    along: str | int | tuple[float, ...] = eqx.field(static=True)
    thresholds: tuple[float, ...] = eqx.field(static=True, converter=_numbers)
    operator: AbstractOperator = eqx.field(default_factory=Langevin)
    references: ClassVar[tuple[str, ...]] = ("delasheras2018better",)

    def __check_init__(self) -> None:
        if not self.thresholds or not np.isfinite(self.thresholds).all():
            raise ValueError(f"Kinks: thresholds={self.thresholds}, give one or several numbers.")
        if not self.operator.acts_on_fields:
            raise ValueError(
                f"Kinks is a family of vector fields, and {type(self.operator).__name__} acts on potentials: "
                "use operator=Langevin()."
            )

    def placed(self, names: Sequence[str], shift: AnyArray, scale: AnyArray) -> "Kinks":
        """Find the column by its name, and transform the combination to other coordinates.

        Args:
            names: of the columns.
            shift: the origin of each coordinate, (dim,).
            scale: its unit, (dim,).
        """
        along = self.along
        if isinstance(along, str):
            if along not in names:
                shown = ", ".join(list(names)[:5])
                raise ValueError(f"Kinks: no column is named {along!r}; there are {shown}.")
            along = list(names).index(along)
        weights = replace(self, along=along)._weights(len(names))
        origin = float(weights @ np.broadcast_to(shift, len(names)))
        moved = weights * np.broadcast_to(scale, len(names))
        thresholds = tuple(threshold - origin for threshold in self.thresholds)
        return replace(self, along=tuple(map(float, moved)), thresholds=thresholds)

    def _weights(self, dim: int) -> np.ndarray:
        if isinstance(self.along, str):
            raise ValueError(
                "Kinks: give the index of the column, or call it through fit or estimate."
            )
        if isinstance(self.along, int):
            if not -dim <= self.along < dim:
                raise ValueError(
                    f"Kinks: column {self.along}, and the draws have {dim} coordinates, counted from 0."
                )
            return np.eye(dim)[self.along]
        if len(self.along) != dim or not np.any(self.along):
            raise ValueError(
                f"Kinks: {len(self.along)} weights for {dim} coordinates: give one for each, not all zero."
            )
        return np.array(self.along)

    @property
    def keeps_coordinates(self) -> bool:
        return True

    @property
    def centres_on_draws(self) -> bool:
        return True

    @property
    def is_parametric(self) -> bool:
        return True

    def setup(self, x: Points, score: Points) -> Marginal:
        weights = namespace(x).asarray(self._weights(x.shape[1])[:, None], dtype=x.dtype)
        return marginals(x, score, weights).of([0] * len(self.thresholds))

    def size(self, state: Marginal | None, dim: int) -> int:
        return len(self.thresholds)

    def feature_matrix(self, state: Marginal, x: Points, score: Points) -> AnyArray:
        return state.images(x, score, np.array(self.thresholds))

    def features(self, state: Marginal, x: Point, score: Point) -> jax.Array:
        return self.feature_matrix(state, jnp.asarray(x)[None], jnp.asarray(score)[None])[0]

    def basis(self, state: Marginal, x: Point) -> jax.Array:
        threshold = (np.array(self.thresholds) - state.centre) / state.scale
        value, _ = state.fields(jnp.asarray(state.place(x[None])), threshold)
        return value[0][:, None] * (state.field * state.scale).T
