r"""Degree two, $v = \tfrac12 x^\top A x + b^\top x$, without an array of shape (p, dim).

$g = \operatorname{tr} A + (A x + b) \cdot s$; the coefficients are $b$, then the upper triangle of $A$
row by row, each scaled so that their sum of squares is $|b|^2 + |A|_F^2 / 2w$.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from .._types import AnyArray, Points
from ._base import Products


def quadratic_products(x: Points, score: Points, weight: float) -> Products:
    """The values of g from coefficients, and the transpose: an (n, dim, dim) product per integrand.

    What both need of the points is made here, once, for solvers that call them many times.
    """
    dim = x.shape[1]
    rows, columns, norm = _upper(dim)
    place = np.empty((dim, dim), np.int32)  # of each entry of A among the coefficients
    place[rows, columns] = place[columns, rows] = dim + np.arange(len(rows), dtype=np.int32)
    scale = weight**0.5 * np.where(np.eye(dim) > 0, 2**0.5, 1.0)
    # a column of ones takes the linear part into the same product; transposed here, not inside it,
    # which would double its time
    whole = jnp.concatenate([x, jnp.ones((x.shape[0], 1), x.dtype)], axis=1)
    whole, transposed = jax.lax.optimization_barrier((whole, jnp.asarray(score).T))

    def values(linear: jax.Array, matrix: jax.Array) -> jax.Array:
        moved = whole @ jnp.concatenate([matrix, linear[None]])
        return jnp.trace(matrix) + jnp.sum(jax.lax.optimization_barrier(moved) * score, axis=1)

    def moments(column: jax.Array) -> tuple[jax.Array, jax.Array]:
        moment = jax.lax.optimization_barrier(transposed * column) @ whole
        linear, moment = moment[:, -1], moment[:, :-1]
        return linear, moment + moment.T + 2 * jnp.sum(column) * jnp.eye(dim, dtype=x.dtype)

    def apply(column: jax.Array) -> AnyArray:
        return values(column[:dim], column[place] * scale)

    def adjoint(column: jax.Array) -> AnyArray:
        linear, moment = moments(column)
        return jnp.concatenate([linear, moment[rows, columns] * (norm * weight**0.5)])

    def both(column: jax.Array) -> jax.Array:
        linear, moment = moments(column)
        return values(linear, weight * moment)

    def leading() -> tuple[jax.Array, jax.Array]:
        own, squares = jnp.sum(x * score, axis=1), jnp.sum(x**2, axis=1) * jnp.sum(score**2, axis=1)
        return jnp.asarray(score), weight * jnp.mean(2 * dim + 4 * own + own**2 + squares)

    return Products(partial(_each, apply), partial(_each, adjoint), partial(_each, both), leading)


def _each(one: Callable[[jax.Array], jax.Array], columns: AnyArray) -> jax.Array:
    """A function of one column, for every column."""
    if columns.shape[1] == 1:
        return one(columns[:, 0])[:, None]
    return jax.lax.map(one, columns.T).T


def _upper(dim: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows, columns = np.triu_indices(dim)
    return rows, columns, np.where(rows == columns, 0.5**0.5, 1.0)
