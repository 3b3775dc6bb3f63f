"""The features of a term as columns of a least-squares problem, in units of their penalty."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular

from .._types import AnyArray, Points, Values
from ..objectives import MeanSquare, NativeNorm, Ridge
from ._linear_system import Term


class Columns(eqx.Module):
    r"""Columns $A$ and a penalty $P$, so that the term costs $\|f - A w\|^2 + w^\top P w$.

    `back` takes $w$ to the term's own coefficients, a matrix or a number; with landmarks it takes
    $w$ to the dual coefficients of those draws.
    """

    matrix: AnyArray
    penalty: AnyArray
    back: AnyArray
    term: Term
    landmarks: tuple[AnyArray, AnyArray] | None = None

    def coefficients(self, w: Values) -> jax.Array:
        """The term's own coefficients."""
        inner = self.back * w if self.back.ndim == 0 else self.back @ w
        return inner if self.landmarks is None else self.term.from_dual(*self.landmarks, inner)


def columns(term: Term, x: Points, score: Points) -> Columns:
    """All features of a term, whitened by its own norm: P is the identity, or zero when free."""
    features = term.family.feature_matrix(term.state, x, score)
    eye = jnp.eye(features.shape[1], dtype=features.dtype)
    if isinstance(term.penalty, MeanSquare):
        penalty = term.weight / x.shape[0] * (features.T @ features)
        return Columns(features, penalty, jnp.ones(()), term)
    if term.is_free:
        return Columns(features, jnp.zeros_like(eye), jnp.ones(()), term)
    gram = term.family.gram(term.state) if isinstance(term.penalty, NativeNorm) else None
    scale = 1 / jnp.sqrt(term.weight)
    if gram is None:
        return Columns(features * scale, eye, jnp.asarray(scale), term)
    back = _inverse_root(gram) * scale
    return Columns(features @ back, eye, back, term)


def landmark_columns(
    term: Term, x: Points, score: Points, landmarks: tuple[Points, Points]
) -> Columns:
    r"""The part of a wide term that lies in the span of its kernel's translates to landmarks.

    With $K$ the term's kernel the columns are $K(x, S) K(S, S)^{-1/2}$ (Nyström).
    """
    # a family with a centre at every draw has them at the landmarks instead
    moved = eqx.tree_at(
        lambda t: t.state, term, term.family.setup(*landmarks), is_leaf=lambda s: s is None
    )
    back = _inverse_root(moved.kernel(*landmarks, *landmarks))
    matrix = moved.kernel(x, score, *landmarks) @ back
    eye = jnp.eye(matrix.shape[1], dtype=matrix.dtype)
    return Columns(matrix, eye, back, moved, landmarks)


def can_use_landmarks(term: Term) -> bool:
    """Whether the term has a kernel, as it does when a penalty on the coefficients holds it."""
    return isinstance(term.penalty, (NativeNorm, Ridge))


def _inverse_root(gram: AnyArray) -> jax.Array:
    r"""$T$ with $T^\top G T = 1$: the inverse of a triangular factor, kept real by a floor."""
    eye = jnp.eye(len(gram), dtype=gram.dtype)
    floor = 8 * jnp.finfo(gram.dtype).eps * jnp.trace(gram)
    return solve_triangular(jnp.linalg.cholesky(gram + floor * eye), eye, lower=True).T
