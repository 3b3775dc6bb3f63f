"""The dual form: one unknown per draw, however many coefficients there are."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular

from .._types import AnyArray, Points, Values
from ._blocks import Blocks, blocks_of
from ._linear_system import Term
from ._problem import Folds, LeftOut
from ._roots import AbstractRoot, cholesky_root
from ._rows import Root, ones, scaled


class Dual(eqx.Module):
    r"""The factorised system $(K + 1)\,\alpha = f - H \beta$, $H^\top \alpha = 0$.

    $K$ is the kernel of the penalised terms, in units of the noise, and $H$ holds a column of ones
    and the features of the free terms, whose coefficients are $\beta$. What is left of $f$ is
    $\alpha$ itself. With $C C^\top = K + 1$ and $C^{-1} H = Q R$, nothing worse conditioned than
    the root of $K + 1$ is ever inverted.
    """

    root: AbstractRoot  # C
    basis: AnyArray  # Q
    upper: AnyArray  # R
    rows: Root = None  # by which the rows of K, H and f are scaled

    def coefficients(self, f: Values) -> tuple[jax.Array, jax.Array]:
        r"""The free coefficients $\beta$ (q, k), intercept first, and the dual ones $\alpha$ (n, k)."""
        white = self.root.whiten(f)
        along = self.basis.T @ white
        alpha = self.root.whiten_transposed(white - self.basis @ along)
        return solve_triangular(self.upper, along), alpha

    def held_out(self, f: Values, folds: Folds) -> LeftOut:
        r"""f - g on every draw with g fitted to the other folds, its variance, and the intercepts.

        With $P = (K+1)^{-1} - (\ldots) H (\ldots)$ the matrix of $\alpha = P f$, the error of the
        prediction on a fold $B$ that was left out is $e_B = P_{BB}^{-1} \alpha_B$, and leaving it out
        moves the intercept $c = \tau^\top f$ to $c - \tau_B^\top e_B$ (it is as if each draw of $B$ had
        an indicator of its own among the regressors). If the noise is 1 and $g$ has the prior that
        belongs to the penalty, $e_B$ has the covariance $P_{BB}^{-1}$, whose diagonal is returned.
        """
        beta, alpha = self.coefficients(f)
        blocks = self.blocks(folds)
        rest, intercepts = blocks.held_out(alpha, beta[0])
        return LeftOut(rest, blocks.solve_diagonal(), intercepts)

    def blocks(self, folds: Folds) -> Blocks:
        """What leaving out each fold in turn needs."""
        rows = self.root.inverse().T
        free = rows @ self.basis
        return blocks_of(rows, free, solve_triangular(self.upper, free.T)[0], folds, self.rows)


def dual(terms: tuple[Term, ...], x: Points, score: Points, root: Root = None) -> Dual:
    r"""Build and factorise the dual system of a linear problem.

    With weights it is that of the rows $D K D$, $D H$ and $D f$, $D$ the diagonal matrix of their roots.
    """
    n = x.shape[0]
    columns = [ones(x, root)]
    kernel = jnp.zeros((n, n), x.dtype)
    for term in terms:
        if term.is_free:
            columns.append(scaled(term.family.feature_matrix(term.state, x, score), root))
        else:
            kernel = kernel + term.kernel(x, score, x, score)
    kernel = scaled(scaled(kernel, root).T, root)
    return with_columns(cholesky_root(kernel), jnp.concatenate(columns, axis=1), root)


def with_columns(root: AbstractRoot, columns: AnyArray, rows: Root = None) -> Dual:
    """The dual system of a factorised kernel matrix and columns without a penalty."""
    return Dual(root, *jnp.linalg.qr(root.whiten(columns)), rows)


def gather(
    terms: tuple[Term, ...], x: Points, score: Points, beta: AnyArray, alpha: AnyArray
) -> tuple[jax.Array, jax.Array]:
    """The intercept and the coefficients of all terms, from the free and the dual ones."""
    parts, used = [], 1
    for term in terms:
        if term.is_free:
            size = term.size(x.shape[1])
            parts.append(beta[used : used + size])
            used += size
        else:
            parts.append(term.from_dual(x, score, alpha))
    return beta[0], jnp.concatenate(parts)
