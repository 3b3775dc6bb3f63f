"""Control variates for hierarchies: features summed over the members of a vector."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations_with_replacement
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._numerics import namespace
from .._types import AnyArray, Point, Points
from ..data import vectors_of
from ..operators import AbstractOperator, Langevin
from ._base import AbstractCoordinateFields

GLOBALS = 6  # the most coordinates outside of vectors that features depend on
CONSTANT = 1e-8  # a smaller standard deviation: the coordinate does not move
MEMBERS = 8  # the least members of a vector that is found by name


class Standardised(NamedTuple):
    """What shapes tied features: the mean and sd of every coordinate, and the weights of the members."""

    mean: AnyArray  # (dim,)
    sd: AnyArray  # (dim,)
    weights: tuple[AnyArray, ...]  # of each vector, (member, 3)


class Tied(AbstractCoordinateFields):
    r"""Vector fields whose coefficients are shared by all members of a vector, for hierarchies and panels.

    With $z_j$ the members of a vector such as `theta[0]`, `theta[1]`, ..., $g$ the coordinates outside of
    vectors and $w_j$ fixed weights, $\sum_j w_j [h(z_j, g) s_j + \partial h / \partial z_j]$ has mean zero
    whatever the target is, and the number of such features does not grow with the length of the vector. The
    functions $h$ are products of low powers of the member and of $g$. The weights are 1, the member's
    mean and the logarithm of its standard deviation, on the draws that the family is fitted to. The same
    functions, and sums over members, multiply the scores of $g$.

    `estimate` tries it without being asked, from 30 dimensions on, and adds features of the members that an
    integrand depends on.

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
    shift: AnyArray | None = None  # of the coordinates that the family is set up in, see `placed`
    scale: AnyArray | None = None

    def __check_init__(self) -> None:
        if self.degree not in (1, 2):
            raise ValueError(f"Tied({self.degree}): give degree 1 or 2.")

    def placed(self, names: Sequence[str], shift: AnyArray, scale: AnyArray) -> "Tied":
        """Find vectors by their names, and note where coordinates have their origin and unit."""
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
    """The first coordinates outside of vectors."""
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
