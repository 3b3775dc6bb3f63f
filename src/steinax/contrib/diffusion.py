"""The Stein operator of a diffusion with a given matrix field."""

from collections.abc import Callable
from typing import Any, ClassVar, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..operators import AbstractOperator, Langevin

type Function = Callable[[jax.Array], jax.Array]
type PairFunction = Callable[[jax.Array, jax.Array], jax.Array]
type Array = Any  # a jax or NumPy array


class GrowingMatrix(eqx.Module):
    r"""The matrix $A(x) = (1 + r |x|^2)\, I$, for tails as heavy as those of Student's $t$.

    For $t$ with $\nu$ degrees of freedom and scale 1, $r = 1 / \nu$ makes $A \nabla \log \pi$ linear in $x$.

    Args:
        rate: $r$, positive.

    >>> GrowingMatrix(0.5)(jnp.array([1.0, 1.0])).tolist()
    [2.0, 2.0]
    """

    rate: Any

    def __init__(self, rate: float):
        if not rate > 0:
            raise ValueError(f"GrowingMatrix({rate}): the rate must be positive.")
        self.rate = np.asarray(rate, np.float64)

    def __call__(self, x: Array) -> jax.Array:
        """Evaluate the diagonal at one point, (dim,)."""
        return jnp.full(x.shape, 1 + jnp.asarray(self.rate, x.dtype) * jnp.sum(x**2))


class _Field(eqx.Module):
    """A matrix field given by a plain function of a point, static under compilation."""

    function: Function = eqx.field(static=True)

    def __call__(self, x: Array) -> jax.Array:
        return self.function(jnp.asarray(x))


def _as_matrix(matrix: Any) -> Any:
    """Convert a constant matrix to an array leaf, and a plain function to a module."""
    if isinstance(matrix, eqx.Module):
        return matrix
    if callable(matrix):
        return _Field(cast(Function, matrix))
    array = np.asarray(matrix, np.float64)
    if array.ndim not in (1, 2) or (array.ndim == 2 and array.shape[0] != array.shape[1]):
        raise ValueError(
            f"Diffusion: a matrix of shape {array.shape}: give (dim, dim), the diagonal (dim,), or a "
            "function of a point that gives one of them."
        )
    if not np.all(np.isfinite(array)):
        raise ValueError("Diffusion: the matrix has entries that are not finite: replace them.")
    return array


class Diffusion(AbstractOperator):
    r"""The Stein operator of a diffusion with a matrix field $A(x)$, on fields or on potentials.

    $$ \mathcal{L} u = \nabla \cdot (A u) + A u \cdot \nabla \log \pi, \qquad
       \mathcal{L} v = \nabla \cdot (A \nabla v) + A \nabla v \cdot \nabla \log \pi $$

    See Gorham, Duncan, Vollmer and Mackey (2019). It has mean zero for every smooth $A$ that grows more
    slowly than the density falls; with $A = 1$ it is `Langevin` or `ScalarLangevin`. A matrix that is not
    symmetric is allowed. $A$ is a function of the standardised draws, as $u$ is.

    Args:
        matrix: $A$. A constant of shape (dim, dim), or its diagonal (dim,), or a function of a point that
            gives either, such as `GrowingMatrix`.
        on_fields: whether it acts on vector fields rather than on potentials.

    >>> x = jnp.array([1.0, 2.0])
    >>> operator = Diffusion(lambda x: 1 + x**2, on_fields=False)
    >>> float(operator(lambda x: jnp.sum(x), x, -x))  # sum of 2 x - x (1 + x^2)
    -6.0
    """

    references: ClassVar[tuple[str, ...]] = ("gorham2019measuring",)
    matrix: Any = eqx.field(converter=_as_matrix)
    on_fields: bool = eqx.field(static=True, default=True)

    @property
    def acts_on_fields(self) -> bool:
        """Whether it acts on vector fields rather than on potentials."""
        return self.on_fields

    def __call__(self, u: Function, x: Array, score: Array) -> jax.Array:
        """Evaluate the operator on `u` at one point."""
        if self.on_fields:
            return Langevin()(lambda z: _times(u(z), self.at(z)), x, score)

        def flux(z: jax.Array, unit: jax.Array) -> jax.Array:  # one component of A grad u
            return _along(u, z, _transposed_times(self.at(z), unit))

        divergence = jax.vmap(lambda unit: _along(lambda z: flux(z, unit), x, unit))(_units(x))
        return divergence.sum(axis=0) + _along(u, x, _transposed_times(self.at(x), score))

    def representer(self, kernel: PairFunction, y: Array, score: Array) -> Function:
        """Apply the operator to a kernel's second argument, giving a function of the first."""
        if not self.on_fields:
            return lambda x: self(lambda z: kernel(x, z), y, score)
        matrix, drift = self.at(y), self.drift(y, score)

        def field(x: jax.Array) -> jax.Array:
            value, gradient = jax.value_and_grad(kernel, argnums=1)(x, y)
            return _transposed_times(matrix, gradient) + value * drift

        return field

    def at(self, x: Array) -> jax.Array:
        """Evaluate the matrix at one point, (dim, dim), or its diagonal, (dim,)."""
        matrix = self.matrix(x) if callable(self.matrix) else self.matrix
        matrix, dim = jnp.asarray(matrix, x.dtype), x.shape[-1]
        if matrix.shape not in ((dim,), (dim, dim)):
            raise ValueError(
                f"Diffusion: the matrix has shape {matrix.shape} at a point of {dim} dimensions: give "
                f"({dim}, {dim}), or the diagonal ({dim},)."
            )
        return matrix

    def drift(self, x: Array, score: Array) -> jax.Array:
        r"""Apply the operator to constant fields: $A^\top \nabla \log \pi + \nabla \cdot A$, (dim,)."""

        def along(unit: jax.Array) -> jax.Array:
            return _along(lambda z: _transposed_times(self.at(z), unit), x, unit)

        return _transposed_times(self.at(x), score) + jax.vmap(along)(_units(x)).sum(axis=0)


def _units(x: Array) -> jax.Array:
    """Return the unit vectors of all coordinates, (dim, dim)."""
    return jnp.eye(x.shape[-1], dtype=x.dtype)


def _along(u: Function, x: Array, direction: Array) -> jax.Array:
    """Compute the derivative of `u` at `x` along a direction."""
    return jax.jvp(u, (x,), (direction,))[1]


def _times(field: jax.Array, matrix: jax.Array) -> jax.Array:
    """Multiply fields with a last axis of dim by a matrix."""
    return field * matrix if matrix.ndim == 1 else field @ matrix.T


def _transposed_times(matrix: jax.Array, vector: Array) -> jax.Array:
    """Multiply a vector by the transposed matrix; a unit vector gives a row of the matrix."""
    return matrix * vector if matrix.ndim == 1 else vector @ matrix
