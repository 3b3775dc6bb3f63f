import equinox as eqx
import jax
import jax.numpy as jnp

from ._heuristics import Hyperparameter, MedianHeuristic, hyperparameter
from ._radial import AbstractRadial

# Derivatives of Matern kernels diverge at distance zero, where only their products with the
# distance are used, and those vanish: this keeps 0 * infinity from being formed.
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

    def derivatives(self, q: jax.Array, order: int) -> tuple[jax.Array, ...]:
        if order > 2:
            raise ValueError(
                "Matern32 is once differentiable in each argument, and the second-order operator "
                "needs two: use Matern52, or the first-order operator Langevin()."
            )
        a2 = 3 / self.length_scale**2
        t = jnp.sqrt(jnp.maximum(a2 * q, CLOSEST**2))
        decay = jnp.exp(-t)
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

    def derivatives(self, q: jax.Array, order: int) -> tuple[jax.Array, ...]:
        a2 = 5 / self.length_scale**2
        t = jnp.sqrt(jnp.maximum(a2 * q, CLOSEST**2))
        decay = jnp.exp(-t)
        return (
            (1 + t + t**2 / 3) * decay,
            -a2 * (1 + t) * decay / 6,
            a2**2 * decay / 12,
            -(a2**3) * decay / (24 * t),
            a2**4 * (1 + t) * decay / (48 * t**3),
        )[: order + 1]
