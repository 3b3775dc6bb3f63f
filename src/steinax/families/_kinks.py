"""Control variates for functions that jump: fields with a kink where a combination passes a threshold."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._numerics import namespace
from .._show import some_of
from .._types import AnyArray, Point, Points
from ..data import covariance_of
from ..operators import AbstractOperator, Langevin
from ._base import AbstractCoordinateFields

GRID = 257  # points on which a marginal distribution is tabulated
BEYOND = 3.0  # standard deviations that the grid reaches beyond the draws
DEGREES = (1, 3, 5, 7)  # of the polynomial of the marginal score
DRAWS = 12  # for each of its coefficients
STEEP = 0.05  # the least slope of the marginal score, downwards, in units of the variance
RIDGE = 1e-12  # a smaller entry on the diagonal of its factorisation is zero
FLAT = 0.01  # of the median squared gradient of a curved function: fields are bounded where it is smaller
TINY = 1e-12  # a smaller difference of log densities is treated like this one
NARROW = 80.0  # the largest logarithm of a tabulated ratio


# A smooth function of the coordinates with derivatives, such as `data.Curve`.
type Curve = Callable[[Points, AnyArray], tuple[AnyArray, ...]]


class Marginal(NamedTuple):
    r"""Approximate distributions of combinations $c = a^\top x$, tabulated.

    With $b$ a direction such that $a^\top b = 1$, the score of the marginal density of $c$ is
    $E[b^\top s \mid c]$. A polynomial fitted to the *push* $b^\top s$, made decreasing, is integrated to
    a log-concave density. Control variates that are built on this approximation have mean zero, whatever
    its error.
    """

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

    def standardised(self, c: AnyArray) -> AnyArray:
        """Combinations in units of their standard deviation, from their mean, (..., J)."""
        return (c - self.centre) / self.scale

    def density(self, threshold: AnyArray) -> AnyArray:
        """Compute the approximate densities at thresholds, (..., J)."""
        left, right = self._sides(self.standardised(threshold))
        return 1 / ((left + right) * self.scale)

    def tail(self, threshold: AnyArray) -> AnyArray:
        """Compute the approximate probabilities of exceeding thresholds, (..., J)."""
        left, right = self._sides(self.standardised(threshold))
        return right / (left + right)

    def images(
        self, c: AnyArray, push: AnyArray, threshold: AnyArray, weight: AnyArray | None = None
    ) -> AnyArray:
        r"""The control variates of jumps at thresholds, (n, J): $\varphi'(c) + \varphi(c)\, b^\top s$.

        Args:
            c: the combinations, (n, J).
            push: $b^\top s$, (n, J).
            threshold: of each combination, (J,) or (n, J).
            weight: as for `fields`.
        """
        t = self.standardised(threshold)
        value, slope = self.fields(self.standardised(c), t, weight)
        return slope + value * push * self.scale

    def fields(
        self, z: AnyArray, threshold: AnyArray, weight: AnyArray | None = None
    ) -> tuple[AnyArray, AnyArray]:
        r"""Compute the functions $\varphi$ of the control variates of jumps at thresholds, and their slopes.

        They solve $\varphi' + \varphi\, m = h(z) 1\{z > t\} - E[h(z) 1\{z > t\}]$, with $m$ the score of
        the marginal.

        Args:
            z: standardised combinations, (..., J).
            threshold: also standardised, (J,) or (..., J).
            weight: $h$ on the grid, (grid, J); 1 by default.

        Returns:
            Values and slopes, (..., J) each.
        """
        xp = namespace(z, self.below)
        tables = self._tables()
        left, right = self._sides(threshold)
        weighted = tables[1] if weight is None else self._weighted(weight)
        share = self._at(threshold, *weighted)[0] / (left + right)
        (low, rise), (high, fall) = (self._at(z, *table) for table in tables)
        top, drop = (high, fall) if weight is None else self._at(z, *weighted)
        under = z <= threshold
        value = xp.where(under, -share * low, share * high - top)
        return value, xp.where(under, -share * rise, share * fall - drop)

    def fluxes(self, c: AnyArray, push: AnyArray, threshold: AnyArray) -> AnyArray:
        """Compute integrands whose expectations are the densities of combinations at thresholds, (n, J).

        They are the images of fields that jump at the thresholds: the flux through the jump is the density.
        """
        xp, z, t = namespace(c, self.below), self.standardised(c), self.standardised(threshold)
        (low, rise), (high, fall) = (self._at(z, *table) for table in self._tables())
        value, slope = xp.where(z <= t, low, -high), xp.where(z <= t, rise, -fall)
        return (slope + value * push * self.scale) * self.density(threshold)

    def grid(self) -> AnyArray:
        """The combinations of the tables, (grid, J)."""
        steps = namespace(self.below).arange(len(self.below))[:, None]
        return self.centre + self.scale * (self.start + steps * self.step)

    def excess(self, threshold: AnyArray, order: int) -> AnyArray | None:
        """The weight for `fields` of kinks of an order, (grid, J)."""
        return None if order == 1 else self.grid() - threshold

    def _sides(self, z: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Interpolate both tables at standardised combinations; their sum is one over the density."""
        left, right = (self._at(z, *table)[0] for table in self._tables())
        return left, right

    def _tables(self) -> tuple[tuple[AnyArray, AnyArray], ...]:
        """Return the two tables with their slopes, from the differential equations that they solve."""
        return (self.below, 1 - self.score * self.below), (self.above, -1 - self.score * self.above)

    def _weighted(self, weight: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Compute the table for values above a threshold, weighted, and its slope."""
        density = 1 / (self.below + self.above)
        rise = namespace(weight).gradient(weight, axis=0) + weight * self.score * self.step
        cells = _cells(weight * density, rise * density, self.step)
        last = (weight * self.above * density)[-1]
        above = _added_up(last, cells[::-1])[::-1] / density
        return above, -weight - self.score * above

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


def marginal_of(c: AnyArray, push: AnyArray) -> Marginal:
    """Approximate the distributions of combinations, (n, J), from their pushes, (n, J)."""
    xp = namespace(c)
    centre, scale = xp.mean(c, axis=0), xp.std(c, axis=0)
    scale = xp.where(scale > 0, scale, 1.0)
    z, slope = (c - centre) / scale, push * scale
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
    return Marginal(centre, scale, start, step, fitted, below, above)


class Along(NamedTuple):
    """Control variates of the jumps of indicators that combinations exceed thresholds."""

    along: AnyArray  # the combinations a, (dim, J)
    field: AnyArray  # the directions b, (dim, J)
    marginal: Marginal

    def of(self, which: Sequence[int] | np.ndarray) -> "Along":
        """Select combinations, which may repeat."""
        which = np.asarray(which)
        return Along(self.along[:, which], self.field[:, which], self.marginal.of(which))

    def images(self, x: Points, score: Points, threshold: AnyArray, order: int = 1) -> AnyArray:
        """Compute the control variates at points, (n, J), for a threshold of each combination, (J,).

        Control variates of order 1 are for jumps; those of order 2 are for the excess of a combination
        over a threshold.
        """
        weight = self.marginal.excess(threshold, order)
        return self.marginal.images(x @ self.along, score @ self.field, threshold, weight)

    def fluxes(self, x: Points, score: Points, threshold: AnyArray) -> AnyArray:
        """Compute integrands whose expectations are the densities at thresholds, (n, J)."""
        return self.marginal.fluxes(x @ self.along, score @ self.field, threshold)


def along_of(x: Points, score: Points, combinations: AnyArray, covariance: Any = None) -> Along:
    """Shape control variates of jumps of combinations, (dim, J), by draws and scores, (n, dim)."""
    xp = namespace(x)
    covariance = covariance_of(x, score)[1] if covariance is None else covariance
    field = covariance @ combinations
    length = xp.sum(combinations * field, axis=0)
    field = field / xp.where(length > 0, length, 1.0)
    return Along(combinations, field, marginal_of(x @ combinations, score @ field))


class Corners(NamedTuple):
    r"""Control variates of the jumps of $1\{c_1 > t_1\} 1\{c_2 > t_2\}$, for two combinations.

    With $r = c_1 - \rho c_2$ uncorrelated with $c_2$, the first factor is that $r$ exceeds $t_1 - \rho c_2$.
    Its control variate has a direction in which $c_2$ is constant, so it may be multiplied by the second
    factor. The residual is about $P(r > t_1 - \rho c_2)$, a function of $c_2$, times the second factor, and
    has a control variate of its own.
    """

    first: Along  # of r
    second: Along  # of the second combination
    ratio: AnyArray  # rho, (J,)

    def of(self, which: Sequence[int] | np.ndarray) -> "Corners":
        """Select pairs, which may repeat."""
        return Corners(self.first.of(which), self.second.of(which), self.ratio[np.asarray(which)])

    def images(self, x: Points, score: Points, threshold: AnyArray) -> AnyArray:
        """Compute the control variates at points, (n, J), for two thresholds of each pair, (2, J)."""
        c, marginal = x @ self.second.along, self.second.marginal
        beyond = c > threshold[1]
        first = self.first.images(x, score, threshold[0] - self.ratio * c) * beyond
        weight = self.first.marginal.tail(threshold[0] - self.ratio * marginal.grid())
        return first + marginal.images(c, score @ self.second.field, threshold[1], weight)


def corners_of(x: Points, score: Points, combinations: AnyArray) -> Corners:
    """Shape control variates of jumps of pairs of combinations, (2, dim, J), by draws and scores."""
    xp, covariance = namespace(x), covariance_of(x, score)[1]
    one, two = combinations
    spread = covariance @ two
    ratio = xp.sum(one * spread, axis=0) / xp.sum(two * spread, axis=0)
    first = along_of(x, score, one - ratio * two, covariance)
    return Corners(first, along_of(x, score, two, covariance), ratio)


class Curved(NamedTuple):
    r"""Control variates of the jumps of $1\{c(x) > t\}$ for one smooth function $c$ of the coordinates.

    The field is $\varphi(c)\, b$ with $b = S \nabla c / (\nabla c^\top S \nabla c + \epsilon)$. Its image is
    $\kappa \varphi'(c) + \varphi(c) (b^\top s + \mathrm{div}\, b)$, with $\kappa = b^\top \nabla c$. A small
    number $\epsilon$ keeps $b$ finite where $c$ is flat.
    """

    function: Curve
    covariance: AnyArray  # S, (dim, dim)
    flat: float  # epsilon
    marginal: Marginal

    def images(self, x: Points, score: Points, threshold: AnyArray) -> AnyArray:
        """Compute the control variates at points, (n, 1), for a threshold, (1,)."""
        c, share, push = _pushed(self.function(x, self.covariance), score, self.flat)
        marginal = self.marginal
        value, slope = marginal.fields(*map(marginal.standardised, (c, threshold)))
        return share * slope + value * push * marginal.scale


def curved_of(x: Points, score: Points, function: Curve) -> Curved:
    """Shape control variates of jumps of a smooth function by draws and scores, (n, dim)."""
    covariance = covariance_of(x, score)[1]
    found = function(x, covariance)
    flat = FLAT * float(np.median(found[2]))
    c, _, push = _pushed(found, score, flat)
    return Curved(function, covariance, flat, marginal_of(c, push))


def _pushed(
    found: tuple[AnyArray, ...], score: Points, flat: float
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Evaluate the function, its slope along the field b, and the push at points, (n, 1) each."""
    c, field, steep, trace, bend = found
    whole = steep + flat
    push = np.sum(field * score, axis=1) / whole + trace / whole - 2 * bend / whole**2
    return c[:, None], (steep / whole)[:, None], push[:, None]


def _derivative(z: AnyArray, slope: AnyArray, at: AnyArray) -> AnyArray:
    """Fit a polynomial of each column of z to a column of slopes, and differentiate it.

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
    """Integrate a score on a grid, and the density from both sides; return the integrals over the density.

    All is done with logarithms, as densities with long tails vanish before the grid ends. Where they change
    much within a cell, they are at least as large as an exponential function between its ends.
    """
    xp = namespace(score)
    log = _added_up(xp.zeros_like(step), (score[1:] + score[:-1]) / 2 * step)
    drop = xp.maximum(xp.abs(log[1:] - log[:-1]), TINY)
    top = xp.maximum(log[1:], log[:-1])
    mass = xp.exp(xp.stack([log[:-1], log[1:]]) - top)
    rise = mass * xp.stack([score[:-1], score[1:]]) * step
    cells = xp.maximum(_cells(mass, rise, step)[0], -xp.expm1(-drop) / drop * step)
    cells = top + xp.log(cells)
    left = xp.concat([(log[0] - xp.log(xp.maximum(score[0], STEEP)))[None], cells])
    right = xp.concat([cells, (log[-1] - xp.log(xp.maximum(-score[-1], STEEP)))[None]])
    below, above = _log_sums(left), _log_sums(right[::-1])[::-1]
    return xp.exp(xp.minimum(below - log, NARROW)), xp.exp(xp.minimum(above - log, NARROW))


def _log_sums(logs: AnyArray) -> AnyArray:
    """Compute logarithms of cumulative sums over rows."""
    if namespace(logs) is np:
        return np.logaddexp.accumulate(logs, axis=0)
    return jax.lax.cumlogsumexp(logs, axis=0)


def _cells(mass: AnyArray, rise: AnyArray, step: AnyArray) -> AnyArray:
    """Integrate over the cells of a grid, given values and slopes, the latter times the step."""
    return ((mass[1:] + mass[:-1]) / 2 + (rise[:-1] - rise[1:]) / 12) * step


def _added_up(first: AnyArray, others: AnyArray) -> AnyArray:
    """Compute cumulative sums over rows, of a first one and all others."""
    xp = namespace(others)
    return xp.cumsum(xp.concat([first[None], others]), axis=0)


def _numbers(thresholds: float | Sequence[float] | AnyArray) -> tuple[float, ...]:
    return tuple(float(each) for each in np.atleast_1d(np.asarray(thresholds)))


class Kinks(AbstractCoordinateFields):
    r"""Vector fields with a kink where a combination $c = a^\top x$ of coordinates crosses a threshold.

    No smooth function follows a jump, but the control variate of a field with a kink has a jump: it is
    $\varphi'(c) + \varphi(c)\, b^\top s$ for the field $\varphi(c)\, b$ with $a^\top b = 1$. Here $\varphi$
    solves Stein's equation of $1\{c > t\}$ for an approximate marginal distribution of $c$, from the draws
    and scores that the family is fitted to, and $b$ is proportional to $S a$ with $S$ the covariance. For a
    Gaussian $1\{c > t\}$ minus the control variate is constant, the probability itself.

    `estimate` uses this family automatically for integrands with two values that jump where a combination
    of coordinates crosses a threshold, and fits other families to the residual. Kinks of second order are
    for integrands that have a kink themselves, such as the expected excess $(c - t)_+$ over a limit.

    Args:
        along: the combination: the name of a column, its index, or the weights of all columns.
        thresholds: one or several.
        order: 1 for jumps of the integrand, 2 for kinks.
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
    order: int = eqx.field(static=True, default=1)
    operator: AbstractOperator = eqx.field(default_factory=Langevin)
    references: ClassVar[tuple[str, ...]] = ("delasheras2018better",)

    def __check_init__(self) -> None:
        if not self.thresholds or not np.isfinite(self.thresholds).all():
            raise ValueError(f"Kinks: thresholds={self.thresholds}: give one or several numbers.")
        if self.order not in (1, 2):
            raise ValueError(f"Kinks: order={self.order}: give 1 for jumps, or 2 for kinks.")

    def placed(self, names: Sequence[str], shift: AnyArray, scale: AnyArray) -> "Kinks":
        """Find the column by its name, and transform the combination to other coordinates."""
        along = self.along
        if isinstance(along, str):
            if along not in names:
                raise ValueError(
                    f"Kinks: no column of the unconstrained draws is named {along!r}; there are "
                    f"{some_of(names)}. Name one of these, or give its weights on all of them."
                )
            along = list(names).index(along)
        weights = replace(self, along=along)._weights(len(names))
        origin = float(weights @ np.broadcast_to(shift, len(names)))
        moved = weights * np.broadcast_to(scale, len(names))
        thresholds = tuple(threshold - origin for threshold in self.thresholds)
        return replace(self, along=tuple(map(float, moved)), thresholds=thresholds)

    def _weights(self, dim: int) -> np.ndarray:
        if isinstance(self.along, str):
            raise ValueError(
                "Kinks: a column is found by its name only through fit or estimate: give its index here."
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

    def setup(self, x: Points, score: Points) -> Along:
        weights = namespace(x).asarray(self._weights(x.shape[1])[:, None], dtype=x.dtype)
        return along_of(x, score, weights).of([0] * len(self.thresholds))

    def size(self, state: Along | None, dim: int) -> int:
        return len(self.thresholds)

    def feature_matrix(self, state: Along, x: Points, score: Points) -> AnyArray:
        return state.images(x, score, np.array(self.thresholds), self.order)

    def basis(self, state: Along, x: Point) -> jax.Array:
        marginal = state.marginal
        c, threshold = jnp.asarray(x @ state.along), np.array(self.thresholds)
        weight = marginal.excess(threshold, self.order)
        z, t = map(marginal.standardised, (c[None], threshold))
        value, _ = marginal.fields(z, t, weight)
        return value[0][:, None] * (state.field * marginal.scale).T
