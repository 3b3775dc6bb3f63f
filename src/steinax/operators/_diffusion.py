from collections.abc import Callable, Sequence
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._precision import as_leaf
from .._types import AnyArray, Point
from ._base import AbstractOperator, Function, PairFunction, directional
from ._langevin import Langevin

type Matrix = AnyArray | float | Sequence[Any] | Callable[[jax.Array], jax.Array]


class Given(eqx.Module):
    """A plain function of a point as a matrix field: part of the program, not of what is fitted.

    >>> Given(lambda x: 1 + x**2)(jnp.ones(2)).tolist()
    [2.0, 2.0]
    """

    function: Function = eqx.field(static=True)

    def __call__(self, x: Point) -> jax.Array:
        return self.function(x)


def as_matrix(matrix: Matrix) -> AnyArray | eqx.Module:
    """A constant as an array leaf, a plain function as a module."""
    if isinstance(matrix, eqx.Module):
        return matrix
    if callable(matrix):
        return Given(cast(Function, matrix))
    array = as_leaf(np.asarray(matrix))
    if array.ndim not in (1, 2) or (array.ndim == 2 and array.shape[0] != array.shape[1]):
        raise ValueError(
            f"Diffusion: a matrix of shape {array.shape}: give (dim, dim), the diagonal (dim,), or a "
            "function of a point that gives one of them."
        )
    if not np.all(np.isfinite(array)):
        raise ValueError("Diffusion: the matrix has entries that are not finite: mend them.")
    return array


class Diffusion(AbstractOperator):
    r"""The Stein operator of a diffusion with a matrix field $A(x)$, on fields or on potentials.

    $$ \mathcal{L} u = \nabla \cdot (A u) + A u \cdot \nabla \log \pi, \qquad
       \mathcal{L} v = \nabla \cdot (A \nabla v) + A \nabla v \cdot \nabla \log \pi $$

    Of Gorham, Duncan, Vollmer and Mackey (2019). It has mean zero for every smooth $A$ that grows more
    slowly than the density falls; with $A = 1$ it is `Langevin` or `ScalarLangevin`. A matrix that is not
    symmetric is allowed. $A$ is a function of the standardised draws, as $u$ is.

    Args:
        matrix: $A$. A constant of shape (dim, dim), or its diagonal (dim,), or a function of a point that
            gives either. An `eqx.Module` has its arrays as leaves, so that `families.Learned` can train them.
        on_fields: whether it acts on vector fields, or else on potentials.

    >>> x = jnp.array([1.0, 2.0])
    >>> operator = Diffusion(lambda x: 1 + x**2, on_fields=False)
    >>> float(operator(lambda x: jnp.sum(x), x, -x))  # sum of 2 x - x (1 + x^2)
    -6.0
    """

    matrix: AnyArray | eqx.Module = eqx.field(converter=as_matrix)
    on_fields: bool = eqx.field(static=True, default=True)

    @property
    def acts_on_fields(self) -> bool:
        return self.on_fields

    def __call__(self, u: Function, x: Point, score: Point) -> jax.Array:
        if self.on_fields:
            return Langevin()(lambda z: _times(u(z), self.at(z)), x, score)

        def term(i, direction):
            def flux(z):  # the component i of A grad u
                return directional(u, z, _row(self.at(z), i, direction))[1]

            return directional(flux, x, direction)[1]

        dim = x.shape[-1]
        divergence = jax.vmap(term)(jnp.arange(dim), jnp.eye(dim, dtype=x.dtype)).sum(axis=0)
        return divergence + directional(u, x, _transposed_times(self.at(x), score))[1]

    def representer(self, kernel: PairFunction, y: Point, score: Point) -> Function:
        if not self.on_fields:
            return lambda x: self(lambda z: kernel(x, z), y, score)
        matrix, drift = self.at(y), self.drift(y, score)

        def field(x):
            value, gradient = jax.value_and_grad(kernel, argnums=1)(x, y)
            return _transposed_times(matrix, gradient) + value * drift

        return field

    def at(self, x: Point) -> Float[AnyArray, " dim"] | Float[AnyArray, "dim dim"]:
        """The matrix at one point, (dim, dim), or its diagonal, (dim,)."""
        matrix = self.matrix(x) if callable(self.matrix) else self.matrix
        matrix, dim = jnp.asarray(matrix, x.dtype), x.shape[-1]
        if matrix.shape not in ((dim,), (dim, dim)):
            raise ValueError(
                f"Diffusion: the matrix has shape {matrix.shape} at a point of {dim} dimensions: give "
                f"({dim}, {dim}), or the diagonal ({dim},)."
            )
        return matrix

    def drift(self, x: Point, score: Point) -> jax.Array:
        r"""The operator on the constant fields: $A^\top \nabla \log \pi + \nabla \cdot A$, (dim,)."""

        def along(i, direction):
            return directional(lambda z: _row(self.at(z), i, direction), x, direction)[1]

        dim = x.shape[-1]
        divergence = jax.vmap(along)(jnp.arange(dim), jnp.eye(dim, dtype=x.dtype)).sum(axis=0)
        return _transposed_times(self.at(x), score) + divergence


def _times(field: jax.Array, matrix: jax.Array) -> jax.Array:
    """The matrix times fields with a last axis dim."""
    return field * matrix if matrix.ndim == 1 else field @ matrix.T


def _transposed_times(matrix: jax.Array, vector: Point) -> jax.Array:
    return matrix * vector if matrix.ndim == 1 else vector @ matrix


def _row(matrix: jax.Array, i: jax.Array, unit: jax.Array) -> jax.Array:
    """The row `i` of the matrix, `unit` being that of the identity."""
    return matrix * unit if matrix.ndim == 1 else matrix[i]
