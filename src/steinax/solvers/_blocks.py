"""The diagonal blocks of a matrix, one for each fold."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_solve, solve_triangular

from .._types import AnyArray, Values
from ._problem import Folds
from ._rows import Root, scaled, unscaled


class Blocks(eqx.Module):
    """The factors of the diagonal blocks of P, padded to one size, and what belongs to them."""

    rows: AnyArray  # A of P = A A' - B B', a row for each draw
    free: AnyArray  # B
    tau: AnyArray  # the weights of the intercept
    factors: AnyArray  # (fold, size, size)
    root: Root  # by which the rows of all these are scaled
    folds: Folds = eqx.field(static=True)

    def held_out(self, alpha: Values, intercept: AnyArray) -> tuple[jax.Array, jax.Array]:
        r"""f - g on every draw, with g fitted to the other folds, from what a fit to all leaves.

        $e_B + c_B$ on a fold $B$, with $e_B = P_{BB}^{-1} \alpha_B$ and $c_B = c - \tau_B^\top e_B$ the
        intercept of the fit that leaves it out. These come second, (fold, k).
        """
        error = self.solve(alpha)
        moved = intercept - self.sums(self.tau[:, None] * error)
        return unscaled(error, self.root) + moved, moved[
            np.array([start for start, _ in self.folds])
        ]

    def weights(self) -> jax.Array:
        r"""The weights $w$ with which the mean of $f - g$ over all folds is $w^\top f$: (n,).

        $w = P z + \tau$ with $z_B = P_{BB}^{-1} (1 - n_B \tau_B) / n$. Where the draws have weights of their
        own, $n_B$ is the sum of theirs over the fold, and the mean a weighted one.
        """
        one = jnp.ones_like(self.tau)
        own = one if self.root is None else self.root / jnp.mean(self.root)
        count = self.sums(own[:, None])[:, 0]
        error = unscaled(own[:, None], self.root)[:, 0]
        z = self.solve(((error - count * self.tau) / len(self.tau))[:, None])
        return scaled(self.project(z) + self.tau[:, None], self.root)[:, 0]

    def project(self, right: Values) -> jax.Array:
        """P b."""
        return self.rows @ (self.rows.T @ right) - self.free @ (self.free.T @ right)

    def solve(self, right: Values) -> jax.Array:
        """The solutions of all blocks' systems, one below the other."""
        parts = self._parts(right)
        solved = jax.vmap(lambda factor, b: cho_solve((factor, True), b))(self.factors, parts)
        return self._flat(solved)

    def solve_diagonal(self) -> jax.Array:
        """The diagonals of the blocks' inverses, in the units of the draws' own errors: (n,)."""
        eye = jnp.eye(self.factors.shape[1], dtype=self.factors.dtype)
        inverse = jax.vmap(lambda factor: solve_triangular(factor, eye, lower=True))(self.factors)
        found = self._flat(jnp.sum(inverse**2, axis=1)[..., None])
        return unscaled(unscaled(found, self.root), self.root)[:, 0]

    def sums(self, values: Values) -> jax.Array:
        """The sum over a draw's fold, at every draw."""
        parts = self._parts(values)
        total = jnp.sum(parts, axis=1, keepdims=True)
        return self._flat(jnp.broadcast_to(total, parts.shape))

    def _parts(self, values: Values) -> jax.Array:
        """The rows of each fold, padded with zeros: (fold, size, k)."""
        index, inside = places(self.folds)
        return jnp.where(inside[..., None], values[index], 0.0)

    def _flat(self, parts: AnyArray) -> jax.Array:
        return flat(parts, self.folds)


def flat(parts: AnyArray, folds: Folds) -> jax.Array:
    """The rows of all folds one below the other, (n, ...), without the padding: (fold, size, ...)."""
    _, inside = places(folds)
    return parts.reshape(-1, *parts.shape[2:])[np.flatnonzero(inside)]


def each_fold[T](compute: Callable[..., T], rows: AnyArray, folds: Folds, *others: AnyArray) -> T:
    """What a function gives of each fold, the folds as the first axis: compiled once for all of them.

    Args:
        compute: a function of the places of a fold's draws, (size,), of their rows, (size, p), with
            zeros where the fold is padded, and of what the others have for the fold.
        rows: of all draws, (n, p).
        folds: where each starts and stops.
        others: arrays with the folds as their first axis.
    """

    def one(part: tuple[AnyArray, ...]) -> T:
        own, mine, *its = part
        return compute(own, jnp.where(mine[:, None], rows[own], 0.0), *its)

    return jax.lax.map(one, (*places(folds), *others))


def blocks_of(
    rows: AnyArray, free: AnyArray, tau: AnyArray, folds: Folds, root: Root = None
) -> Blocks:
    """The factors of the diagonal blocks of P = A A' - B B'.

    Args:
        rows: A, the transposed inverse of the root, a row for each draw.
        free: B, the same projected on what is free of penalty.
        tau: the weights of the intercept.
        folds: where each starts and stops.
        root: by which the rows are scaled, where draws have weights.
    """
    index, inside = places(folds)

    def factorise(own: AnyArray, mine: AnyArray) -> jax.Array:
        a, b = (jnp.where(mine[:, None], part[own], 0.0) for part in (rows, free))
        block = a @ a.T - b @ b.T
        floor = jnp.finfo(block.dtype).eps * jnp.trace(block)
        return jnp.linalg.cholesky(block + jnp.diag(jnp.where(mine, floor, 1.0)))

    return Blocks(rows, free, tau, jax.vmap(factorise)(index, inside), root, folds)


def places(folds: Folds) -> tuple[np.ndarray, np.ndarray]:
    """The draws of each fold, and which of them are not padding: (fold, size) each.

    Padding repeats the first draw of the fold.
    """
    start, stop = np.array(folds, np.int32).T
    place = start[:, None] + np.arange(max(stop - start), dtype=np.int32)
    inside = place < stop[:, None]
    return np.where(inside, place, start[:, None]), inside
