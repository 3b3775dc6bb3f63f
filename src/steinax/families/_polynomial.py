from math import comb, factorial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._types import OtherPoints, Point, Points, PyTree
from ..operators import AbstractOperator, ScalarLangevin
from ._linear import AbstractLinearFamily, Products, check_potentials
from ._monomials import layers
from ._quadratic import quadratic_features, quadratic_products


class Polynomial(AbstractLinearFamily):
    r"""Polynomials of total degree at most `degree`: zero-variance control variates.

    The basis are the monomials $\sqrt{w_j / \alpha!}\; x^\alpha$ with $j = |\alpha|$ from 1 to the
    degree; there are $\binom{d + \text{degree}}{d} - 1$ of them. With this scaling the family is
    the span of the kernel $\kappa(x^\top y)$, $\kappa(u) = \sum_j w_j u^j / j!$, whose Stein kernel
    has a closed form: for any degree and dimension the $n \times n$ problem needs three matrix
    products, however many monomials there are. The weights are $w_j = w^{j - 1}$; a small $w$ lets
    linear terms move more freely than quadratic ones under a penalty, which matters when there
    are more monomials than draws.

    Args:
        degree: the highest total degree, 1 or more.
        operator: `ScalarLangevin()`; the closed forms are for it, others go by autodiff.
        weight: $w$, or None for $1 / 20 d$. With $w = 1/2$ a `Ridge` penalty is that of the paper,
            $\|A\|^2 + \|b\|^2$ for $\frac12 x^\top A x + b^\top x$.

    >>> import jax.numpy as jnp
    >>> family = Polynomial(2)
    >>> family.features(None, jnp.array([2.0]), jnp.array([-2.0])).shape  # x and x^2
    (2,)
    """

    degree: int = eqx.field(static=True, default=2)
    operator: AbstractOperator = eqx.field(default_factory=ScalarLangevin)
    weight: float | None = eqx.field(static=True, default=None)

    def __check_init__(self) -> None:
        if self.degree < 1:
            raise ValueError(f"Polynomial({self.degree}): the degree must be 1 or more.")
        if self.weight is not None and not self.weight > 0:
            raise ValueError(f"Polynomial(weight={self.weight}): the weight must be positive.")
        check_potentials(self)

    def setup(self, x: Points, score: Points) -> None:
        return None

    def size(self, state: PyTree, dim: int) -> int:
        return comb(dim + self.degree, dim) - 1

    def basis(self, state: PyTree, x: Point) -> jax.Array:
        values = [jnp.ones(1, x.dtype), x]
        scaled = [x]
        for j, layer in enumerate(layers(x.shape[0], self.degree), start=2):
            values.append(values[-1][layer.parent] * x[layer.last])
            scaled.append(
                values[-1] * jnp.asarray(layer.norm * self._weight(j, x.shape[0]) ** 0.5, x.dtype)
            )
        return jnp.concatenate(scaled)

    def features(self, state: PyTree, x: Point, score: Point) -> jax.Array:
        r"""By $\mathcal{L}(v x_i) = v s_i + x_i \mathcal{L} v + 2 \partial_i v$, degree by degree."""
        if not isinstance(self.operator, ScalarLangevin):
            return super().features(state, x, score)
        if self.degree == 2:
            return quadratic_features(x, score, self._weight(2, x.shape[0]))
        values, stein = [jnp.ones(1, x.dtype), x], [score]
        scaled = [score]
        for j, layer in enumerate(layers(x.shape[0], self.degree), start=2):
            parent = values[-1][layer.parent]
            derivative = jnp.asarray(layer.repeats, x.dtype) * values[-2][layer.grandparent]
            moved = parent * score[layer.last] + x[layer.last] * stein[-1][layer.parent]
            values.append(parent * x[layer.last])
            stein.append(moved + 2 * derivative)
            scaled.append(
                stein[-1] * jnp.asarray(layer.norm * self._weight(j, x.shape[0]) ** 0.5, x.dtype)
            )
        return jnp.concatenate(scaled)

    def cross_gram(
        self, state: PyTree, x: Points, score_x: Points, y: OtherPoints, score_y: OtherPoints
    ) -> jax.Array:
        if not isinstance(self.operator, ScalarLangevin):
            return super().cross_gram(state, x, score_x, y, score_y)
        weights = tuple(self._weight(j, x.shape[1]) for j in range(1, self.degree + 1))
        return _dot_product_stein(weights, x, score_x, y, score_y)

    def products(self, state: PyTree, x: Points, score: Points) -> Products:
        if not self.is_matrix_free:
            return super().products(state, x, score)
        return quadratic_products(x, score, self._weight(2, x.shape[1]))

    @property
    def is_parametric(self) -> bool:
        return True

    @property
    def is_matrix_free(self) -> bool:
        return self.degree == 2 and isinstance(self.operator, ScalarLangevin)

    def _weight(self, j: int, dim: int) -> float:
        weight = 1 / (20 * dim) if self.weight is None else self.weight
        return weight ** (j - 1)


def _dot_product_stein(
    weights: tuple[float, ...], x: Points, score_x: Points, y: OtherPoints, score_y: OtherPoints
) -> jax.Array:
    r"""The second-order Stein kernel of $\kappa(x^\top y)$ on all pairs.

    With $u = x \cdot y$, $p = x \cdot s_y$, $q = y \cdot s_x$:
    $\kappa'''' |x|^2 |y|^2 + 4 u \kappa''' + 2 d \kappa'' + \kappa''' (|x|^2 q + |y|^2 p) +
    2 \kappa'' (x \cdot s_x + y \cdot s_y) + \kappa'' p q + \kappa' s_x \cdot s_y$.
    """
    dim, degree = x.shape[1], len(weights)
    u, p, r = x @ y.T, x @ score_y.T, score_x @ score_y.T
    q = p.T if x is y and score_x is score_y else score_x @ y.T
    k1, k2, k3, k4 = (_kappa(u, n, weights) for n in (1, 2, 3, 4))
    own = jnp.sum(x * score_x, axis=1)[:, None] + jnp.sum(y * score_y, axis=1)
    total = k1 * r
    if degree >= 2:
        total = total + k2 * (2 * (dim + own) + p * q)
    if degree >= 3:
        xx, yy = jnp.sum(x**2, axis=1)[:, None], jnp.sum(y**2, axis=1)
        total = total + k3 * (4 * u + xx * q + yy * p) + k4 * xx * yy
    return total


def _kappa(u: jax.Array, order: int, weights: tuple[float, ...]) -> jax.Array | float:
    r"""The derivative of order $o$ of $\kappa$: $\sum_j w_j u^{j - o} / (j - o)!$."""
    degrees = range(max(order, 1), len(weights) + 1)
    rising = [weights[j - 1] / factorial(j - order) for j in degrees]
    if not rising:
        return 0.0
    return jnp.polyval(np.array(rising[::-1]), u)
