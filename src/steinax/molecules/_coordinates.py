"""Coordinates of molecules: distances, positions, angles and dihedrals, and fields along them."""

import abc
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._numerics import namespace
from .._types import AnyArray, Point, Points, PyTree
from ..families import AbstractLinearFamily
from ..operators import AbstractOperator, Function, Langevin, PairFunction, ScalarLangevin

PAIRS = 2**16  # pairs of particles at once: what belongs to them stays in the processor's cache

type Indices = np.ndarray


class ParticleLangevin(AbstractOperator):
    """The Langevin operator on functions that a common translation of all particles does not change.

    They are periodic if the particles are in a periodic box. That is not checked.

    Args:
        on_fields: whether it acts on vector fields rather than on potentials.

    >>> ParticleLangevin().domain
    'particles'
    """

    on_fields: bool = eqx.field(static=True, default=True)

    @property
    def acts_on_fields(self) -> bool:
        return self.on_fields

    @property
    def domain(self) -> str:
        return "particles"

    @property
    def _same(self) -> AbstractOperator:
        return Langevin() if self.on_fields else ScalarLangevin()

    def __call__(self, u: Function, x: Point, score: Point) -> jax.Array:
        return self._same(u, x, score)

    def representer(self, kernel: PairFunction, y: Point, score: Point) -> Function:
        return self._same.representer(kernel, y, score)


class Pushed(NamedTuple):
    r"""Values $q$ of a coordinate, and the forces $b \cdot s$ of fields $b$ along it.

    The field moves particles such that $b \cdot \nabla q = 1$ and $\nabla \cdot b = (\log m)'(q)$, with $m$
    the density of the coordinate's volume.
    """

    row: AnyArray  # the configuration of each value, (count,)
    value: AnyArray
    force: AnyArray


@dataclass(frozen=True, repr=False)
class AbstractCoordinate(abc.ABC):
    """A function of the positions of a few particles, for each of many groups of particles.

    Args:
        box: the sides of the periodic box, infinite where there is none.
    """

    box: tuple[float, ...]

    @property
    def period(self) -> float | None:
        """The period of the coordinate; None if it has none."""
        return None

    def __repr__(self) -> str:
        return type(self).__name__

    @abc.abstractmethod
    def volume(self, q: AnyArray) -> AnyArray:
        """Compute the volume up to a value, in the measure of the coordinate: r^3 / 3 for a distance."""

    @abc.abstractmethod
    def density(self, q: AnyArray) -> AnyArray:
        """Compute the derivative of the volume."""

    @abc.abstractmethod
    def pushed(self, x: Points, score: Points) -> Pushed:
        """Compute values and forces in many configurations, (n, dim)."""

    @abc.abstractmethod
    def fields(self, x: Point) -> tuple[AnyArray, AnyArray]:
        """Compute the values in one configuration, (count,), and the fields along them, (count, dim)."""

    def ends(self, x: Points) -> tuple[float, float]:
        """Return the least and the largest value in many configurations, or the ends of a period."""
        value = self.pushed(x, np.zeros_like(x)).value
        return float(value.min()), float(value.max())

    def separation(self, x: AnyArray, first: Indices, second: Indices) -> AnyArray:
        """Compute vectors from second to first particles by the nearest image, (..., count, side)."""
        xp, sides = namespace(x), np.array(self.box)
        positions = x.reshape((*x.shape[:-1], -1, len(sides)))
        apart = positions[..., first, :] - positions[..., second, :]
        finite = np.isfinite(sides)
        sides = np.where(finite, sides, 1.0)
        return apart - xp.where(finite, sides * xp.round(apart / sides), 0.0)


@lru_cache(maxsize=16)
def pairs_of(
    kinds: tuple[str, ...], between: tuple[str, str] | None, molecules: tuple[int, ...]
) -> tuple[Indices, Indices]:
    """List the pairs of particles of two kinds, without those within a molecule."""
    first, second = np.triu_indices(len(kinds), 1)
    if between is not None:
        names = np.array(kinds)
        one, two = (names == each for each in between)
        kept = (one[first] & two[second]) | (two[first] & one[second])
        first, second = first[kept], second[kept]
    if molecules:
        group = np.array(molecules)
        kept = group[first] != group[second]
        first, second = first[kept], second[kept]
    return first, second


@dataclass(frozen=True, repr=False)
class Distances(AbstractCoordinate):
    r"""Distances of pairs of particles. The field moves both by half, $b = \hat r / 2$ and $-\hat r / 2$.

    Where molecules are given they move as a whole, so that the stiff forces within them do not contribute.

    Args:
        box: the sides of the periodic box.
        kinds: the kind of each particle.
        between: the two kinds of the pairs; all pairs by default.
        molecules: the number of the molecule of each particle. Pairs within one are left out.

    >>> apart = Distances((4.0, 4.0, 4.0), ("Ar", "Ar"))
    >>> apart.pushed(np.array([[0.0, 0, 0, 3, 0, 0]]), np.zeros((1, 6))).value.tolist()
    [1.0]
    """

    kinds: tuple[str, ...]
    between: tuple[str, str] | None = None
    molecules: tuple[int, ...] = ()

    @property
    def pairs(self) -> tuple[Indices, Indices]:
        """The first and the second particles of the pairs."""
        return pairs_of(self.kinds, self.between, self.molecules)

    def __repr__(self) -> str:
        return "Distances" if self.between is None else f"Distances of {' and '.join(self.between)}"

    @property
    def reach(self) -> float:
        """Half the shortest side: farther pairs have several images."""
        return min(self.box) / 2

    def volume(self, q: AnyArray) -> AnyArray:
        return q ** len(self.box) / len(self.box)

    def density(self, q: AnyArray) -> AnyArray:
        return q ** (len(self.box) - 1)

    def pushed(self, x: Points, score: Points) -> Pushed:
        first, _second = self.pairs
        step = max(PAIRS // max(len(first), 1), 1)
        parts = [self._some(x, score, start, step) for start in range(0, len(x), step)]
        return Pushed(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def _of_molecules(self, vectors: AnyArray) -> AnyArray:
        """Replace the vector of each particle by the sum over its molecule, (..., dim)."""
        if not self.molecules:
            return vectors
        shape, number = vectors.shape, np.array(self.molecules)
        together = (number[:, None] == number).astype(np.float64)
        parts = vectors.reshape((*shape[:-1], len(number), len(self.box)))
        return (together @ parts).reshape(shape)

    def _some(self, x: Points, score: Points, start: int, step: int) -> Pushed:
        (first, second), sides = self.pairs, len(self.box)
        rows = slice(start, start + step)
        apart = self.separation(np.asarray(x[rows], np.float64), first, second)
        square = np.einsum("...i,...i", apart, apart)
        forces = self._of_molecules(np.asarray(score[rows], np.float64))
        forces = forces.reshape(len(square), -1, sides)
        force = np.einsum("...i,...i", forces[:, first] - forces[:, second], apart)
        kept = square < self.reach**2
        r = np.sqrt(square[kept])
        row = np.broadcast_to(np.arange(start, start + len(square))[:, None], square.shape)[kept]
        return Pushed(row, r, force[kept] / (2 * r))

    def fields(self, x: Point) -> tuple[AnyArray, AnyArray]:
        first, second = self.pairs
        apart = self.separation(x, first, second)
        r = jnp.sqrt(jnp.sum(apart**2, axis=-1))
        half = apart / (2 * r[:, None])
        every = np.arange(len(first))
        field = jnp.zeros((len(first), x.shape[0] // len(self.box), len(self.box)), x.dtype)
        field = field.at[every, first].add(half).at[every, second].add(-half)
        inside = r < self.reach
        whole = self._of_molecules(field.reshape(len(first), -1))
        return jnp.where(inside, r, jnp.inf), whole


@dataclass(frozen=True, repr=False)
class Positions(AbstractCoordinate):
    """Positions of particles along one side of the periodic box.

    Args:
        box: the sides of the box.
        axis: the side.
        which: the particles.

    >>> Positions((4.0, 4.0, 4.0), 2, (0,)).pushed(
    ...     np.array([[0.0, 0, 5]]), np.ones((1, 3))
    ... ).value.tolist()
    [1.0]
    """

    axis: int
    which: tuple[int, ...]

    @property
    def period(self) -> float | None:
        return self.box[self.axis]

    def volume(self, q: AnyArray) -> AnyArray:
        return q

    def density(self, q: AnyArray) -> AnyArray:
        return namespace(q).ones_like(q)

    def ends(self, x: Points) -> tuple[float, float]:
        return 0.0, self.box[self.axis]

    @property
    def _columns(self) -> Indices:
        return np.array(self.which) * len(self.box) + self.axis

    def pushed(self, x: Points, score: Points) -> Pushed:
        columns = self._columns
        row = np.repeat(np.arange(len(x)), len(columns))
        value = np.asarray(x, np.float64)[:, columns] % self.box[self.axis]
        return Pushed(row, value.ravel(), np.asarray(score)[:, columns].ravel())

    def fields(self, x: Point) -> tuple[AnyArray, AnyArray]:
        columns = self._columns
        return x[columns] % self.box[self.axis], jnp.eye(x.shape[0], dtype=x.dtype)[columns]


@dataclass(frozen=True, repr=False)
class AbstractTurning(AbstractCoordinate):
    """A coordinate of one molecule along which some of its particles turn about an axis.

    Args:
        box: the sides of the box.
        particles: the particles that define the coordinate, the last of which moves.
        moving: all particles that turn with it.
    """

    particles: tuple[int, ...]
    moving: tuple[int, ...]

    def __repr__(self) -> str:
        return f"{type(self).__name__}{self.particles}"

    @abc.abstractmethod
    def turn(self, x: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Compute the value, (...), and the axis of the turn, (..., 3)."""

    @property
    @abc.abstractmethod
    def pivot(self) -> int:
        """A particle on the axis."""

    def pushed(self, x: Points, score: Points) -> Pushed:
        x = np.asarray(x, np.float64)
        value, axis = self.turn(x)
        forces = np.asarray(score).reshape(len(x), -1, 3)[:, np.array(self.moving)]
        torque = np.cross(self._arms(x), forces).sum(axis=1)
        return Pushed(np.arange(len(x)), value, np.sum(axis * torque, axis=-1))

    def fields(self, x: Point) -> tuple[AnyArray, AnyArray]:
        value, axis = self.turn(x)
        field = jnp.zeros((x.shape[0] // 3, 3), x.dtype)
        field = field.at[np.array(self.moving)].set(jnp.cross(axis, self._arms(x)))
        return jnp.asarray(value)[None], field.reshape(1, -1)

    def _arms(self, x: AnyArray) -> AnyArray:
        """Compute vectors from the pivot to the moving particles, (..., moving, 3)."""
        moving = np.array(self.moving)
        return self.separation(x, moving, np.full(len(moving), self.pivot))

    def _bonds(self, x: AnyArray, *pairs: tuple[int, int]) -> list[AnyArray]:
        """Compute vectors between particles of the definition, (..., 3) each."""
        at = np.array(self.particles)
        first, second = (at[np.array(side)] for side in zip(*pairs, strict=True))
        apart = self.separation(x, first, second)
        return [apart[..., i, :] for i in range(len(pairs))]


@dataclass(frozen=True, repr=False)
class Angle(AbstractTurning):
    r"""The angle at the second of three particles, from 0 to $\pi$.

    >>> straight = Angle((np.inf,) * 3, (0, 1, 2), (2,))
    >>> x = np.array([[1.0, 0, 0, 0, 0, 0, 0, 2, 0]])
    >>> straight.pushed(x, 0 * x).value.round(4).tolist()
    [1.5708]
    """

    @property
    def pivot(self) -> int:
        return self.particles[1]

    def volume(self, q: AnyArray) -> AnyArray:
        return 1 - namespace(q).cos(q)

    def density(self, q: AnyArray) -> AnyArray:
        return namespace(q).sin(q)

    def turn(self, x: AnyArray) -> tuple[AnyArray, AnyArray]:
        xp = namespace(x) if isinstance(x, np.ndarray) else jnp
        one, two = self._bonds(x, (0, 1), (2, 1))
        normal, cosine = xp.cross(one, two), xp.sum(one * two, axis=-1)
        sine = xp.sqrt(xp.sum(normal**2, axis=-1))
        return xp.arctan2(sine, cosine), normal / sine[..., None]


@dataclass(frozen=True, repr=False)
class Dihedral(AbstractTurning):
    r"""The dihedral angle of four particles, from $-\pi$ to $\pi$, with the sign of the IUPAC.

    The field turns one side of the molecule about the bond in the middle. It changes no distance and no angle
    within either side, so that the stiff forces of bonds and angles do not contribute.

    >>> flat = Dihedral((np.inf,) * 3, (0, 1, 2, 3), (3,))
    >>> x = np.array([[1.0, 0, 0, 0, 0, 0, 0, 0, 1, -1, 0, 1]])
    >>> flat.pushed(x, 0 * x).value.round(4).tolist()
    [3.1416]
    """

    @property
    def pivot(self) -> int:
        return self.particles[2]

    @property
    def period(self) -> float | None:
        return 2 * np.pi

    def volume(self, q: AnyArray) -> AnyArray:
        return q

    def density(self, q: AnyArray) -> AnyArray:
        return namespace(q).ones_like(q)

    def ends(self, x: Points) -> tuple[float, float]:
        return -np.pi, np.pi

    def turn(self, x: AnyArray) -> tuple[AnyArray, AnyArray]:
        xp = namespace(x) if isinstance(x, np.ndarray) else jnp
        first, middle, last = self._bonds(x, (1, 0), (2, 1), (3, 2))
        length = xp.sqrt(xp.sum(middle**2, axis=-1))
        far = xp.cross(middle, last)
        sine = length * xp.sum(first * far, axis=-1)
        cosine = xp.sum(xp.cross(first, middle) * far, axis=-1)
        return xp.arctan2(sine, cosine), middle / length[..., None]


class Sums(NamedTuple):
    """Sums over the values of a coordinate in each cell of a grid, (n, cells) each."""

    count: AnyArray
    force: AnyArray  # of forces over densities
    inside: AnyArray  # of the same times the volume from the start of the cell

    def images(self, heights: AnyArray, volumes: AnyArray) -> AnyArray:
        r"""Compute the images of the fields $W(q) / m(q)\, b$ under the Langevin operator, (n, p).

        $W$ is linear in the volume within each cell, and $m$ is the density of volume.

        Args:
            heights: of W at the edges, (cells + 1, p).
            volumes: of the cells, (cells,).
        """
        slope = (heights[1:] - heights[:-1]) / volumes[:, None]
        return (self.count + self.inside) @ slope + self.force @ heights[:-1]


def sums(coordinate: AbstractCoordinate, found: Pushed, n: int, edges: AnyArray) -> Sums:
    """Add up counts and forces of the values in each cell.

    Args:
        coordinate: the coordinate.
        found: its values and forces.
        n: the number of configurations.
        edges: of the cells.
    """
    row, value, force = found
    cells = len(edges) - 1
    cell = np.searchsorted(edges, value, side="right") - 1
    if coordinate.period is not None:  # rounding may leave a value at the very end
        cell = np.clip(cell, 0, cells - 1)
    kept = (cell >= 0) & (cell < cells)
    row, value, force, cell = row[kept], value[kept], force[kept], cell[kept]
    force = force / coordinate.density(value)
    inside = force * (coordinate.volume(value) - coordinate.volume(edges)[cell])
    at, size = row * cells + cell, n * cells
    totals = (np.bincount(at, weights, size) for weights in (None, force, inside))
    return Sums(*(each.reshape(n, cells).astype(np.float64) for each in totals))


class Nodes(tuple):
    """Increasing values of a coordinate."""

    def __repr__(self) -> str:
        return f"{len(self)} nodes"


def _nodes(given: Sequence[float] | np.ndarray | int) -> Nodes | int:
    return given if isinstance(given, int) else Nodes(map(float, given))


class FieldsAlong(AbstractLinearFamily):
    r"""Vector fields along a coordinate, summed over all groups of particles that have it.

    A field is $\sum_a \varphi(q_a)\, b_a$, where $b_a$ moves particles such that $b_a \cdot \nabla q_a = 1$.
    With $m$ the density of the coordinate's volume, $r^2$ for a distance, $W = m \varphi$ is piecewise
    linear in the volume, with corners at the nodes, and vanishes at both ends or is periodic. The
    image is $\sum_a (W'(q_a) + W(q_a)\, b_a \cdot s) / m(q_a)$.

    Args:
        coordinate: the coordinate, such as `Distances`.
        nodes: increasing values of the coordinate, or how many to spread over the values of the draws.
        core: whether values never come near the first node, as for particles that repel each other: then
            $W$ need not vanish there.

    >>> apart = Distances((4.0, 4.0, 4.0), ("Ar",) * 3)
    >>> FieldsAlong(apart, (0.0, 0.5, 1.0, 2.0)).size(None, 9)
    2
    """

    coordinate: AbstractCoordinate = eqx.field(static=True)
    nodes: Sequence[float] | np.ndarray | int = eqx.field(static=True, converter=_nodes)
    core: bool = eqx.field(static=True, default=False)
    operator: AbstractOperator = eqx.field(default_factory=ParticleLangevin)

    def __check_init__(self) -> None:
        count = self.nodes if isinstance(self.nodes, int) else len(self.nodes)
        if count < 3 or (not isinstance(self.nodes, int) and np.any(np.diff(self.nodes) <= 0)):
            raise ValueError(
                f"FieldsAlong: nodes={self.nodes}: give three or more, in increasing order."
            )

    def setup(self, x: Points, score: Points) -> AnyArray:
        if not isinstance(self.nodes, int):
            return np.array(self.nodes)
        if namespace(x) is np:
            return self._spread(x)
        shape = jax.ShapeDtypeStruct((self.nodes,), x.dtype)
        return jax.pure_callback(self._spread, shape, x, vmap_method="sequential")

    def _spread(self, x: Points) -> np.ndarray:
        """Spread the nodes such that between any two there are equally many values, over their density."""
        assert isinstance(self.nodes, int)
        x = np.asarray(x)
        value = np.sort(self.coordinate.pushed(x, np.zeros_like(x)).value)
        total = np.cumsum(1 / np.maximum(self.coordinate.density(value), np.finfo(np.float64).tiny))
        nodes = np.interp(np.linspace(total[0], total[-1], self.nodes), total, value)
        nodes[0], nodes[-1] = self.coordinate.ends(x)
        return nodes.astype(x.dtype)

    def size(self, state: PyTree, dim: int) -> int:
        return self._heights.shape[1]

    @property
    def is_parametric(self) -> bool:
        return True

    @property
    def keeps_coordinates(self) -> bool:
        return True

    @property
    def _heights(self) -> np.ndarray:
        """The values of W at the nodes, (nodes, p)."""
        hats = np.eye(self.nodes if isinstance(self.nodes, int) else len(self.nodes))
        if self.coordinate.period is not None:
            hats[-1] = hats[0]
            return hats[:, :-1]
        first = hats[:, :1] + hats[:, 1:2]
        return np.concatenate([first, hats[:, 2:-1]] if self.core else [hats[:, 1:-1]], axis=1)

    def feature_matrix(self, state: PyTree, x: Points, score: Points) -> AnyArray:
        nodes = np.asarray(state)
        pushed = self.coordinate.pushed(np.asarray(x), np.asarray(score))
        found = sums(self.coordinate, pushed, len(x), nodes)
        return found.images(self._heights, np.diff(self.coordinate.volume(nodes)))

    def basis(self, state: PyTree, x: Point) -> jax.Array:
        value, field = self.coordinate.fields(x)
        nodes, heights = jnp.asarray(state), jnp.asarray(self._heights)
        volume = self.coordinate.volume(nodes)
        cell = jnp.clip(jnp.searchsorted(nodes, value, side="right") - 1, 0, len(nodes) - 2)
        inside = (value >= nodes[0]) & (value < nodes[-1])
        safe = jnp.where(inside, value, (nodes[0] + nodes[1]) / 2)
        share = (self.coordinate.volume(safe) - volume[cell]) / jnp.diff(volume)[cell]
        height = heights[cell] + share[:, None] * (heights[cell + 1] - heights[cell])
        phi = jnp.where(inside[:, None], height / self.coordinate.density(safe)[:, None], 0.0)
        return phi.T @ field


def sides_of(bonds: Sequence[tuple[int, int]], fixed: int, turned: int) -> tuple[int, ...]:
    """List the particles on the side of `turned` of the bond between two, by the bonds of the molecule."""
    found, border = {turned}, [turned]
    while border:
        here = border.pop()
        for bond in bonds:
            if here not in bond or set(bond) == {fixed, turned}:
                continue
            (other,) = set(bond) - {here}
            if other not in found:
                found.add(other)
                border.append(other)
    return tuple(sorted(found))
