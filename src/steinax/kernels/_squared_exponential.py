import equinox as eqx
import jax
import jax.numpy as jnp

from ._heuristics import Hyperparameter, MedianHeuristic, hyperparameter
from ._radial import AbstractRadial


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

    def derivatives(self, q: jax.Array, order: int) -> tuple[jax.Array, ...]:
        rate = -0.5 / self.length_scale**2
        phi = jnp.exp(rate * q)
        return tuple(rate**n * phi for n in range(order + 1))
