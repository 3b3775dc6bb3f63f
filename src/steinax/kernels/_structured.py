"""Structured kernels: damped, along one direction, and sums over pairs of coordinates."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._types import AnyArray, Point, Scalar
from ..operators import AbstractOperator, Langevin
from ._base import AbstractKernel, Hyperparameter, MedianHeuristic, PairProducts, hyperparameter


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

    def from_products(self, operator: AbstractOperator, pairs: PairProducts) -> AnyArray | None:
        if not isinstance(operator, Langevin):
            return None
        q = pairs.squared_distance
        rate = 1 / self.length_scale**2
        damper = 1 + self.damping * (pairs.xx + pairs.yy)
        c = 2 * self.damping / damper
        cross, inner_own = pairs.crossed, pairs.xs + pairs.yt
        inner = 2 * c**2 * pairs.xy - (c + rate) * rate * q + pairs.dim * rate
        inner = inner - c * cross - rate * (cross - inner_own) + pairs.st
        return inner * pairs.xp.exp(-rate * q / 2) / damper

    def _damper(self, x: Point, y: Point) -> jax.Array:
        """Compute the denominator of the kernel."""
        return 1 + self.damping * (jnp.sum(x**2) + jnp.sum(y**2))


class Directional(AbstractKernel):
    r"""A squared exponential with a short length-scale along one direction.

    $$ k(x, y) = \exp\Bigl(-\frac{(a^\top (x - y))^2}{2 \ell_1^2} - \frac{\|x - y\|^2}{2 \ell^2}\Bigr) . $$

    In many dimensions no kernel can have a short length-scale everywhere, but an integrand often depends
    on one combination of the coordinates, such as a predictor of a regression.

    Args:
        direction: $a$, of length 1.
        along: $\ell_1$, the length-scale in that direction.
        length_scale: $\ell$, the length-scale of all directions, a number or a heuristic.

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

    def from_products(self, operator: AbstractOperator, pairs: PairProducts) -> AnyArray | None:
        r"""Compute $k\,[\operatorname{tr} M - |M \Delta|^2 + (s_x - s_y) \cdot M \Delta + s_x \cdot s_y]$.

        Here $\Delta = x - y$ and $M = 1 / \ell^2 + a a^\top / \ell_1^2$.
        """
        if not isinstance(operator, Langevin):
            return None
        wide, narrow = 1 / self.length_scale**2, 1 / self.along**2
        q, (step, score_step) = pairs.squared_distance, pairs.along(self.direction)
        drift = pairs.xs + pairs.yt - pairs.crossed  # (s - t) . (x - y)
        inner = pairs.dim * wide + narrow + wide * drift + narrow * score_step * step + pairs.st
        inner = inner - wide**2 * q - (2 * wide + narrow) * narrow * step**2
        return inner * pairs.xp.exp(-0.5 * (wide * q + narrow * step**2))


class CoordinatePairs(AbstractKernel):
    r"""A kernel for each component of a field, for sums of functions of one or two coordinates.

    The component $u_i$ of the field has the kernel

    $$ k_i(x, y) = \kappa_i \Bigl(1 + \frac1d \sum_{j \ne i} \kappa_j\Bigr), \qquad
       \kappa_j = \exp\Bigl(-\frac{(x_j - y_j)^2}{2 \ell^2}\Bigr) , $$

    so that it varies with $x_i$ and one other coordinate. A kernel of the distance between whole points
    must learn all interactions at once, and needs a number of draws that grows exponentially with the
    dimension; this one does not.

    Args:
        length_scale: $\ell$, in coordinates of variance 1.

    >>> import jax.numpy as jnp
    >>> kernel = CoordinatePairs(1.0)
    >>> float(kernel(jnp.zeros(2), jnp.zeros(2)))  # the sum of all k_i
    3.0
    """

    length_scale: Scalar = eqx.field(converter=hyperparameter, default=1.0)

    def __call__(self, x: Point, y: Point) -> jax.Array:
        """Evaluate the sum of the kernels of all components."""
        return jnp.sum(self._components(x, y))

    def from_products(self, operator: AbstractOperator, pairs: PairProducts) -> AnyArray | None:
        r"""Compute $\sum_i (\partial_{x_i} + s_{x,i}) (\partial_{y_i} + s_{y,i})\, k_i$.

        It is $\sum_i a_i k_i$, where the operator gives $a_i \kappa_i$ for $\kappa_i$. Three sums are
        accumulated coordinate by coordinate, without an array of (n, m, dim).
        """
        if not isinstance(operator, Langevin):
            raise NotImplementedError("CoordinatePairs is for fields: use operator=Langevin().")
        rate, dim = 1 / self.length_scale**2, pairs.dim
        if pairs.xp is np and pairs.x.ndim > 1:
            return _coordinate_pairs_numpy(float(rate), pairs)
        kappas = inner = both = 0.0  # sums of kappa, of a kappa, of a kappa^2
        for i in range(dim):
            x, s, y, t = pairs.coordinate(i)
            kappa = pairs.xp.exp(-0.5 * rate * (x - y) ** 2)
            # a = rate - step^2 + step (s - t) + s t, with step = rate (x - y)
            a = (rate - ((rate * x - s) - rate * y) * (rate * x - (rate * y - t))) * kappa
            kappas, inner, both = kappas + kappa, inner + a, both + a * kappa
        return (1 + kappas / dim) * inner - both / dim

    def _components(self, x: Point, y: Point) -> jax.Array:
        """Evaluate the kernels of all components: (dim,)."""
        kappa = jnp.exp(-0.5 * ((x - y) / self.length_scale) ** 2)
        return kappa * (1 + (jnp.sum(kappa) - kappa) / x.shape[-1])


TILE = 2**15  # entries: six arrays of this size stay in the cache of a core


def _coordinate_pairs_numpy(rate: float, pairs: PairProducts) -> np.ndarray:
    """Compute the Stein kernel matrix of `CoordinatePairs` in arrays reused for every coordinate."""
    x, s, y, t = (np.ascontiguousarray(array.T) for array in (pairs.x, pairs.s, pairs.y, pairs.t))
    scale, count = np.sqrt(0.5 * rate), y.shape[1]
    left, right = rate * x - s, rate * y - t
    matrix = np.empty((x.shape[1], count))
    for start in range(0, len(matrix), max(TILE // count, 1)):
        rows = slice(start, start + max(TILE // count, 1))
        kappas = np.ones_like(matrix[rows])
        inner, both = np.zeros_like(kappas), np.zeros_like(kappas)
        kappa, a, factor = (np.empty_like(kappas) for _ in range(3))
        for i in range(len(x)):
            np.subtract(scale * x[i, rows, None], scale * y[i], out=kappa)
            np.multiply(kappa, kappa, out=kappa)
            np.exp(np.negative(kappa, out=kappa), out=kappa)
            np.subtract(left[i, rows, None], rate * y[i], out=a)
            np.subtract(rate * x[i, rows, None], right[i], out=factor)
            a *= factor
            np.subtract(rate, a, out=a)
            a *= kappa
            kappa /= len(x)
            kappas += kappa
            inner += a
            a *= kappa
            both += a
        np.multiply(kappas, inner, out=inner)
        np.subtract(inner, both, out=matrix[rows])
    return matrix
