"""Held-out errors for a kernel matrix: for a whole grid of noises from one decomposition."""

import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import AnyArray, Values
from ._dual import Dual, with_columns
from ._linear_map import DualMap
from ._problem import Folds, LeftOut
from ._roots import IdentityRoot, SpectralRoot, cholesky_root, noise_floor


@eqx.filter_jit
def spectrum(kernel: AnyArray) -> tuple[jax.Array, jax.Array]:
    """The eigenvalues, none below zero, and the eigenvectors."""
    values, vectors = jnp.linalg.eigh(kernel, symmetrize_input=False)
    return jnp.maximum(values, 0.0), vectors


@eqx.filter_jit
def held_out_grid(
    decomposed: tuple[AnyArray, AnyArray],
    columns: AnyArray,
    f: Values,
    noises: AnyArray,
    folds: Folds,
) -> LeftOut:
    """What leaving out each fold in turn gives, for each noise.

    Args:
        decomposed: the eigenvalues and eigenvectors of the kernel matrix.
        columns: a column of ones, and the features of terms without a penalty, (n, q).
        f: the integrands, (n, k).
        noises: of the draws, in the units of the kernel, (grid,).
        folds: where each starts and stops.

    Returns:
        Arrays with the grid as their first axis.
    """
    values, vectors = decomposed
    floor = noise_floor(jnp.sum(values))
    centre = jnp.mean(f, axis=0)

    def at(noise: AnyArray) -> LeftOut:
        scale = jax.lax.rsqrt(values + jnp.maximum(noise, floor))
        system = with_columns(SpectralRoot(vectors, scale), columns)
        return system.held_out(f - centre, folds).moved(centre)

    return jax.lax.map(at, noises)


@eqx.filter_jit
def held_out_once(
    kernel: AnyArray | None, columns: AnyArray, f: Values, noise: AnyArray, folds: Folds
) -> LeftOut:
    """The same for one noise, by a Cholesky factorisation or, without a kernel, none."""
    centre = jnp.mean(f, axis=0)
    return _system(kernel, columns, noise).held_out(f - centre, folds).moved(centre)


@eqx.filter_jit
def linear_map_once(
    kernel: AnyArray | None, columns: AnyArray, noise: AnyArray, folds: Folds
) -> DualMap:
    """The same for integrands that come later."""
    return DualMap(_system(kernel, columns, noise).blocks(folds))


def _system(kernel: AnyArray | None, columns: AnyArray, noise: AnyArray) -> Dual:
    root = IdentityRoot(len(columns)) if kernel is None else cholesky_root(kernel / noise)
    return with_columns(root, columns)
