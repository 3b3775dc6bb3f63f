import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._types import AnyArray, Point, Scalar
from ..operators import AbstractOperator, Langevin
from ._base import AbstractKernel, Products, hyperparameter


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

    def from_products(self, operator: AbstractOperator, pairs: Products) -> AnyArray | None:
        r"""$\sum_i (\partial_{x_i} + s_{x,i}) (\partial_{y_i} + s_{y,i})\, k_i$.

        With $a_i \kappa_i$ the same of $\kappa_i$ it is $\sum_i a_i k_i$, summed coordinate by coordinate in
        three sums: over many pairs of points no array holds a number for each pair and coordinate.
        """
        if not isinstance(operator, Langevin):
            raise NotImplementedError("CoordinatePairs is for fields: use operator=Langevin().")
        rate, dim = 1 / self.length_scale**2, pairs.dim
        if pairs.xp is np and pairs.x.ndim > 1:
            return _in_place(float(rate), pairs)
        own = inner = both = None  # of kappa, of a kappa, of a kappa^2
        for i in range(dim):
            x, s, y, t = pairs.coordinate(i)
            kappa = pairs.xp.exp(-0.5 * rate * (x - y) ** 2)
            # a = rate - step^2 + step (s - t) + s t, with step = rate (x - y)
            a = (rate - ((rate * x - s) - rate * y) * (rate * x - (rate * y - t))) * kappa
            if own is None:
                own, inner, both = kappa, a, a * kappa
            else:
                own, inner, both = own + kappa, inner + a, both + a * kappa
        return (1 + own / dim) * inner - both / dim

    def _components(self, x: Point, y: Point) -> jax.Array:
        own = jnp.exp(-0.5 * ((x - y) / self.length_scale) ** 2)
        return own * (1 + (jnp.sum(own) - own) / x.shape[-1])


TILE = 2**15  # numbers: six arrays of them stay in a core's own cache


def _in_place(rate: float, pairs: Products) -> np.ndarray:
    """The same sums over many pairs of points, in arrays that are used again for every coordinate."""
    x, s, y, t = (np.ascontiguousarray(one.T) for one in (pairs.x, pairs.s, pairs.y, pairs.t))
    scale, count = np.sqrt(0.5 * rate), y.shape[1]
    left, right = rate * x - s, rate * y - t
    matrix = np.empty((x.shape[1], count))
    for start in range(0, len(matrix), max(TILE // count, 1)):
        rows = slice(start, start + max(TILE // count, 1))
        own = np.ones_like(matrix[rows])
        inner, both = np.zeros_like(own), np.zeros_like(own)
        kappa, a, other = (np.empty_like(own) for _ in range(3))
        for i in range(len(x)):
            np.subtract(scale * x[i, rows, None], scale * y[i], out=kappa)
            np.multiply(kappa, kappa, out=kappa)
            np.exp(np.negative(kappa, out=kappa), out=kappa)
            np.subtract(left[i, rows, None], rate * y[i], out=a)
            np.subtract(rate * x[i, rows, None], right[i], out=other)
            a *= other
            np.subtract(rate, a, out=a)
            a *= kappa
            kappa /= len(x)
            own += kappa
            inner += a
            a *= kappa
            both += a
        np.multiply(own, inner, out=inner)
        np.subtract(inner, both, out=matrix[rows])
    return matrix
