import abc
from math import comb

import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import Point
from ..operators import AbstractOperator, Langevin, ScalarLangevin
from ._base import AbstractKernel, Product


class AbstractRadial(AbstractKernel):
    r"""A kernel $k(x, y) = \varphi(\|x - y\|^2)$ of the squared distance $q$.

    A new one needs `derivatives` alone, $\varphi, \varphi', \varphi'', \ldots$ in $q$; both Stein
    kernels follow in closed form and cost a few matrix products over many pairs.

    >>> class Exponential(AbstractRadial):
    ...     def derivatives(self, q, order):
    ...         return tuple((-1.0) ** n * jnp.exp(-q) for n in range(order + 1))
    >>> round(float(Exponential()(jnp.zeros(1), jnp.ones(1))), 4)
    0.3679
    """

    @abc.abstractmethod
    def derivatives(self, q: jax.Array, order: int) -> tuple[jax.Array, ...]:
        r"""The values $\varphi(q), \varphi'(q), \ldots, \varphi^{(\text{order})}(q)$."""

    def __call__(self, x: Point, y: Point) -> jax.Array:
        return _profile((self, jnp.sum((x - y) ** 2)), order=0)

    def closed_form(
        self, operator: AbstractOperator, x: Point, score_x: Point, y: Point, score_y: Point
    ) -> jax.Array | None:
        match operator:
            case Langevin():
                return self._first_order(x, score_x, y, score_y)
            case ScalarLangevin():
                return self._second_order(x, score_x, y, score_y)
        return None

    def _first_order(self, x: Point, score_x: Point, y: Point, score_y: Point) -> jax.Array:
        r"""$-4\varphi'' q - 2 d \varphi' + 2\varphi'(u_y - u_x) + \varphi\, s_x \cdot s_y$."""
        q, along_x, along_y = _products(x, score_x, y, score_y)
        phi, phi1, phi2 = self.derivatives(q, 2)
        linear = 2 * phi1 * (along_y - along_x - x.shape[-1])
        return linear - 4 * phi2 * q + phi * (score_x @ score_y)

    def _second_order(self, x: Point, score_x: Point, y: Point, score_y: Point) -> jax.Array:
        r"""$4 A'' q + 2 d A' + 2 A' (u_x - u_y) - 4 \varphi'' u_x u_y - 2 \varphi' s_x \cdot s_y$.

        Here $A = 4 \varphi'' q + 2 d \varphi'$ is the Laplacian, $\mathcal{L}_y k = A - 2 \varphi' u_y$.
        """
        d = x.shape[-1]
        q, along_x, along_y = _products(x, score_x, y, score_y)
        _, phi1, phi2, phi3, phi4 = self.derivatives(q, 4)
        a1 = 4 * phi3 * q + (4 + 2 * d) * phi2
        a2_q = 4 * phi4 * q * q + (8 + 2 * d) * phi3 * q
        free = 4 * a2_q + 2 * a1 * (d + along_x - along_y)
        return free - 4 * phi2 * along_x * along_y - 2 * phi1 * (score_x @ score_y)

    def __mul__(self, other: AbstractKernel) -> AbstractKernel:
        return (
            RadialProduct(self, other)
            if isinstance(other, AbstractRadial)
            else Product(self, other)
        )


@eqx.filter_custom_jvp
def _profile(kernel_and_q: tuple[AbstractRadial, jax.Array], *, order: int) -> jax.Array:
    """The derivative of the given order, itself differentiable, at distance zero too."""
    kernel, q = kernel_and_q
    return kernel.derivatives(q, order)[order]


@_profile.def_jvp
def _profile_jvp(primals: tuple, tangents: tuple, *, order: int) -> tuple[jax.Array, jax.Array]:
    ((kernel, q),), ((kernel_tangent, q_tangent),) = primals, tangents

    def in_hyperparameters(kernel: AbstractRadial) -> jax.Array:
        return kernel.derivatives(q, order)[order]

    # the value by the rule again: it is what a second differentiation goes through
    value = _profile((kernel, q), order=order)
    _, change = eqx.filter_jvp(in_hyperparameters, (kernel,), (kernel_tangent,))
    change = jnp.zeros_like(value) if change is None else change
    if q_tangent is not None:
        change = change + _profile((kernel, q), order=order + 1) * q_tangent
    return value, change


class RadialProduct(AbstractRadial):
    """The product of two radial kernels, radial again: derivatives by the rule of Leibniz.

    >>> import jax.numpy as jnp
    >>> from steinax.kernels import InverseMultiquadric, SquaredExponential
    >>> kernel = SquaredExponential(1.0) * InverseMultiquadric(2.0)
    >>> float(kernel(jnp.zeros(2), jnp.zeros(2)))
    1.0
    """

    left: AbstractRadial
    right: AbstractRadial

    def derivatives(self, q: jax.Array, order: int) -> tuple[jax.Array, ...]:
        left, right = self.left.derivatives(q, order), self.right.derivatives(q, order)
        return tuple(
            sum(comb(n, i) * left[i] * right[n - i] for i in range(n + 1))  # type: ignore[misc]
            for n in range(order + 1)
        )


def _products(x: Point, score_x: Point, y: Point, score_y: Point) -> tuple[jax.Array, ...]:
    r"""The distance $q$, and $u_x = (x - y) \cdot s_x$, $u_y = (x - y) \cdot s_y$, by inner products.

    Mapped over pairs these become matrix products. They are polarised ($q = |x|^2 + |y|^2 - 2 x
    \cdot y$), which is accurate for standardised draws.
    """
    size = x @ x + y @ y
    q = size - 2 * (x @ y)
    q = jnp.where(q > 8 * jnp.finfo(q.dtype).eps * size, q, 0.0)  # the rest is rounding error
    return q, x @ score_x - y @ score_x, x @ score_y - y @ score_y
