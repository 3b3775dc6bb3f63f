"""The features of a term as columns of a least-squares problem, in units of their penalty."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular

from .._types import AnyArray, Coefficients, Points
from ..objectives import MeanSquare
from ._linear_system import Term


class Columns(eqx.Module):
    r"""Columns $A$ and a penalty $P$, so that the term costs $\|f - A w\|^2 + w^\top P w$.

    `back` takes $w$ to the term's own coefficients, a matrix or a number.
    """

    matrix: AnyArray
    penalty: AnyArray
    back: AnyArray

    def coefficients(self, w: Coefficients) -> jax.Array:
        """The term's own coefficients."""
        return self.back * w if self.back.ndim == 0 else self.back @ w


def columns(term: Term, x: Points, score: Points) -> Columns:
    """All features of a term, whitened by its own norm: P is the identity, or zero when free."""
    features = term.family.feature_matrix(term.state, x, score)
    eye = jnp.eye(features.shape[1], dtype=features.dtype)
    if isinstance(term.penalty, MeanSquare):
        penalty = term.weight / x.shape[0] * (features.T @ features)
        return Columns(features, penalty, jnp.ones(()))
    if term.is_free:
        return Columns(features, jnp.zeros_like(eye), jnp.ones(()))
    gram = term.gram(x.shape[1])
    scale = 1 / jnp.sqrt(term.weight)
    if gram is None:
        return Columns(features * scale, eye, jnp.asarray(scale))
    back = inverse_root(gram) * scale
    return Columns(features @ back, eye, back)


def inverse_root(gram: AnyArray) -> jax.Array:
    r"""$T$ with $T^\top G T = 1$: the inverse of a triangular factor, kept real by a floor."""
    eye = jnp.eye(len(gram), dtype=gram.dtype)
    floor = 8 * jnp.finfo(gram.dtype).eps * jnp.trace(gram)
    return solve_triangular(jnp.linalg.cholesky(gram + floor * eye), eye, lower=True).T
