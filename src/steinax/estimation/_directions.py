"""In many dimensions: each integrand along the direction in which it varies."""

import jax
import jax.numpy as jnp
import numpy as np

from .._types import AnyArray, Values
from ..kernels._directional import Directional
from ..solvers._penalty_grid import held_out_grid, spectrum
from ..solvers._problem import LeftOut
from ._arena import Arena, Trial, columns_of, gram_of, trials_of
from ._recipes import NOISES, Recipe

DIMENSIONS = 30  # from which on a kernel of all coordinates is too coarse
INTEGRANDS = 32  # each has a factorisation of its own


def directional(arena: Arena) -> list[Trial]:
    r"""A linear polynomial and a kernel along each integrand's own direction, for each noise.

    The direction is that of the coefficients of the best linear control variate, $f \approx c +
    b^\top s$: for a Gaussian the gradient of the smoothed integrand.
    """
    columns = columns_of(1, arena.x, arena.score)
    found: list[LeftOut] = []
    for i, direction in enumerate(_directions(columns, arena.f).T):
        kernel = Directional(direction, 2.0, 2.0 * arena.median)
        gram, size, _ = gram_of(kernel, arena.x, arena.score)
        noises = jnp.asarray(NOISES) * size
        own = arena.f[:, i : i + 1]
        found.append(held_out_grid(spectrum(gram), columns, own, noises, arena.folds))
    recipes = [Recipe(1, Directional, 2.0, noise) for noise in NOISES]
    each = zip(*(trials_of(recipes, one) for one in found), strict=True)
    return [_side_by_side(noise) for noise in each]


def _side_by_side(trials: tuple[Trial, ...]) -> Trial:
    """One candidate for all integrands, from one for each."""
    rest, intercepts = (
        np.concatenate([getattr(trial, part) for trial in trials], axis=1)
        for part in ("rest", "intercepts")
    )
    variance = np.concatenate([trial.variance for trial in trials])
    return Trial(trials[0].recipe, rest, variance, intercepts)


@jax.jit
def _directions(columns: AnyArray, f: Values) -> jax.Array:
    """The directions of the best linear control variates, of length 1: (dim, k)."""
    slopes = jnp.linalg.lstsq(columns, f)[0][1:]
    return slopes / jnp.maximum(jnp.linalg.norm(slopes, axis=0), jnp.finfo(f.dtype).tiny)
