"""The matrices that candidates are tried with, and fewer draws to try them on."""

from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._types import AnyArray, Points
from ..families import AbstractLinearFamily, KernelTranslates
from ..solvers import Folds


@eqx.filter_jit
def gram_of(
    translates: KernelTranslates, x: Points, score: Points
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """The Stein kernel of all pairs, its median variance and its largest."""
    matrix = translates.feature_matrix((x, score), x, score)
    own = jnp.diag(matrix)
    return matrix, jnp.median(own), jnp.max(own)


@eqx.filter_jit
def median_variance(translates: KernelTranslates, x: Points, score: Points) -> AnyArray:
    """The median of the Stein kernel of each draw and itself."""
    kernel, operator = translates.kernel, translates.operator
    return jnp.median(jax.vmap(lambda x, s: kernel.stein(operator, x, s, x, s))(x, score))


@eqx.filter_jit
def columns_of(family: AbstractLinearFamily | None, x: Points, score: Points) -> AnyArray:
    """Ones, and the features of a family without a state, if there is one."""
    ones = jnp.ones((len(x), 1), x.dtype)
    if family is None:
        return ones
    return jnp.concatenate([ones, family.feature_matrix(None, x, score)], axis=1)


def thinned(folds: Folds, count: int) -> tuple[np.ndarray, Folds]:
    """About so many of the draws, evenly spaced in each fold, and the folds that they make.

    Which ones does not depend on the order of the chains.
    """
    some, edges, n = [], [0], folds[-1][1]
    for start, stop in folds:
        mine = max(round(count * (stop - start) / n), 1)
        some.append(start + ((np.arange(mine) + 0.5) * (stop - start) / mine).astype(int))
        edges.append(edges[-1] + mine)
    return np.concatenate(some), tuple(pairwise(edges))
