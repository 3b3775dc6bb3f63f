import abc

import equinox as eqx
import jax

from .._types import Point
from ..operators import AbstractOperator, ScaledOperator


class AbstractKernel(eqx.Module):
    r"""A positive definite kernel $k(x, y)$, written for one pair of points.

    Kernels add and multiply: `SquaredExponential() + Matern52()`. The Stein kernel of any of them
    comes by automatic differentiation, unless `closed_form` gives it.

    >>> import jax.numpy as jnp
    >>> from steinax import Langevin
    >>> class Linear(AbstractKernel):
    ...     def __call__(self, x, y):
    ...         return x @ y
    >>> x = jnp.array([1.0, 2.0])
    >>> float(Linear().stein(Langevin(), x, -x, x, -x))  # d - 2 |x|^2 + |x|^4
    17.0
    """

    @abc.abstractmethod
    def __call__(self, x: Point, y: Point) -> jax.Array:
        """The value $k(x, y)$."""

    def closed_form(
        self, operator: AbstractOperator, x: Point, score_x: Point, y: Point, score_y: Point
    ) -> jax.Array | None:
        """The Stein kernel under this operator in closed form, or None where there is none."""
        return None

    def stein(
        self, operator: AbstractOperator, x: Point, score_x: Point, y: Point, score_y: Point
    ) -> jax.Array:
        r"""The Stein kernel $k_0(x, y) = \mathcal{L}_x \mathcal{L}_y k(x, y)$.

        Every $k_0(\cdot, y)$ has mean zero under the target, and $k_0$ is positive definite.
        """
        if isinstance(operator, ScaledOperator):
            inner = self.stein(operator.operator, x, score_x, y, score_y)
            return operator.factor**2 * inner
        closed = self.closed_form(operator, x, score_x, y, score_y)
        if closed is not None:
            return closed
        return autodiff_stein(self, operator, x, score_x, y, score_y)

    def __add__(self, other: "AbstractKernel") -> "AbstractKernel":
        return Sum(self, other)

    def __mul__(self, other: "AbstractKernel") -> "AbstractKernel":
        return Product(self, other)


def autodiff_stein(
    kernel: AbstractKernel,
    operator: AbstractOperator,
    x: Point,
    score_x: Point,
    y: Point,
    score_y: Point,
) -> jax.Array:
    """The Stein kernel of any kernel under any operator, by automatic differentiation."""
    return operator(operator.representer(kernel, y, score_y), x, score_x)


class Sum(AbstractKernel):
    """The sum of two kernels; its Stein kernel is the sum of theirs.

    >>> import jax.numpy as jnp
    >>> from steinax.kernels import Matern52, SquaredExponential
    >>> kernel = SquaredExponential(1.0) + Matern52(2.0)
    >>> float(kernel(jnp.zeros(2), jnp.zeros(2)))
    2.0
    """

    left: AbstractKernel
    right: AbstractKernel

    def __call__(self, x: Point, y: Point) -> jax.Array:
        return self.left(x, y) + self.right(x, y)

    def closed_form(
        self, operator: AbstractOperator, x: Point, score_x: Point, y: Point, score_y: Point
    ) -> jax.Array:
        left = self.left.stein(operator, x, score_x, y, score_y)
        return left + self.right.stein(operator, x, score_x, y, score_y)


class Product(AbstractKernel):
    """The product of two kernels; its Stein kernel comes by automatic differentiation.

    >>> import jax.numpy as jnp
    >>> from steinax.kernels import DampedGaussian, Matern52
    >>> kernel = DampedGaussian(0.1, 1.0) * Matern52(2.0)
    >>> float(kernel(jnp.zeros(2), jnp.zeros(2)))
    1.0
    """

    left: AbstractKernel
    right: AbstractKernel

    def __call__(self, x: Point, y: Point) -> jax.Array:
        return self.left(x, y) * self.right(x, y)
