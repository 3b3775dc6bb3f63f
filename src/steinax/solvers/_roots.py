"""Roots C of a kernel matrix with noise, C C' = K + 1, by Cholesky or by eigenvectors."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular

from .._types import AnyArray


class AbstractRoot(eqx.Module):
    """A matrix C with C C' = K + noise."""

    @abc.abstractmethod
    def whiten(self, right: AnyArray) -> jax.Array:
        r"""$C^{-1} b$."""

    @abc.abstractmethod
    def whiten_transposed(self, right: AnyArray) -> jax.Array:
        r"""$C^{-\top} b$."""

    @abc.abstractmethod
    def inverse(self) -> jax.Array:
        r"""$C^{-1}$."""


class CholeskyRoot(AbstractRoot):
    """The triangular root: the cheapest for one noise."""

    factor: AnyArray

    def whiten(self, right: AnyArray) -> jax.Array:
        return solve_triangular(self.factor, right, lower=True)

    def whiten_transposed(self, right: AnyArray) -> jax.Array:
        return solve_triangular(self.factor, right, lower=True, trans=1)

    def inverse(self) -> jax.Array:
        return inverse_triangular(self.factor)


class IdentityRoot(AbstractRoot):
    """The root where there is no kernel, K = 0: ordinary least squares."""

    size: int = eqx.field(static=True)

    def whiten(self, right: AnyArray) -> jax.Array:
        return jnp.asarray(right)

    def whiten_transposed(self, right: AnyArray) -> jax.Array:
        return jnp.asarray(right)

    def inverse(self) -> jax.Array:
        return jnp.eye(self.size)


class SpectralRoot(AbstractRoot):
    """The root from eigenvectors: one decomposition serves every noise."""

    vectors: AnyArray
    scale: AnyArray  # 1 / sqrt(eigenvalue + noise)

    def whiten(self, right: AnyArray) -> jax.Array:
        return self.scale[:, None] * (self.vectors.T @ right)

    def whiten_transposed(self, right: AnyArray) -> jax.Array:
        return self.vectors @ (self.scale[:, None] * right)

    def inverse(self) -> jax.Array:
        return self.scale[:, None] * self.vectors.T


def inverse_triangular(factor: AnyArray, leaf: int = 128) -> jax.Array:
    """The inverse of a lower triangular matrix, by halves: a third of the work of a full solve."""
    n = len(factor)
    if n <= leaf:
        return solve_triangular(factor, jnp.eye(n, dtype=factor.dtype), lower=True)
    half = n // 2
    first = inverse_triangular(factor[:half, :half], leaf)
    last = inverse_triangular(factor[half:, half:], leaf)
    below = -last @ (factor[half:, :half] @ first)
    zeros = jnp.zeros((half, n - half), factor.dtype)
    return jnp.block([[first, zeros], [below, last]])


def cholesky_root(kernel: AnyArray) -> CholeskyRoot:
    """The root of K + 1, K read once: it is scaled, shifted and laid out for LAPACK in one pass."""
    place = jnp.arange(len(kernel))
    trace = jnp.sum(kernel[place, place])  # `jnp.trace` would write a matrix of zeros around it
    noise = jnp.maximum(1.0, noise_floor(trace)).astype(kernel.dtype)
    # K equals its transpose, which lies in memory as LAPACK wants it
    shifted = kernel.T + noise * jnp.eye(len(kernel), dtype=kernel.dtype)
    return CholeskyRoot(jnp.linalg.cholesky(shifted, symmetrize_input=False))


def noise_floor(trace: AnyArray) -> jax.Array:
    """The least noise that keeps a factorisation real: what rounding does to the eigenvalues."""
    return 8 * jnp.finfo(trace.dtype).eps * trace
