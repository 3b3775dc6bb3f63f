import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import AnyArray, Point
from ..operators import AbstractOperator, Langevin
from ._base import AbstractKernel, Hyperparameter, MedianHeuristic, Products, hyperparameter


class DampedGaussian(AbstractKernel):
    r"""The kernel of the paper, a Gaussian damped far from the origin.

    $$ k(x, y) = \frac{\exp(-\|x - y\|^2 / 2 \alpha_2^2)}{1 + \alpha_1 (\|x\|^2 + \|y\|^2)} . $$

    Args:
        damping: $\alpha_1 \ge 0$.
        length_scale: $\alpha_2$, a number or a heuristic.

    >>> import jax.numpy as jnp
    >>> round(float(DampedGaussian(0.5, 1.0)(jnp.zeros(1), jnp.ones(1))), 4)
    0.4044
    """

    damping: Hyperparameter = eqx.field(converter=hyperparameter, default=0.01)
    length_scale: Hyperparameter = eqx.field(
        converter=hyperparameter, default_factory=MedianHeuristic
    )

    def __call__(self, x: Point, y: Point) -> jax.Array:
        q = jnp.sum((x - y) ** 2)
        return jnp.exp(-q / (2 * self.length_scale**2)) / self._damper(x, y)

    def from_products(self, operator: AbstractOperator, pairs: Products) -> AnyArray | None:
        if not isinstance(operator, Langevin):
            return None
        q = pairs.squared_distance
        rate = 1 / self.length_scale**2
        damper = 1 + self.damping * (pairs.xx + pairs.yy)
        c = 2 * self.damping / damper
        cross, own = pairs.crossed, pairs.xs + pairs.yt
        inner = 2 * c**2 * pairs.xy - (c + rate) * rate * q + pairs.dim * rate
        inner = inner - c * cross - rate * (cross - own) + pairs.st
        return inner * pairs.xp.exp(-rate * q / 2) / damper

    def _damper(self, x: Point, y: Point) -> jax.Array:
        return 1 + self.damping * (jnp.sum(x**2) + jnp.sum(y**2))
