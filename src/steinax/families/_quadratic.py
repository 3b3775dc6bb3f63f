r"""Degree two, $v = \tfrac12 x^\top A x + b^\top x$, without an array of shape (p, dim).

$g = \operatorname{tr} A + (A x + b) \cdot s$; the coefficients are $b$, then the upper triangle of $A$
row by row, each scaled so that their sum of squares is $|b|^2 + |A|_F^2 / 2w$.
"""

import jax
import jax.numpy as jnp
import numpy as np

from .._types import Coefficients, Point, Points, Values


def quadratic_features(x: Point, score: Point, weight: float) -> jax.Array:
    """The features of one point, (dim + dim (dim + 1) / 2,)."""
    rows, columns, norm = _upper(x.shape[0])
    products = x[rows] * score[columns] + x[columns] * score[rows] + 2.0 * (rows == columns)
    return jnp.concatenate([score, products * (norm * weight**0.5)])


def quadratic_apply(coef: Coefficients, x: Points, score: Points, weight: float) -> jax.Array:
    """The values of g on many points, by one (n, dim, dim) product per integrand."""
    dim = x.shape[1]
    rows, columns, norm = _upper(dim)

    def one(column: jax.Array) -> jax.Array:
        half = jnp.zeros((dim, dim), x.dtype).at[rows, columns].set(column[dim:] * norm)
        matrix = weight**0.5 * (half + half.T)
        return jnp.trace(matrix) + jnp.sum((x @ matrix + column[:dim]) * score, axis=1)

    return jax.lax.map(one, coef.T).T


def quadratic_adjoint(values: Values, x: Points, score: Points, weight: float) -> jax.Array:
    """The transpose of `quadratic_apply`."""
    rows, columns, norm = _upper(x.shape[1])

    def one(column: jax.Array) -> jax.Array:
        # transposed before the product, not inside it, which would double its time
        moment = jax.lax.optimization_barrier(score.T * column) @ x
        moment = moment + moment.T + 2 * jnp.sum(column) * jnp.eye(x.shape[1], dtype=x.dtype)
        return jnp.concatenate([score.T @ column, moment[rows, columns] * norm * weight**0.5])

    return jax.lax.map(one, values.T).T


def _upper(dim: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows, columns = np.triu_indices(dim)
    return rows, columns, np.where(rows == columns, 0.5**0.5, 1.0)
