"""In many dimensions: a kernel along the direction in which an integrand varies."""

import jax
import jax.numpy as jnp
import numpy as np

from .._types import AnyArray, Values
from ..families import KernelTranslates, Polynomial
from ..kernels._directional import Directional
from ..solvers._penalty_grid import held_out_nested
from ..solvers._problem import LeftOut
from ._arena import Arena
from ._matrices import columns_of, gram_of
from ._recipes import Recipe
from ._trials import Trial, no_trial, side_by_side, trial_of

DRAWS = 500  # at most: each integrand has a factorisation of its own
BENT = 0.9  # of the variance that a linear function leaves, where powers of it leave less


def bent(along: list[Trial]) -> np.ndarray:
    """The integrands that are far from linear along their directions, (k,), by powers along them.

    None where draws are too many.
    """
    if len(along[0].rest) > DRAWS:
        return np.zeros(len(along[0].variance), bool)
    linear, *powers = (trial.open_variance for trial in along)
    return np.min(powers, axis=0) < BENT * linear


def directional(arena: Arena, some: np.ndarray) -> Trial:
    r"""A linear polynomial and a kernel along each integrand's own direction.

    The direction is that of the coefficients of the best linear control variate, $f \approx c +
    b^\top s$: for a Gaussian the gradient of the smoothed integrand.

    Args:
        arena: all draws.
        some: the integrands that have it, (k,).
    """
    columns = columns_of(Polynomial(1), arena.x, arena.score)
    recipe = Recipe(1, Directional, factor=2.0, noise=1.0)
    found = []
    for i, direction in enumerate(_directions(columns, arena.f).T):
        if not some[i]:
            found.append(no_trial(recipe, len(arena.x), arena.folds))
            continue
        kernel = Directional(direction, 2.0, recipe.factor * arena.median)
        gram, size, _ = gram_of(KernelTranslates(kernel), arena.x, arena.score)
        own = arena.f[:, i : i + 1]
        noise, sizes = recipe.noise * size, columns.shape[1:]
        parts = held_out_nested(gram, columns, own, noise, arena.folds, sizes)
        found.append(trial_of(recipe, LeftOut(*(part[0] for part in parts))))
    return side_by_side(found)


@jax.jit
def _directions(columns: AnyArray, f: Values) -> jax.Array:
    """The directions of the best linear control variates, of length 1: (dim, k)."""
    slopes = jnp.linalg.lstsq(columns, f)[0][1:]
    return slopes / jnp.maximum(jnp.linalg.norm(slopes, axis=0), jnp.finfo(f.dtype).tiny)
