from itertools import combinations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._types import Point, Points, PyTree
from ..operators import AbstractOperator, Langevin, ScalarLangevin
from ._linear import AbstractLinearFamily
from ._splines import ORDER, hierarchy


class Wavelets(AbstractLinearFamily):
    r"""Cubic spline wavelets along each coordinate, and along pairs: many scales at once.

    $$ u_{ijk}(x) = 2^{-j s}\, \psi(2^j t_i - k)\, e_i, \qquad t_i = m\, (x_i - l_i) / (h_i - l_i) $$

    for levels $j$ and places $k$ over the range $[l_i, h_i]$ of the draws, beside the $m + 3$ splines of the
    coarsest level. The wavelets $\psi$ of Chui and Wang (1992) have support 7 cells and two continuous
    derivatives, and are orthogonal between levels. Under `ScalarLangevin()` they are potentials, without
    $e_i$. A ridge costs a fine level more than a coarse one by the factor $4^s$. There are $2^{levels} m + 3$
    a coordinate. What is smooth everywhere needs a polynomial or a kernel instead: add one.

    Args:
        levels: how many levels of wavelets, 0 or more.
        cells: $m$, the cells of the coarsest level.
        pairs: whether products for each pair of coordinates are there too, those whose levels sum to at most
            `levels` (a sparse grid).
        decay: $s$.
        operator: `Langevin()` on fields, or `ScalarLangevin()` on potentials.

    >>> Wavelets(2).size(None, dim=3)
    57
    """

    levels: int = eqx.field(static=True, default=3)
    cells: int = eqx.field(static=True, default=4)
    pairs: bool = eqx.field(static=True, default=False)
    decay: float = eqx.field(static=True, default=1.0)
    operator: AbstractOperator = eqx.field(default_factory=Langevin)

    def __check_init__(self) -> None:
        if self.levels < 0 or self.cells < 1:
            raise ValueError(
                f"Wavelets(levels={self.levels}, cells={self.cells}): use 0 or more levels, and a cell or "
                "more."
            )

    def setup(self, x: Points, score: Points) -> PyTree:
        low, high = jnp.min(x, axis=0), jnp.max(x, axis=0)
        return low, jnp.where(high > low, high - low, 1.0)

    def basis(self, state: PyTree, x: Point) -> jax.Array:
        table, dim = self._table(state, x), x.shape[0]
        single = table.reshape(-1)
        places = np.repeat(np.arange(dim), table.shape[1])
        i, j, a, b = self._products(dim)
        scalars = jnp.concatenate([single, table[i, a] * table[j, b]])
        if not self.operator.acts_on_fields:
            return scalars
        # a product has a field along each of its coordinates
        scalars = jnp.concatenate([scalars, scalars[single.shape[0] :]])
        along = np.concatenate([places, i, j])
        return scalars[:, None] * jnp.eye(dim, dtype=x.dtype)[along]

    def features(self, state: PyTree, x: Point, score: Point) -> jax.Array:
        """Every basis function is a product of functions of one coordinate: two derivatives do."""
        if not isinstance(self.operator, Langevin | ScalarLangevin):
            return super().features(state, x, score)

        def values(x: jax.Array) -> jax.Array:
            return self._table(state, x)

        def slopes(x: jax.Array) -> jax.Array:  # all coordinates at once: a row knows one alone
            return jax.jvp(values, (x,), (jnp.ones_like(x),))[1]

        i, j, a, b = self._products(x.shape[0])
        value, slope = values(x), slopes(x)
        if self.operator.acts_on_fields:
            own = slope + value * score[:, None]
            parts = [own.reshape(-1), own[i, a] * value[j, b], value[i, a] * own[j, b]]
            return jnp.concatenate(parts)
        second = jax.jvp(slopes, (x,), (jnp.ones_like(x),))[1]
        own = second + slope * score[:, None]
        return jnp.concatenate([own.reshape(-1), own[i, a] * value[j, b] + value[i, a] * own[j, b]])

    def size(self, state: PyTree, dim: int) -> int:
        each = 2 if self.operator.acts_on_fields else 1
        return dim * sum(self._counts()) + each * len(self._products(dim)[0])

    def _table(self, state: PyTree, x: Point) -> jax.Array:
        """Every function of every coordinate: (dim, m)."""
        low, span = state

        def row(t: jax.Array) -> jax.Array:
            return jnp.concatenate(hierarchy(t, self.cells, self.levels, self.decay))

        return jax.vmap(row)((x - low) / span)

    def _counts(self) -> list[int]:
        return [self.cells + ORDER - 1] + [self.cells * 2**j for j in range(self.levels)]

    def _products(self, dim: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The coordinates i < j and the functions a, b of every product."""
        level = np.repeat(np.arange(self.levels + 1), self._counts())
        a, b = np.nonzero(np.add.outer(level, level) <= self.levels)
        couples = list(combinations(range(dim), 2)) if self.pairs else []
        i, j = np.array(couples, dtype=int).reshape(-1, 2).T
        count = len(a)
        return np.repeat(i, count), np.repeat(j, count), np.tile(a, len(i)), np.tile(b, len(i))
