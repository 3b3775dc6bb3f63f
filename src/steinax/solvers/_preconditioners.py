"""Preconditioners of conjugate gradients: what is large in a system, inverted exactly."""

import jax
import jax.numpy as jnp

from .._types import AnyArray, Values
from ..families import Landmarks, Products
from ._conjugate_steps import Times
from ._landmarks import nystrom_columns
from ._linear_system import Term
from ._rows import Root, scaled


def nystrom_inverse(
    terms: tuple[Term, ...], x: Values, score: Values, count: int, root: Root = None
) -> Times:
    r"""The product with $(A A^\top + 1)^{-1}$, $A$ the Nyström columns of so many landmarks."""
    index = Landmarks(count).choose(len(x))
    columns = nystrom_columns(terms, x, score, index).matrix
    return _low_rank_inverse(scaled(columns, root), jnp.ones(()))


def leading_inverse(terms: tuple[Term, ...], each: list[Products], root: Root = None) -> Times:
    r"""The product with $(A A^\top + c)^{-1}$, $A$ the leading features of all terms.

    The rest of the kernel is taken for a multiple of the identity, $c = 1 + \operatorname{tr}
    K_{\text{rest}} / n$: it has many directions and none of them is large.
    """
    columns, noise = [], jnp.ones(())
    for term, products in zip(terms, each, strict=True):
        leading, rest = products.leading()
        columns.append(scaled(leading / jnp.sqrt(term.weight), root))
        noise = noise + rest / term.weight
    return _low_rank_inverse(jnp.concatenate(columns, axis=1), noise)


def feature_squares(products: Products, n: int, size: int) -> jax.Array:
    """The sum of squares of each feature over the draws: (size,).

    Those that are not leading are given the mean of theirs.
    """
    leading, rest = products.leading()
    own = jnp.sum(leading**2, axis=0)
    others = size - len(own)
    return jnp.concatenate([own, jnp.full(others, n * rest / max(others, 1), own.dtype)])


def _low_rank_inverse(a: AnyArray, noise: AnyArray) -> Times:
    r"""The product with $(A A^\top + c)^{-1} = (1 - A (A^\top A + c)^{-1} A^\top) / c$."""
    inner = a.T @ a + noise * jnp.eye(a.shape[1], dtype=a.dtype)
    factor = jnp.linalg.cholesky(inner)
    return lambda r: (r - a @ jax.scipy.linalg.cho_solve((factor, True), a.T @ r)) / noise
