"""Held-out errors for a kernel matrix: for a whole grid of noises from one decomposition."""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular

from .._types import AnyArray, Values
from ._blocks import blocks_of
from ._dual import Dual, with_columns
from ._linear_map import DualMap
from ._problem import Folds, LeftOut
from ._roots import AbstractRoot, IdentityRoot, SpectralRoot, cholesky_root, noise_floor
from ._rows import Root, scaled


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
    sizes: tuple[int, ...],
    root: Root = None,
) -> LeftOut:
    """What leaving out each fold in turn gives, for each noise and each number of columns.

    Args:
        decomposed: the eigenvalues and eigenvectors of the kernel matrix.
        columns: a column of ones, and the features of terms without a penalty, (n, q).
        f: the integrands, (n, k).
        noises: of the draws, in the units of the kernel, (grid,).
        folds: where each starts and stops.
        sizes: how many of the columns, from the first on, each candidate has.
        root: by which the rows of kernel matrix and columns are scaled, where draws have weights.

    Returns:
        Arrays with the grid as their first axis, and the sizes as their second.
    """
    values, vectors = decomposed
    floor = noise_floor(jnp.sum(values))

    def at(noise: AnyArray) -> LeftOut:
        scale = jax.lax.rsqrt(values + jnp.maximum(noise, floor))
        return _nested(SpectralRoot(vectors, scale), columns, f, folds, sizes, root)

    return jax.lax.map(at, noises)


@eqx.filter_jit
def held_out_nested(
    kernel: AnyArray,
    columns: AnyArray,
    f: Values,
    noise: AnyArray,
    folds: Folds,
    sizes: tuple[int, ...],
    root: Root = None,
) -> LeftOut:
    """The same for one noise, by a Cholesky factorisation: arrays with the sizes as first axis."""
    return _nested(cholesky_root(kernel / noise), columns, f, folds, sizes, root)


def _nested(
    root: AbstractRoot,
    columns: AnyArray,
    f: Values,
    folds: Folds,
    sizes: tuple[int, ...],
    rows: Root,
) -> LeftOut:
    """One root and one orthogonal basis serve the first columns, however many they are.

    So do one product with the root for all integrands, and one with its transpose for all sizes.
    """
    centre = jnp.mean(f, axis=0)
    free, white = _at_once(root.whiten, [columns, scaled(f - centre, rows)])
    basis, upper = jnp.linalg.qr(free)
    along = basis.T @ white
    beside = [white - basis[:, :size] @ along[:size] for size in sizes]
    free, *alphas = _at_once(root.whiten_transposed, [basis, *beside])
    inverted = root.inverse().T
    found = []
    for size, alpha in zip(sizes, alphas, strict=True):
        inverse = solve_triangular(upper[:size, :size], jnp.eye(size, dtype=upper.dtype))[0]
        blocks = blocks_of(inverted, free[:, :size], free[:, :size] @ inverse, folds, rows)
        rest, intercepts = blocks.held_out(alpha, inverse @ along[:size])
        found.append(LeftOut(rest, blocks.solve_diagonal(), intercepts).moved(centre))
    return jax.tree.map(lambda *parts: jnp.stack(parts), *found)


def _at_once(
    product: Callable[[AnyArray], jax.Array], parts: Sequence[AnyArray]
) -> list[jax.Array]:
    """A product with each of some matrices that lie side by side: one call takes them all."""
    edges = np.cumsum([part.shape[1] for part in parts])[:-1]
    return jnp.split(product(jnp.concatenate(parts, axis=1)), edges, axis=1)


@eqx.filter_jit
def linear_map_once(
    kernel: AnyArray | None,
    columns: AnyArray,
    noise: AnyArray,
    folds: Folds,
    root: Root = None,
) -> DualMap:
    """The same for integrands that come later."""
    return DualMap(_system(kernel, columns, noise, root).blocks(folds))


def _system(kernel: AnyArray | None, columns: AnyArray, noise: AnyArray, root: Root) -> Dual:
    made = IdentityRoot(len(columns)) if kernel is None else cholesky_root(kernel / noise)
    return with_columns(made, columns, root)
