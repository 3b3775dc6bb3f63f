"""The dual form: one unknown per draw, however many coefficients there are."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_solve, solve_triangular

from .._types import AnyArray, Points, Values
from ._linear_system import Term


class Dual(eqx.Module):
    r"""The factorised system $(K + 1)\,\alpha = f - H \beta$, $H^\top \alpha = 0$.

    $K$ is the kernel of the penalised terms, in units of the noise, and $H$ holds a column of ones
    and the features of the free terms, whose coefficients are $\beta$. What is left of $f$ is
    $\alpha$ itself. With $C C^\top = K + 1$ and $C^{-1} H = Q R$, nothing worse conditioned than
    the root of $K + 1$ is ever inverted.
    """

    factor: AnyArray  # C
    basis: AnyArray  # Q
    upper: AnyArray  # R

    def coefficients(self, f: Values) -> tuple[jax.Array, jax.Array]:
        r"""The free coefficients $\beta$ (q, k), intercept first, and the dual ones $\alpha$ (n, k)."""
        white = solve_triangular(self.factor, f, lower=True)
        along = self.basis.T @ white
        alpha = solve_triangular(self.factor, white - self.basis @ along, lower=True, trans=1)
        return solve_triangular(self.upper, along), alpha

    def held_out(self, f: Values, folds: tuple[tuple[int, int], ...]) -> jax.Array:
        r"""f - g on every draw, with g fitted to the other folds: (n, k), from this factorisation.

        With $P = (K+1)^{-1} - (\ldots) H (\ldots)$ the matrix of $\alpha = P f$, the error of the
        prediction on a fold $B$ that was left out is $e_B = P_{BB}^{-1} \alpha_B$, and leaving it out
        moves the intercept $c = \tau^\top f$ to $c - \tau_B^\top e_B$ (it is as if each draw of $B$ had
        an indicator of its own among the regressors).
        """
        beta, alpha = self.coefficients(f)
        eye = jnp.eye(len(f), dtype=self.factor.dtype)
        inverse = solve_triangular(self.factor, eye, lower=True)
        projected = self.basis.T @ inverse
        weights = solve_triangular(self.upper, projected)[0]
        rest = inverse - self.basis @ projected
        parts = []
        for start, stop in folds:
            columns = rest[:, start:stop]
            block = columns.T @ columns
            floor = jnp.finfo(block.dtype).eps * jnp.trace(block)
            factor = jnp.linalg.cholesky(block + floor * jnp.eye(stop - start, dtype=block.dtype))
            error = cho_solve((factor, True), alpha[start:stop])
            parts.append(error + beta[0] - weights[start:stop] @ error)
        return jnp.concatenate(parts)


def dual(terms: tuple[Term, ...], x: Points, score: Points) -> Dual:
    """Build and factorise the dual system of a linear problem."""
    n = x.shape[0]
    columns = [jnp.ones((n, 1), x.dtype)]
    kernel = jnp.zeros((n, n), x.dtype)
    for term in terms:
        if term.is_free:
            columns.append(term.family.feature_matrix(term.state, x, score))
        else:
            kernel = kernel + term.kernel(x, score, x, score)
    kernel = jax.lax.optimization_barrier(kernel)  # made once, though it is read twice
    # a floor that keeps the factorisation real when the penalty is below rounding error
    noise = jnp.maximum(1.0, 8 * jnp.finfo(kernel.dtype).eps * jnp.trace(kernel))
    shifted = jax.lax.optimization_barrier(kernel + noise * jnp.eye(n, dtype=kernel.dtype))
    # it equals its transpose, which lies in memory as LAPACK wants it: no copy is made
    factor = jnp.linalg.cholesky(shifted.T, symmetrize_input=False)
    white = solve_triangular(factor, jnp.concatenate(columns, axis=1), lower=True)
    basis, upper = jnp.linalg.qr(white)
    return Dual(factor, basis, upper)


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
