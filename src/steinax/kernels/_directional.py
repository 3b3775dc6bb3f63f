import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import AnyArray, Point, Scalar
from ..operators import AbstractOperator, Langevin
from ._base import AbstractKernel, Hyperparameter, MedianHeuristic, Products, hyperparameter


class Directional(AbstractKernel):
    r"""A squared exponential that looks closely along one direction, for functions that vary there.

    $$ k(x, y) = \exp\Bigl(-\frac{(a^\top (x - y))^2}{2 \ell_1^2} - \frac{\|x - y\|^2}{2 \ell^2}\Bigr) . $$

    In many dimensions no kernel can look closely everywhere, but an integrand often depends on one
    combination of the coordinates, such as a predictor of a regression.

    Args:
        direction: $a$, of length 1.
        along: $\ell_1$, the length-scale in that direction.
        length_scale: $\ell$, that of all directions, a number or a heuristic.

    >>> import jax.numpy as jnp
    >>> kernel = Directional(jnp.array([1.0, 0.0]), 1.0, 1e6)
    >>> round(float(kernel(jnp.zeros(2), jnp.array([1.0, 5.0]))), 4)
    0.6065
    """

    direction: Point
    along: Scalar = eqx.field(converter=hyperparameter, default=2.0)
    length_scale: Hyperparameter = eqx.field(
        converter=hyperparameter, default_factory=lambda: MedianHeuristic(2.0)
    )

    def __call__(self, x: Point, y: Point) -> jax.Array:
        narrow = (self.direction @ (x - y) / self.along) ** 2
        return jnp.exp(-0.5 * (narrow + jnp.sum((x - y) ** 2) / self.length_scale**2))

    def from_products(self, operator: AbstractOperator, pairs: Products) -> AnyArray | None:
        r"""$k\,[\operatorname{tr} M - |M \Delta|^2 + (s_x - s_y) \cdot M \Delta + s_x \cdot s_y]$.

        Here $\Delta = x - y$ and $M = 1 / \ell^2 + a a^\top / \ell_1^2$.
        """
        if not isinstance(operator, Langevin):
            return None
        wide, narrow = 1 / self.length_scale**2, 1 / self.along**2
        q, (step, turn) = pairs.squared_distance, pairs.along(self.direction)
        moved = pairs.xs + pairs.yt - pairs.crossed
        inner = pairs.dim * wide + narrow + wide * moved + narrow * turn * step + pairs.st
        inner = inner - wide**2 * q - (2 * wide + narrow) * narrow * step**2
        return inner * pairs.xp.exp(-0.5 * (wide * q + narrow * step**2))
