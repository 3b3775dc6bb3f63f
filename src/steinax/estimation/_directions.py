"""In many dimensions: each integrand along the direction in which it varies."""

import jax
import jax.numpy as jnp
import numpy as np

from .._types import AnyArray, Values
from ..kernels._directional import Directional
from ..solvers._penalty_grid import held_out_grid, spectrum
from ._arena import Arena, Trial, columns_of, gram_of, variance_of
from ._recipes import NOISES, Recipe

DIMENSIONS = 30  # from which on a kernel of all coordinates is too coarse
INTEGRANDS = 32  # each has a factorisation of its own


def directional(arena: Arena) -> list[Trial]:
    r"""A linear polynomial and a kernel along each integrand's own direction, for each noise.

    The direction is that of the coefficients of the best linear control variate, $f \approx c +
    b^\top s$: for a Gaussian the gradient of the smoothed integrand.
    """
    columns = columns_of(1, arena.x, arena.score)
    rest, variance = [], []
    for i, direction in enumerate(_directions(columns, arena.f).T):
        kernel = Directional(direction, 2.0, 2.0 * arena.median)
        gram, size, _ = gram_of(kernel, arena.x, arena.score)
        noises = jnp.asarray(NOISES) * size
        own = arena.f[:, i : i + 1]
        found = held_out_grid(spectrum(gram), columns, own, noises, arena.folds)
        rest.append(np.asarray(found[0]))
        variance.append(np.asarray(variance_of(*found)))
    series, scores = np.concatenate(rest, axis=2), np.concatenate(variance, axis=1)
    recipes = (Recipe(1, Directional, 2.0, noise) for noise in NOISES)
    return [Trial(*parts) for parts in zip(recipes, series, scores, strict=True)]


@jax.jit
def _directions(columns: AnyArray, f: Values) -> jax.Array:
    """The directions of the best linear control variates, of length 1: (dim, k)."""
    slopes = jnp.linalg.lstsq(columns, f)[0][1:]
    return slopes / jnp.maximum(jnp.linalg.norm(slopes, axis=0), jnp.finfo(f.dtype).tiny)
