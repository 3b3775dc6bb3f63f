"""The primal form: one unknown per coefficient, however many draws there are."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import block_diag, cho_solve, solve_triangular

from .._types import AnyArray, Coefficients, Points, Values
from ._blocks import each_fold, flat
from ._columns import Columns, columns
from ._linear_system import Term
from ._problem import Folds, LeftOut
from ._rows import Root, ones, scaled, unscaled

REFINEMENTS = 2


class Primal(eqx.Module):
    r"""Least squares $\min_w \|f - A w\|^2 + w^\top P w$ with columns of unit size.

    The first column of $A$ is the intercept's; the others are each term's features, whitened by
    its own norm. Solved by the normal equations and corrected by refinement with the residuals of
    the draws, which restores the digits that squaring the condition number loses.
    """

    columns: AnyArray  # A
    penalty: AnyArray  # P
    gram: AnyArray  # A'A + P
    size: AnyArray  # of the columns before they were scaled
    parts: tuple[Columns, ...]
    root: Root = None  # by which the rows of A and f are scaled

    def solve(self, f: Values) -> tuple[jax.Array, jax.Array]:
        """The intercepts (k,), and the coefficients of all terms (p, k)."""
        w, _ = _least_squares(self.gram, self.columns, self.penalty, f, jnp.ones((), f.dtype))
        w = w / self.size[:, None]
        return w[0], split_back(self.parts, w[1:])

    def held_out(self, f: Values, folds: Folds) -> LeftOut:
        r"""f - g on every draw, with g fitted to the other folds, whose moments are subtracted.

        And its variance in units of the noise, $1 + a^\top (A^\top A + P)^{-1} a$ for a draw's row $a$,
        and the intercepts.
        """

        def without(own: AnyArray, inside: AnyArray) -> tuple[jax.Array, jax.Array, jax.Array]:
            gram = self.gram - inside.T @ inside
            mask = jnp.ones(len(f), f.dtype).at[own].set(0.0)[:, None]
            w, factor = _least_squares(gram, self.columns, self.penalty, f, mask)
            spread = 1 + jnp.sum(solve_triangular(factor, inside.T, lower=True) ** 2, axis=0)
            return f[own] - inside[:, 1:] @ w[1:], spread, w[0] / self.size[0]

        rest, spread, intercepts = each_fold(without, self.columns, folds)
        rest, variance = unscaled(flat(rest, folds), self.root), flat(spread, folds)
        variance = variance if self.root is None else variance / self.root**2
        return LeftOut(rest, variance, intercepts)


def primal(terms: tuple[Term, ...], x: Points, score: Points, root: Root = None) -> Primal:
    """The least-squares problem of a linear family, its rows scaled where draws have weights."""
    parts = tuple(columns(term, x, score) for term in terms)
    each = (scaled(part.matrix, root) for part in parts)
    whole = jnp.concatenate([ones(x, root), *each], axis=1)
    penalty = block_diag(jnp.zeros((1, 1), x.dtype), *(part.penalty for part in parts))
    gram = whole.T @ whole + penalty
    size = jnp.sqrt(jnp.diag(gram))
    size = jnp.where(size > 0, size, 1.0)
    square = jnp.outer(size, size)
    return Primal(whole / size, penalty / square, gram / square, size, parts, root)


def split_back(parts: tuple[Columns, ...], w: Coefficients) -> jax.Array:
    """From coefficients of the columns to those of the terms, one below the other."""
    done, used = [], 0
    for part in parts:
        width = part.matrix.shape[1]
        done.append(part.coefficients(w[used : used + width]))
        used += width
    return jnp.concatenate(done)


def _least_squares(
    gram: AnyArray, columns: AnyArray, penalty: AnyArray, f: Values, mask: AnyArray
) -> tuple[jax.Array, jax.Array]:
    """The solution, and the factor of the normal equations; the mask is 0 for draws left out, (n, 1)."""
    floor = 8 * jnp.finfo(gram.dtype).eps * len(gram)
    factor = jnp.linalg.cholesky(gram + floor * jnp.eye(len(gram), dtype=gram.dtype))
    w = cho_solve((factor, True), columns.T @ (mask * f))
    for _ in range(REFINEMENTS):
        downhill = columns.T @ (mask * (f - columns @ w)) - penalty @ w
        w = w + cho_solve((factor, True), downhill)
    return w, factor
