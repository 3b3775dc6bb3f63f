"""Control variates with shared coefficients: summed over members of a vector, or over sites of a lattice."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import combinations_with_replacement, groupby, product
from math import factorial, prod
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._numerics import namespace
from .._types import AnyArray, Point, Points
from ..data import shape_of, vectors_of
from ..operators import AbstractOperator, Langevin
from ._base import NUMBERS, AbstractCoordinateFields

GLOBALS = 6  # the most coordinates outside of vectors that features depend on
CONSTANT = 1e-8  # a smaller standard deviation: the coordinate does not move
MEMBERS = 8  # the least members of a vector that is found by name


class Standardised(NamedTuple):
    """The quantities that shape tied features: mean and sd of every coordinate, weights of the members."""

    mean: AnyArray  # (dim,)
    sd: AnyArray  # (dim,)
    weights: tuple[AnyArray, ...]  # of each vector, (member, 3)


class Tied(AbstractCoordinateFields):
    r"""Vector fields whose coefficients are shared by all members of a vector, for hierarchies and panels.

    With $z_j$ the members of a vector such as `theta[0]`, `theta[1]`, ..., $g$ the coordinates outside of
    vectors and $w_j$ fixed weights, $\sum_j w_j [h(z_j, g) s_j + \partial h / \partial z_j]$ has mean zero
    for every target, and the number of such features does not grow with the length of the vector. The
    functions $h$ are products of low powers of the member and of $g$. The weights are 1, the member's
    mean and the logarithm of its standard deviation, on the draws that the family is fitted to. The same
    functions, and sums over members, multiply the scores of $g$.

    `estimate` tries this family automatically from 30 dimensions on, and adds features of the members
    that an integrand depends on.

    Args:
        degree: 1 or 2. Degree 2 adds squares of members and of $g$, and needs about three times the draws.
        vectors: names of vectors, or the columns of each; by default all vectors of the sample with at least
            eight members.
        operator: on vector fields.

    >>> import numpy as np, steinax as sx
    >>> rng = np.random.default_rng(0)
    >>> mu = rng.normal(size=(4, 100, 1))
    >>> theta = mu + rng.normal(size=(4, 100, 300))
    >>> score = np.concatenate([(theta - mu).sum(axis=-1, keepdims=True) - mu, mu - theta], axis=-1)
    >>> names = ["mu", *(f"theta[{j}]" for j in range(300))]
    >>> sample = sx.from_arrays(np.concatenate([mu, theta], axis=-1), score, names)
    >>> bool(sx.estimate("mu", sample, sx.Tied()).worth[0] > 100)
    True
    """

    degree: int = eqx.field(static=True, default=1)
    vectors: tuple[str | tuple[int, ...], ...] = eqx.field(static=True, default=())
    operator: AbstractOperator = eqx.field(default_factory=Langevin)
    # of the coordinates that the family is set up in, see `placed`
    shift: AnyArray | None = eqx.field(default=None, repr=False)
    scale: AnyArray | None = eqx.field(default=None, repr=False)

    def __check_init__(self) -> None:
        if self.degree not in (1, 2):
            raise ValueError(f"Tied({self.degree}): give degree 1 or 2.")

    def placed(self, names: Sequence[str], shift: AnyArray, scale: AnyArray) -> "Tied":
        """Find vectors by their names, and store the origin and unit of each coordinate."""
        found = {names[int(at[0])].split("[")[0]: at for at in vectors_of(names, 2)}
        wanted = self.vectors or [name for name, at in found.items() if len(at) >= MEMBERS]
        if not wanted:
            raise ValueError(
                f"Tied() found no vector of at least {MEMBERS} columns by name, such as theta[0], theta[1], "
                "...: name the columns so, or give the columns of each as vectors."
            )
        missing = [name for name in wanted if isinstance(name, str) and name not in found]
        if missing:
            raise ValueError(f"no vector is named {missing[0]!r}: there are {', '.join(found)}.")
        vectors = (found[each] if isinstance(each, str) else each for each in wanted)
        columns = tuple(tuple(int(i) for i in each) for each in vectors)
        return replace(self, vectors=columns, shift=shift, scale=scale)

    def setup(self, x: Points, score: Points) -> Standardised:
        xp = namespace(x)
        largest = max(int(at.max()) for at in self._columns())
        if largest >= x.shape[1]:
            raise ValueError(
                f"Tied: a vector has the column {largest}, and the draws have {x.shape[1]} coordinates, "
                "counted from 0; give columns among them."
            )
        mean, sd = xp.mean(x, axis=0), xp.std(x, axis=0)
        sd = xp.where(sd > CONSTANT, sd, 1.0)
        shift, scale = (0.0, 1.0) if self.scale is None else (self.shift, self.scale)
        centre, width = shift + scale * mean, xp.log(scale * sd)
        weights = tuple(_member_weights(centre[at], width[at]) for at in self._columns())
        return Standardised(mean, sd, weights)

    def _columns(self) -> list[np.ndarray]:
        if not self.vectors or isinstance(self.vectors[0], str):
            raise ValueError(
                "Tied: give the columns of each vector, or call it through fit or estimate."
            )
        return [np.array(each) for each in self.vectors]

    def size(self, state: Standardised | None, dim: int) -> int:
        v, g = len(self.vectors), len(outside(self._columns(), dim))
        pairs = g * (g + 1) // 2
        linear = 6 * v * (1 + g) + g * (1 + g + 3 * v + pairs)
        return linear if self.degree == 1 else linear + 3 * v * (1 + pairs) + 3 * v * g * (1 + g)

    def feature_matrix(self, state: Standardised, x: Points, score: Points) -> AnyArray:
        return self.columns(state, x, score)

    def columns(
        self, state: Standardised, x: Points, score: Points, scores: bool = True
    ) -> AnyArray:
        """Compute the features of many points, (n, p), with or without those that are sums of scores."""
        xp, columns = namespace(x), self._columns()
        z, push = (x - state.mean) / state.sd, score * state.sd
        alone = outside(columns, x.shape[1])
        found = _features(z, push, columns, state.weights, alone, self.degree, scores)
        return xp.concat(found, axis=1)

    def basis(self, state: Standardised, x: Point) -> jax.Array:
        columns, dim = self._columns(), x.shape[0]
        z, alone = (x - state.mean) / state.sd, outside(columns, dim)
        g, fields = z[alone], []
        pairs = list(combinations_with_replacement(range(len(alone)), 2))
        for members, weights in zip(columns, state.weights, strict=True):
            t = z[members]
            powers = [
                jnp.ones_like(t),
                t,
                *(h for each in g for h in (each * jnp.ones_like(t), each * t)),
            ]
            if self.degree == 2:
                powers += [t**2, *(g[i] * g[j] * jnp.ones_like(t) for i, j in pairs)]
            for h in powers:
                columns_of = (jnp.asarray(weights).T * h) * state.sd[members]
                fields += [jnp.zeros(dim, x.dtype).at[members].set(each) for each in columns_of]
        sums = [weights.T @ z[at] for at, weights in zip(columns, state.weights, strict=True)]
        squares = [
            weights.T @ z[at] ** 2 for at, weights in zip(columns, state.weights, strict=True)
        ]
        for i in alone:
            scalars = [jnp.ones(()), *g, *(each for group in sums for each in group)]
            scalars += [g[j] * g[k] for j, k in pairs]
            if self.degree == 2:
                scalars += [each for group in squares for each in group]
                scalars += [each * one for one in g for group in sums for each in group]
            fields += [jnp.zeros(dim, x.dtype).at[i].set(state.sd[i] * each) for each in scalars]
        return jnp.stack(fields)


def _member_weights(mean: AnyArray, width: AnyArray) -> AnyArray:
    """The weights of the members of a vector: 1, their means and log standard deviations, (member, 3)."""
    xp = namespace(mean)
    units = [(each - xp.mean(each)) / xp.maximum(xp.std(each), 1e-12) for each in (mean, width)]
    return xp.stack([xp.ones_like(mean), *units], axis=1) / len(mean) ** 0.5


def outside(vectors: Sequence[np.ndarray], dim: int) -> np.ndarray:
    """Find the first coordinates outside of vectors."""
    return np.setdiff1d(np.arange(dim), np.concatenate(vectors))[:GLOBALS]


def _features(
    z: AnyArray,
    push: AnyArray,
    vectors: Sequence[np.ndarray],
    weights: Sequence[AnyArray],
    alone: np.ndarray,
    degree: int,
    scores: bool,
) -> list[AnyArray]:
    """Compute the features of `Tied`, (n, some) each.

    Args:
        z: standardised coordinates, (n, dim).
        push: their scores.
        vectors: the columns of each vector.
        weights: of the members of each, (member, 3).
        alone: the coordinates outside of vectors that features depend on.
        degree: 1 or 2.
        scores: whether to include those that are sums of scores.
    """
    g, slope = z[:, alone], push[:, alone]
    unit = np.eye(len(alone))
    pairs = list(combinations_with_replacement(range(len(alone)), 2))
    found, sums, squares = [], [], []
    for members, weight in zip(vectors, weights, strict=True):
        t, along = z[:, members], push[:, members]
        constant, once = along @ weight, (t * along + 1) @ weight
        found += [constant, once] if scores else [once]
        found += [each[:, None] * feature for each in g.T for feature in (constant, once)]
        sums.append(t @ weight)
        if degree == 2:
            found.append((t**2 * along + 2 * t) @ weight)
            found += [(g[:, i] * g[:, j])[:, None] * constant for i, j in pairs]
            squares.append(t**2 @ weight)
    for i in range(len(alone)):
        one = slope[:, [i]]
        products = g * one + unit[i]
        found += [one, products] if scores else [products]
        found += [each * one for each in sums]
        for j, k in pairs:
            bend = unit[i, j] * g[:, [k]] + unit[i, k] * g[:, [j]]
            found.append(g[:, [j]] * g[:, [k]] * one + bend)
        found += [each * one for each in squares]
        if degree == 2:
            found += [each * products[:, [j]] for j in range(len(alone)) for each in sums]
    return found


class Lattice(AbstractCoordinateFields):
    r"""Vector fields that share the symmetries of a lattice, for a real scalar field.

    With $\phi_x$ the field at the site $x$, $s_x = -\partial S / \partial \phi_x$ and any function $h$ of two
    fields, $\sum_x [h(\phi_x, \phi_{x+r}) s_x + \partial h / \partial \phi_x]$ has mean zero: the
    Schwinger-Dyson equation of a translation-invariant operator. Separations $r$ that reflections and
    permutations of equal axes map to each other share a coefficient. There is a feature for every such
    separation within `reach`, and one for every distance between time slices, along each axis. The functions
    $h$ are $\phi_{x+r}$, $\phi_{x+r}^3$ and $\phi_x^2 \phi_{x+r}$, and without `symmetric` also 1,
    $\phi_{x+r}^2$ and $\phi_x \phi_{x+r}$. The number of features does not grow with the number of sites
    except for the slices. The gain is large only if the action is invariant; the mean is zero in any case.

    Integrands should have the same symmetries, as those of `steinax.lattices.observables` have.

    Args:
        shape: the number of sites along each axis, with periodic boundaries; by default that of the names of
            the columns, `phi[0, 0]`, `phi[0, 1]`, ...
        reach: the largest distance along any axis of the separations that have a feature of their own. Near
            the free theory a larger reach gains more; with few draws a smaller one does.
        symmetric: whether the action is even in the field and so are the integrands. Give False for odd
            integrands, such as the mean field of a theory with a source.
        operator: on vector fields.

    >>> import numpy as np, steinax as sx
    >>> kinetic = 3.0 * np.eye(8) - np.roll(np.eye(8), 1, axis=0) - np.roll(np.eye(8), -1, axis=0)
    >>> root = np.linalg.inv(np.linalg.cholesky(kinetic)).T
    >>> phi = np.random.default_rng(0).normal(size=(4, 50, 8)) @ root.T  # a free field on a ring
    >>> sample = sx.from_arrays(phi, -phi @ kinetic, [f"phi[{x}]" for x in range(8)])
    >>> est = sx.estimate(lambda phi: (phi**2).mean(), sample, sx.families.Lattice())
    >>> bool(abs(est.value[0] - np.linalg.inv(kinetic)[0, 0]) < 1e-10)
    True
    """

    references: ClassVar[tuple[str, ...]] = ("assaraf1999zero", "bhattacharya2023control")
    shape: tuple[int, ...] = eqx.field(static=True, default=(), converter=tuple)
    reach: int = eqx.field(static=True, default=3)
    symmetric: bool = eqx.field(static=True, default=True)
    operator: AbstractOperator = eqx.field(default_factory=Langevin)
    # of the coordinates that the family is set up in, see `placed`
    shift: AnyArray | None = eqx.field(default=None, repr=False)
    scale: AnyArray | None = eqx.field(default=None, repr=False)

    def __check_init__(self) -> None:
        if any(size < 1 for size in self.shape):
            raise ValueError(f"Lattice({self.shape}): give the number of sites along each axis.")
        if self.reach < 0:
            raise ValueError(f"Lattice(reach={self.reach}): the reach must be 0 or more.")

    @property
    def centres_on_draws(self) -> bool:
        return False

    @property
    def has_one_unit(self) -> bool:
        return True

    def placed(self, names: Sequence[str], shift: AnyArray, scale: AnyArray) -> "Lattice":
        """Find the shape by the names, and store the origin and unit of each coordinate."""
        shape = self.shape or shape_of(names)
        if len({name.partition("[")[0] for name in names}) > 1:
            raise ValueError(
                "Lattice: the columns are of several variables, and all must be sites of one field: give a "
                "sample of the field alone."
            )
        return replace(self, shape=self._of(len(names), shape), shift=shift, scale=scale)

    def _of(self, dim: int, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of a lattice of some number of sites; by default a ring."""
        if shape and prod(shape) != dim:
            raise ValueError(
                f"Lattice({shape}) has {prod(shape)} sites and the draws have {dim} columns: give the "
                "shape whose product is the number of columns, with the last axis running fastest."
            )
        return shape or (dim,)

    def setup(self, x: Points, score: Points) -> None:
        return None

    def size(self, state: None, dim: int) -> int:
        cells = _cells(self._of(dim, self.shape), self.reach)
        return sum(len(cells.used(*powers)) for powers in self._powers())

    def _powers(self) -> tuple[tuple[int, int], ...]:
        """List the degrees of h in the field at x and in the field at x + r."""
        even = ((0, 1), (0, 3), (2, 1))
        return even if self.symmetric else (*even, (0, 0), (0, 2), (1, 1))

    def feature_matrix(self, state: None, x: Points, score: Points) -> AnyArray:
        shape = self._of(x.shape[1], self.shape)
        if namespace(x) is not np:
            return self._features(shape, x, score)
        rows = max(NUMBERS // (8 * prod(shape)), 1)
        blocks = (slice(start, start + rows) for start in range(0, len(x), rows))
        return np.concatenate([self._features(shape, x[block], score[block]) for block in blocks])

    def _features(self, shape: tuple[int, ...], x: Points, score: Points) -> AnyArray:
        """Compute the features of some points, (n, p)."""
        cells, (z, push) = _cells(shape, self.reach), self._unit(x, score)
        xp, sites = namespace(z), tuple(range(1, 1 + len(shape)))
        z, push = (xp.reshape(each, (-1, *shape)) for each in (z, push))
        origin = np.zeros(shape)
        origin.flat[0] = 1.0
        found = []
        for a, b in self._powers():
            sums = correlate(_hermite(a, z) * push, _hermite(b, z))
            if a:
                sums = sums + a**0.5 * correlate(_hermite(a - 1, z), _hermite(b, z))
            if b:
                along = xp.sum(_hermite(a, z) * _hermite(b - 1, z), axis=sites, keepdims=True)
                sums = sums + b**0.5 * along * origin
            found.append(cells.folded(sums)[:, cells.used(a, b)])
        return xp.concat(found, axis=1) / prod(shape) ** 0.5

    def _unit(self, x: AnyArray, score: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Convert coordinates of the fit to the field in units of its root mean square, and its score."""
        if self.scale is None:
            return x, score
        unit = self._size()
        return (self.shift + self.scale * x) / unit, score / self.scale * unit

    def _size(self) -> float:
        """Compute the root mean square of the field."""
        return float(np.mean(np.asarray(self.shift) ** 2 + np.asarray(self.scale) ** 2)) ** 0.5

    def basis(self, state: None, x: Point) -> jax.Array:
        shape = self._of(x.shape[0], self.shape)
        cells, (z, _) = _cells(shape, self.reach), self._unit(x, x)
        z = jnp.reshape(z, (1, *shape))
        shares = cells.folded(np.eye(prod(shape)).reshape(-1, *shape)).T.reshape(-1, *shape)
        unit = 1.0 if self.scale is None else self._size() / jnp.asarray(self.scale)
        found = []
        for a, b in self._powers():
            share = jnp.asarray(shares[cells.used(a, b)])
            fields = _hermite(a, z) * correlate(share, _hermite(b, z))
            found.append(fields.reshape(-1, x.shape[0]) * unit)
        return jnp.concatenate(found) / prod(shape) ** 0.5


def _hermite(degree: int, z: AnyArray) -> AnyArray:
    """Evaluate Hermite polynomials of norm 1 under a standard Gaussian, of degree 0 to 3."""
    powers = (z**0, z, z**2 - 1, z**3 - 3 * z)
    return powers[degree] / factorial(degree) ** 0.5


def correlate(first: AnyArray, second: AnyArray) -> AnyArray:
    r"""Compute $\sum_x a_x b_{x+r}$ for every separation r on a periodic lattice, by FFT.

    Args:
        first: $a$, (n, *shape).
        second: $b$, of the same shape, or (1, *shape).

    >>> correlate(np.array([[1.0, 2.0, 0.0]]), np.array([[1.0, 0.0, 3.0]])).round(12).tolist()
    [[1.0, 6.0, 5.0]]
    """
    xp, shape = namespace(first, second), first.shape[1:]
    axes = tuple(range(1, first.ndim))
    waves = xp.conj(xp.fft.rfftn(first, axes=axes)) * xp.fft.rfftn(second, axes=axes)
    return xp.fft.irfftn(waves, s=shape, axes=axes)


class _Cells(NamedTuple):
    """Which separations of a lattice share a coefficient.

    Attributes:
        near: the separations within reach, as positions in the flattened lattice, (m,).
        orbits: the share of each in every orbit, (m, count).
        slices: groups of axes of equal length, and the distances between slices along them.
    """

    near: np.ndarray
    orbits: np.ndarray
    slices: tuple[tuple[tuple[int, ...], np.ndarray], ...]

    @property
    def total(self) -> int:
        """The number of features of each function h."""
        return self.orbits.shape[1] + sum(len(distances) for _, distances in self.slices)

    def used(self, a: int, b: int) -> np.ndarray:
        """Flag the features of a function of some degrees that no other function repeats."""
        if a == b == 0:
            return np.arange(1)
        return np.arange(1 if a else 0, self.total)  # at r = 0 it is a power of one field

    def folded(self, sums: AnyArray) -> AnyArray:
        """Add up sums of all separations, (n, *shape), over those that share a coefficient: (n, count)."""
        xp, n, sites = namespace(sums), sums.shape[0], prod(sums.shape[1:])
        found = [xp.reshape(sums, (n, -1))[:, self.near] @ self.orbits]
        for axes, distances in self.slices:
            length = sums.shape[1 + axes[0]]
            parts = []
            for axis in axes:
                others = tuple(i for i in range(1, sums.ndim) if i != 1 + axis)
                along = xp.sum(sums, axis=others)
                parts.append(along[:, distances] + along[:, -distances % length])
            found.append(sum(parts) / (4 * len(axes) * sites / length) ** 0.5)
        return xp.concat(found, axis=1)


@lru_cache(maxsize=32)
def _cells(shape: tuple[int, ...], reach: int) -> _Cells:
    """Find the separations that reflections and permutations of equal axes map to each other.

    Distances between slices are left out where they repeat other features: those within reach if all
    separations across the axis are too, and, as slices along any axis add up to the same, the last one of
    all groups of axes but the first.
    """
    groups = [
        tuple(axis for axis, _ in members)
        for _, members in groupby(
            sorted(enumerate(shape), key=lambda each: each[1]), key=lambda each: each[1]
        )
    ]
    sizes = [range(-min(reach, (n - 1) // 2), min(reach, n // 2) + 1) for n in shape]
    orbits: dict[tuple[tuple[int, ...], ...], list[int]] = {}
    for r in product(*sizes):
        key = tuple(tuple(sorted(abs(r[axis]) for axis in group)) for group in groups)
        place = np.ravel_multi_index([i % n for i, n in zip(r, shape, strict=True)], shape)
        orbits.setdefault(key, []).append(int(place))
    members = [orbits[key] for key in sorted(orbits)]
    near = np.array([place for orbit in members for place in orbit])
    shares = np.zeros((len(near), len(members)))
    shares[np.arange(len(near)), np.repeat(np.arange(len(members)), [*map(len, members)])] = 1.0
    slices = []
    for i, axes in enumerate(groups):
        length = shape[axes[0]]
        across = [n for axis, n in enumerate(shape) if axis != axes[0]]
        covered = all(n // 2 <= reach for n in across)
        distances = np.arange(reach + 1 if covered else 0, length // 2 + 1)
        slices.append((axes, distances[:-1] if i else distances))
    return _Cells(near, shares / np.sqrt(shares.sum(axis=0)), tuple(slices))
