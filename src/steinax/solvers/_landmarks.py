"""Nyström columns: the translates of a kernel to a few landmark draws, in units of its norm."""

import equinox as eqx
import jax.numpy as jnp

from .._types import AnyArray, Points
from ._columns import inverse_root
from ._linear_system import Term


class Wide(eqx.Module):
    r"""The terms with more coefficients than landmarks, by their kernel $K$, as one.

    The columns $A = K(x, S) K(S, S)^{-1/2}$ span its translates to the landmarks $S$ (Nyström).
    """

    terms: tuple[Term, ...]
    matrix: AnyArray  # A
    back: AnyArray  # K(S, S)^(-1/2)
    index: AnyArray  # of S among the draws


def nystrom_columns(terms: tuple[Term, ...], x: Points, score: Points, index: AnyArray) -> Wide:
    """The columns of terms that have a kernel, on the landmarks of the given indices."""
    landmarks = (x[index], score[index])
    zero = jnp.zeros(())
    back = inverse_root(sum((t.kernel(*landmarks, *landmarks) for t in terms), zero))
    matrix = sum((t.kernel(x, score, *landmarks) for t in terms), zero) @ back
    return Wide(terms, matrix, back, index)
