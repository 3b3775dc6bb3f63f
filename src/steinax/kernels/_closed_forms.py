"""Kernels of the distance or the inner product, with Stein kernels in closed form."""

import abc
from math import comb
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._numerics import namespace
from .._types import AnyArray, Point
from ..operators import AbstractOperator, Langevin, ScalarLangevin
from ._base import (
    AbstractKernel,
    Hyperparameter,
    KernelProduct,
    MedianHeuristic,
    PairProducts,
    hyperparameter,
)


class AbstractRadial(AbstractKernel):
    r"""A kernel $k(x, y) = \varphi(\|x - y\|^2)$ of the squared distance $q$.

    A subclass needs only `derivatives`, $\varphi, \varphi', \varphi'', \ldots$ in $q$; both Stein
    kernels follow in closed form and cost a few matrix products for many pairs.

    >>> class Exponential(AbstractRadial):
    ...     def derivatives(self, q, order):
    ...         return tuple((-1.0) ** n * jnp.exp(-q) for n in range(order + 1))
    >>> round(float(Exponential()(jnp.zeros(1), jnp.ones(1))), 4)
    0.3679
    """

    @abc.abstractmethod
    def derivatives(self, q: AnyArray, order: int) -> tuple[AnyArray, ...]:
        r"""Compute $\varphi(q), \varphi'(q), \ldots, \varphi^{(\text{order})}(q)$."""

    def __call__(self, x: Point, y: Point) -> jax.Array:
        return _profile((self, jnp.sum((x - y) ** 2)), order=0)

    def from_products(self, operator: AbstractOperator, pairs: PairProducts) -> AnyArray | None:
        match operator:
            case Langevin():
                return self._first_order(pairs)
            case ScalarLangevin():
                return self._second_order(pairs)
        return None

    def _first_order(self, pairs: PairProducts) -> AnyArray:
        r"""Compute $-4\varphi'' q - 2 d \varphi' + 2\varphi'(u_y - u_x) + \varphi\, s_x \cdot s_y$.

        Here $u_x = (x - y) \cdot s_x$ and $u_y = (x - y) \cdot s_y$.
        """
        q = pairs.squared_distance
        phi, phi1, phi2 = self.derivatives(q, 2)
        linear = phi1 * (pairs.crossed - pairs.xs - (pairs.yt + pairs.dim))
        return 2 * (linear - 2 * (phi2 * q)) + phi * pairs.st

    def _second_order(self, pairs: PairProducts) -> AnyArray:
        r"""Compute $4 A'' q + 2 d A' + 2 A' (u_x - u_y) - 4 \varphi'' u_x u_y - 2 \varphi' s_x \cdot s_y$.

        Here $A = 4 \varphi'' q + 2 d \varphi'$ is the Laplacian, $\mathcal{L}_y k = A - 2 \varphi' u_y$.
        """
        d, q = pairs.dim, pairs.squared_distance
        along_x, along_y = pairs.xs - pairs.ys, pairs.xt - pairs.yt
        _, phi1, phi2, phi3, phi4 = self.derivatives(q, 4)
        a1 = 4 * phi3 * q + (4 + 2 * d) * phi2
        a2_q = 4 * phi4 * q * q + (8 + 2 * d) * phi3 * q
        value = 4 * a2_q + 2 * a1 * (d + along_x - along_y)
        return value - 4 * phi2 * along_x * along_y - 2 * phi1 * pairs.st

    def __mul__(self, other: AbstractKernel) -> AbstractKernel:
        return (
            RadialProduct(self, other)
            if isinstance(other, AbstractRadial)
            else KernelProduct(self, other)
        )


@eqx.filter_custom_jvp
def _profile(kernel_and_q: tuple[AbstractRadial, jax.Array], *, order: int) -> jax.Array:
    """Evaluate the derivative of the given order; differentiable even at distance zero."""
    kernel, q = kernel_and_q
    return kernel.derivatives(q, order)[order]


@_profile.def_jvp
def _profile_jvp(primals: tuple, tangents: tuple, *, order: int) -> tuple[jax.Array, jax.Array]:
    """Differentiate `_profile` in the hyper-parameters and in q."""
    ((kernel, q),), ((kernel_tangent, q_tangent),) = primals, tangents

    def in_hyperparameters(kernel: AbstractRadial) -> jax.Array:
        return kernel.derivatives(q, order)[order]

    # `_profile` again, so that a second differentiation uses this rule too
    value = _profile((kernel, q), order=order)
    _, change = eqx.filter_jvp(in_hyperparameters, (kernel,), (kernel_tangent,))
    change = jnp.zeros_like(value) if change is None else change
    if q_tangent is not None:
        change = change + _profile((kernel, q), order=order + 1) * q_tangent
    return value, change


class RadialProduct(AbstractRadial):
    """The product of two radial kernels, which is radial: its derivatives follow from the Leibniz rule.

    >>> import jax.numpy as jnp
    >>> from steinax.kernels import InverseMultiquadric, SquaredExponential
    >>> kernel = SquaredExponential(1.0) * InverseMultiquadric(2.0)
    >>> float(kernel(jnp.zeros(2), jnp.zeros(2)))
    1.0
    """

    left: AbstractRadial
    right: AbstractRadial

    def derivatives(self, q: AnyArray, order: int) -> tuple[AnyArray, ...]:
        left, right = self.left.derivatives(q, order), self.right.derivatives(q, order)
        return tuple(
            sum(comb(n, i) * left[i] * right[n - i] for i in range(n + 1))  # type: ignore[misc]
            for n in range(order + 1)
        )


class SquaredExponential(AbstractRadial):
    r"""The squared exponential (Gaussian) kernel $\exp(-\|x - y\|^2 / 2 \ell^2)$.

    Args:
        length_scale: $\ell$, a number or a heuristic.

    >>> import jax.numpy as jnp
    >>> round(float(SquaredExponential(1.0)(jnp.zeros(1), jnp.ones(1))), 4)
    0.6065
    """

    length_scale: Hyperparameter = eqx.field(
        converter=hyperparameter, default_factory=MedianHeuristic
    )

    def derivatives(self, q: AnyArray, order: int) -> tuple[AnyArray, ...]:
        rate = self._rate
        phi = namespace(q).exp(rate * q)
        return tuple(rate**n * phi for n in range(order + 1))

    @property
    def _rate(self) -> Any:
        return -0.5 / self.length_scale**2

    def _first_order(self, pairs: PairProducts) -> AnyArray:
        r"""Compute $e^{r q}\, (s_x \cdot s_y + 2 r (x \cdot s_y + y \cdot s_x - u) - 4 r^2 q)$.

        Here $u = x \cdot s_x + y \cdot s_y + d$. Apart from terms of a single point the bracket is bilinear,
        so that one matrix product gives it, and one the exponent.
        """
        xp, rate = pairs.xp, self._rate
        exponent = pairs.x @ (-2 * rate * pairs.y).T
        exponent += rate * pairs.xx
        exponent += rate * pairs.yy
        right = (2 * rate * pairs.t + 8 * rate**2 * pairs.y, 2 * rate * pairs.y + pairs.t)
        matrix = xp.concat((pairs.x, pairs.s), axis=-1) @ xp.concat(right, axis=-1).T
        matrix -= 2 * rate * pairs.xs + 4 * rate**2 * pairs.xx
        matrix -= 2 * rate * (pairs.yt + pairs.dim) + 4 * rate**2 * pairs.yy
        matrix *= xp.exp(exponent)
        return matrix


# Derivatives of Matern kernels diverge at distance zero, where only their products with the
# distance are used, which vanish: this lower bound on the distance avoids 0 * infinity.
CLOSEST = 1e-12


class Matern32(AbstractRadial):
    r"""The Matérn kernel of smoothness 3/2, $(1 + t) e^{-t}$ with $t = \sqrt3 \|x - y\| / \ell$.

    Once differentiable in each argument: enough for the first-order operator, not for the second.

    Args:
        length_scale: $\ell$, a number or a heuristic.

    >>> import jax.numpy as jnp
    >>> round(float(Matern32(1.0)(jnp.zeros(1), jnp.ones(1))), 4)
    0.4834
    """

    length_scale: Hyperparameter = eqx.field(
        converter=hyperparameter, default_factory=MedianHeuristic
    )

    def derivatives(self, q: AnyArray, order: int) -> tuple[AnyArray, ...]:
        if order > 2:
            raise ValueError(
                "Matern32 is once differentiable in each argument, and the second-order operator "
                "needs two: use Matern52, or the first-order operator Langevin()."
            )
        xp = namespace(q)
        a2 = 3 / self.length_scale**2
        t = xp.sqrt(xp.maximum(a2 * q, CLOSEST**2))
        decay = xp.exp(-t)
        return ((1 + t) * decay, -a2 * decay / 2, a2**2 * decay / (4 * t))[: order + 1]


class Matern52(AbstractRadial):
    r"""The Matérn kernel of smoothness 5/2, $(1 + t + t^2/3) e^{-t}$ with $t = \sqrt5 \|x - y\| / \ell$.

    Args:
        length_scale: $\ell$, a number or a heuristic.

    >>> import jax.numpy as jnp
    >>> round(float(Matern52(1.0)(jnp.zeros(1), jnp.ones(1))), 4)
    0.524
    """

    length_scale: Hyperparameter = eqx.field(
        converter=hyperparameter, default_factory=MedianHeuristic
    )

    def derivatives(self, q: AnyArray, order: int) -> tuple[AnyArray, ...]:
        xp = namespace(q)
        a2 = 5 / self.length_scale**2
        t = xp.sqrt(xp.maximum(a2 * q, CLOSEST**2))
        decay = xp.exp(-t)
        return (
            (1 + t + t**2 / 3) * decay,
            -a2 * (1 + t) * decay / 6,
            a2**2 * decay / 12,
            -(a2**3) * decay / (24 * t),
            a2**4 * (1 + t) * decay / (48 * t**3),
        )[: order + 1]


class InverseMultiquadric(AbstractRadial):
    r"""The inverse multiquadric kernel $(1 + \|x - y\|^2 / \ell^2)^{-\beta}$.

    Args:
        length_scale: $\ell$, a number or a heuristic.
        exponent: $\beta > 0$, one half by default, for which the Stein discrepancy of Gorham and
            Mackey (2017) detects non-convergence.

    >>> import jax.numpy as jnp
    >>> round(float(InverseMultiquadric(1.0)(jnp.zeros(1), jnp.ones(1))), 4)
    0.7071
    """

    length_scale: Hyperparameter = eqx.field(
        converter=hyperparameter, default_factory=MedianHeuristic
    )
    exponent: Hyperparameter = eqx.field(converter=hyperparameter, default=0.5)

    def derivatives(self, q: AnyArray, order: int) -> tuple[AnyArray, ...]:
        return _power_derivatives(q, 1 / self.length_scale**2, self.exponent, order)


class RationalQuadratic(AbstractRadial):
    r"""The rational quadratic kernel $(1 + \|x - y\|^2 / 2 \alpha \ell^2)^{-\alpha}$.

    A scale mixture of squared exponentials, which it becomes as $\alpha \to \infty$.

    Args:
        length_scale: $\ell$, a number or a heuristic.
        mixture: $\alpha > 0$.

    >>> import jax.numpy as jnp
    >>> round(float(RationalQuadratic(1.0, 1.0)(jnp.zeros(1), jnp.ones(1))), 4)
    0.6667
    """

    length_scale: Hyperparameter = eqx.field(
        converter=hyperparameter, default_factory=MedianHeuristic
    )
    mixture: Hyperparameter = eqx.field(converter=hyperparameter, default=1.0)

    def derivatives(self, q: AnyArray, order: int) -> tuple[AnyArray, ...]:
        rate = 0.5 / (self.mixture * self.length_scale**2)
        return _power_derivatives(q, rate, self.mixture, order)


def _power_derivatives(q: AnyArray, rate: Any, exponent: Any, order: int) -> tuple[AnyArray, ...]:
    r"""Compute derivatives of $(1 + a q)^{-\beta}$, each $-(\beta + n)\, a / (1 + a q)$ times the last."""
    base = 1 + rate * q
    xp = namespace(base)
    is_sqrt = xp is np and float(exponent) == 0.5  # the default; a square root is fast
    values = [1 / np.sqrt(base) if is_sqrt else xp.exp(-exponent * xp.log(base))]
    inverse = rate / base
    for n in range(order):
        values.append(-(exponent + n) * (values[-1] * inverse))
    return tuple(values)


class ExponentialDotProduct(AbstractKernel):
    r"""The kernel $\exp(x^\top y / \ell^2)$: polynomials of all degrees, high degrees penalised.

    Its space is spanned by all monomials, $x^\alpha$ with weight $\ell^{-2|\alpha|} / \alpha!$, so
    it is the limit of `Polynomial` as the degree grows. It is the squared exponential without the
    damping $\exp(-\|x\|^2 / 2\ell^2)$ far from the origin: for targets with tails as light as a
    Gaussian's nothing converges faster, and for heavy tails it is the wrong choice.

    Args:
        length_scale: $\ell$, a number or a heuristic.

    >>> import jax.numpy as jnp
    >>> round(float(ExponentialDotProduct(1.0)(jnp.ones(2), jnp.ones(2))), 4)
    7.3891
    """

    length_scale: Hyperparameter = eqx.field(
        converter=hyperparameter, default_factory=lambda: MedianHeuristic(4.0)
    )

    def __call__(self, x: Point, y: Point) -> jax.Array:
        return jnp.exp(x @ y / self.length_scale**2)

    def from_products(self, operator: AbstractOperator, pairs: PairProducts) -> AnyArray | None:
        r"""Evaluate the Stein kernels of first and second order in closed form.

        With $w = \ell^{-2}$, $u = x \cdot y$, $t = x \cdot s_x + y \cdot s_y$: first order
        $k\, [w d + w^2 u + w t + s_x \cdot s_y]$, second order $w k$ times
        $w^3 |x|^2 |y|^2 + 4 w^2 u + 2 w d + w^2 (|x|^2\, y \cdot s_x + |y|^2\, x \cdot s_y)
        + 2 w t + w\, (x \cdot s_y)(y \cdot s_x) + s_x \cdot s_y$.
        """
        rate, d = 1 / self.length_scale**2, pairs.dim
        u, t, scores = pairs.xy, pairs.xs + pairs.yt, pairs.st
        value = pairs.xp.exp(rate * u)
        if isinstance(operator, Langevin):
            return value * (rate * (d + rate * u + t) + scores)
        if isinstance(operator, ScalarLangevin):
            xx, yy, left, right = pairs.xx, pairs.yy, pairs.xt, pairs.ys
            third = rate * (4 * u + xx * right + yy * left) + rate**2 * xx * yy
            second = 2 * (d + t) + left * right
            return rate * value * (rate * (third + second) + scores)
        return None
