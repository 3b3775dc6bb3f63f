import equinox as eqx
import jax
import jax.numpy as jnp

from ._heuristics import Hyperparameter, MedianHeuristic, hyperparameter
from ._radial import AbstractRadial


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

    def derivatives(self, q: jax.Array, order: int) -> tuple[jax.Array, ...]:
        return _power_derivatives(q, jnp.asarray(1 / self.length_scale**2), self.exponent, order)


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

    def derivatives(self, q: jax.Array, order: int) -> tuple[jax.Array, ...]:
        rate = jnp.asarray(0.5 / (self.mixture * self.length_scale**2))
        return _power_derivatives(q, rate, self.mixture, order)


def _power_derivatives(
    q: jax.Array, rate: Hyperparameter, exponent: Hyperparameter, order: int
) -> tuple[jax.Array, ...]:
    r"""Derivatives of $(1 + a q)^{-\beta}$: each brings down $-(\beta + n)\, a / (1 + a q)$."""
    base = 1 + rate * q
    values = [jnp.exp(-exponent * jnp.log(base))]
    for n in range(order):
        values.append(-values[-1] * (exponent + n) * rate / base)
    return tuple(values)
