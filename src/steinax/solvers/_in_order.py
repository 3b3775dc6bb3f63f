"""Exact fits under a spectral variance: least squares on draws that a window has run over."""

import jax
import jax.numpy as jnp
from jax.scipy.linalg import block_diag, cho_solve

from .._types import AnyArray, Values
from ._columns import columns
from ._dual import gather, with_columns
from ._linear_system import Term
from ._primal import REFINEMENTS, split_back
from ._problem import Problem
from ._roots import cholesky_root


def solve_in_order(
    problem: Problem, terms: tuple[Term, ...], f: Values, dual_form: bool
) -> tuple[jax.Array, jax.Array]:
    r"""The minimiser of $(f - g - c)^\top W (f - g - c)$ plus the penalty, W the window's matrix.

    Args:
        problem: whose objective has a `reach`; `smooth` is the product with W.
        terms: of its family.
        f: the integrands, (n, k).
        dual_form: whether there is one unknown per draw, or one per coefficient.

    Returns:
        the intercepts (k,), and the coefficients of all terms (p, k).
    """
    return (_dual if dual_form else _primal)(problem, terms, f)


def _primal(problem: Problem, terms: tuple[Term, ...], f: Values) -> tuple[jax.Array, jax.Array]:
    r"""By $(A^\top W A + P)\,w = A^\top W f$, refined as it is without a window."""
    parts = tuple(columns(term, problem.x, problem.score) for term in terms)
    ones = jnp.ones((f.shape[0], 1), f.dtype)
    whole = jnp.concatenate([ones, *(part.matrix for part in parts)], axis=1)
    smooth = problem.objective.smooth(whole, problem.segment)
    penalty = block_diag(jnp.zeros((1, 1), f.dtype), *(part.penalty for part in parts))
    gram = whole.T @ smooth + penalty
    size = jnp.sqrt(jnp.diag(gram))
    size = jnp.where(size > 0, size, 1.0)[:, None]
    scaled = gram / (size * size.T)
    floor = 8 * jnp.finfo(f.dtype).eps * len(gram)
    factor = jnp.linalg.cholesky(scaled + floor * jnp.eye(len(gram), dtype=f.dtype))
    w = jnp.zeros((len(gram), f.shape[1]), f.dtype)
    for _ in range(1 + REFINEMENTS):
        downhill = smooth.T @ (f - whole @ w) - penalty @ w
        w = w + cho_solve((factor, True), downhill / size) / size
    return w[0], split_back(parts, w[1:])


def _dual(problem: Problem, terms: tuple[Term, ...], f: Values) -> tuple[jax.Array, jax.Array]:
    r"""With $W = L L^\top$, the system of $L^\top K L$ and $L^\top f$; translates get $L \alpha$."""
    x, score = problem.x, problem.score
    lower = _root(problem.objective.smooth(jnp.eye(len(f), dtype=f.dtype), problem.segment))
    kernel, free = jnp.zeros_like(lower), [jnp.ones((len(f), 1), f.dtype)]
    for term in terms:
        if term.is_free:
            free.append(term.family.feature_matrix(term.state, x, score))
        else:
            kernel = kernel + term.kernel(x, score, x, score)
    root = cholesky_root(lower.T @ kernel @ lower)
    system = with_columns(root, lower.T @ jnp.concatenate(free, axis=1))
    beta, alpha = system.coefficients(lower.T @ f)
    return gather(terms, x, score, beta, lower @ alpha)


def _root(window: AnyArray) -> jax.Array:
    floor = 8 * jnp.finfo(window.dtype).eps * jnp.trace(window)
    return jnp.linalg.cholesky(window + floor * jnp.eye(len(window), dtype=window.dtype))
