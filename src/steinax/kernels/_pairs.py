import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import Point, Scalar
from ..operators import AbstractOperator, Langevin
from ._base import AbstractKernel
from ._heuristics import hyperparameter


class CoordinatePairs(AbstractKernel):
    r"""For sums of functions of one coordinate or of two: a kernel for each component of a field.

    The component $u_i$ of the field has the kernel

    $$ k_i(x, y) = \kappa_i \Bigl(1 + \frac1d \sum_{j \ne i} \kappa_j\Bigr), \qquad
       \kappa_j = \exp\Bigl(-\frac{(x_j - y_j)^2}{2 \ell^2}\Bigr) , $$

    so that it varies along $x_i$, and with one other coordinate. A kernel of the distance between whole
    points must learn all interactions at once, which takes draws that grow exponentially with the
    dimension; these do not.

    Args:
        length_scale: $\ell$, in coordinates of variance 1.

    >>> import jax.numpy as jnp
    >>> kernel = CoordinatePairs(1.0)
    >>> float(kernel(jnp.zeros(2), jnp.zeros(2)))  # the sum of all k_i
    3.0
    """

    length_scale: Scalar = eqx.field(converter=hyperparameter, default=1.0)

    def __call__(self, x: Point, y: Point) -> jax.Array:
        """The sum of the kernels of all components."""
        return jnp.sum(self._components(x, y))

    def closed_form(
        self, operator: AbstractOperator, x: Point, score_x: Point, y: Point, score_y: Point
    ) -> jax.Array | None:
        r"""$\sum_i (\partial_{x_i} + s_{x,i}) (\partial_{y_i} + s_{y,i})\, k_i$.

        With $a_i \kappa_i$ the same of $\kappa_i$ it is $\sum_i a_i k_i$, summed coordinate by coordinate in
        three sums: over many pairs of points no array holds a number for each pair and coordinate.
        """
        if not isinstance(operator, Langevin):
            raise NotImplementedError("CoordinatePairs is for fields: use operator=Langevin().")
        rate, dim = 1 / self.length_scale**2, x.shape[-1]
        own = inner = both = jnp.zeros((), x.dtype)  # of kappa, of a kappa, of a kappa^2
        for i in range(dim):
            apart, s, t = x[i] - y[i], score_x[i], score_y[i]
            step = rate * apart
            kappa = jnp.exp(-0.5 * step * apart)
            a = (rate - step**2 + step * (s - t) + s * t) * kappa
            own, inner, both = own + kappa, inner + a, both + a * kappa
        return (1 + own / dim) * inner - both / dim

    def _components(self, x: Point, y: Point) -> jax.Array:
        own = jnp.exp(-0.5 * ((x - y) / self.length_scale) ** 2)
        return own * (1 + (jnp.sum(own) - own) / x.shape[-1])
