"""The diagonal blocks of a matrix, one for each fold."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_solve, solve_triangular

from .._types import AnyArray, Values
from ._problem import Folds


class Blocks(eqx.Module):
    """The factors of the diagonal blocks of P, padded to one size, and what belongs to them."""

    rest: AnyArray  # the root of P: P = rest' rest
    tau: AnyArray  # the weights of the intercept
    factors: AnyArray  # (fold, size, size)
    index: np.ndarray  # (fold, size)
    inside: np.ndarray  # (fold, size)

    def solve(self, right: Values) -> jax.Array:
        """The solutions of all blocks' systems, one below the other."""
        parts = jnp.where(self.inside[..., None], right[self.index], 0.0)
        solved = jax.vmap(lambda factor, b: cho_solve((factor, True), b))(self.factors, parts)
        return self._flat(solved)

    def solve_diagonal(self) -> jax.Array:
        """The diagonals of the blocks' inverses: (n,)."""
        eye = jnp.eye(self.index.shape[1], dtype=self.factors.dtype)
        inverse = jax.vmap(lambda factor: solve_triangular(factor, eye, lower=True))(self.factors)
        return self._flat(jnp.sum(inverse**2, axis=1)[..., None])[:, 0]

    def sums(self, values: Values) -> jax.Array:
        """The sum over a draw's fold, at every draw."""
        parts = jnp.where(self.inside[..., None], values[self.index], 0.0)
        total = jnp.sum(parts, axis=1, keepdims=True)
        return self._flat(jnp.broadcast_to(total, parts.shape))

    def _flat(self, parts: AnyArray) -> jax.Array:
        return parts.reshape(-1, parts.shape[-1])[np.flatnonzero(self.inside.ravel())]


def blocks_of(rest: AnyArray, tau: AnyArray, folds: Folds) -> Blocks:
    """The factors of the diagonal blocks of P = rest' rest, (n, n)."""
    start, stop = np.array(folds).T
    place = start[:, None] + np.arange(max(stop - start))
    inside = place < stop[:, None]
    index = np.where(inside, place, start[:, None])

    def factorise(own: AnyArray, mine: AnyArray) -> jax.Array:
        columns = jnp.where(mine, rest[:, own], 0.0)
        block = columns.T @ columns
        floor = jnp.finfo(block.dtype).eps * jnp.trace(block)
        return jnp.linalg.cholesky(block + jnp.diag(jnp.where(mine, floor, 1.0)))

    return Blocks(rest, tau, jax.vmap(factorise)(index, inside), index, inside)
