from math import comb

import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import Point, Points, PyTree
from ..families import AbstractLinearFamily
from ..families._base import check_potentials
from ..families._polynomial import layers
from ..operators import AbstractOperator, SphereLangevin


class SphericalPolynomial(AbstractLinearFamily):
    r"""Polynomials of total degree at most `degree` on the sphere, each once.

    As $|x|^2 = 1$, a monomial of lower degree is a sum of those of two degrees more, and `Polynomial` has
    columns that depend on each other. The monomials of the two highest degrees span the same functions; one
    of even degree is left out, because the even ones make up a constant. What is left are as many functions
    as there are spherical harmonics of degrees 1 to `degree`.

    Args:
        degree: the highest total degree, 1 or more.
        operator: `SphereLangevin(on_fields=False)`.

    >>> SphericalPolynomial(4).size(None, 3)  # (4 + 1)^2 - 1 harmonics
    24
    """

    degree: int = eqx.field(static=True, default=2)
    operator: AbstractOperator = eqx.field(default_factory=lambda: SphereLangevin(on_fields=False))

    def __check_init__(self) -> None:
        if self.degree < 1:
            raise ValueError(f"SphericalPolynomial({self.degree}): the degree must be 1 or more.")
        check_potentials(self)

    def setup(self, x: Points, score: Points) -> None:
        return None

    def size(self, state: PyTree, dim: int) -> int:
        return sum(comb(dim + j - 1, j) for j in (self.degree, self.degree - 1)) - 1

    def basis(self, state: PyTree, x: Point) -> jax.Array:
        values, scaled = x, [jnp.ones(1, x.dtype), x]
        for layer in layers(x.shape[0], self.degree):
            values = values[layer.parent] * x[layer.last]
            scaled.append(values * jnp.asarray(layer.norm, x.dtype))
        lower, upper = scaled[-2:]
        if self.degree % 2 == 0:
            return jnp.concatenate([lower, upper[1:]])
        return jnp.concatenate([lower[1:], upper])

    @property
    def is_parametric(self) -> bool:
        return True
