"""Polynomials: monomials of every degree through a Stein operator."""

from functools import cache
from itertools import combinations_with_replacement
from math import comb, factorial
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._linalg import namespace
from .._types import AnyArray, OtherPoints, Point, Points, PyTree
from ..operators import AbstractOperator, ScalarLangevin
from ._base import AbstractLinearFamily, Products, check_potentials
from ._quadratic import quadratic_products


class Layer(NamedTuple):
    r"""The monomials of one degree, $x_{i_1} \cdots x_{i_j}$ with $i_1 \le \ldots \le i_j$.

    Each is `parent * x[last]`, and the derivative of the parent along its own last variable is
    `repeats` times the grandparent when that variable is `last`, and zero otherwise.
    """

    parent: np.ndarray
    last: np.ndarray
    grandparent: np.ndarray
    repeats: np.ndarray
    norm: np.ndarray  # 1 / sqrt(alpha!), under which (x.y)^j / j! is the sum of squares


@cache
def layers(dim: int, degree: int) -> tuple[Layer, ...]:
    """The monomials of degrees 2 to `degree` in `dim` variables (degree 1 is x itself)."""
    index = [{(): 0}, {(i,): i for i in range(dim)}]
    made = []
    for j in range(2, degree + 1):
        tuples = list(combinations_with_replacement(range(dim), j))
        index.append({t: i for i, t in enumerate(tuples)})
        repeats = [t[:-1].count(t[-1]) for t in tuples]
        made.append(
            Layer(
                parent=np.array([index[j - 1][t[:-1]] for t in tuples], np.int32),
                last=np.array([t[-1] for t in tuples], np.int32),
                grandparent=np.array([index[j - 2][t[:-2]] for t in tuples], np.int32),
                repeats=np.array(repeats, dtype=float),
                norm=np.array([_norm(t) for t in tuples]),
            )
        )
    return tuple(made)


def stein_monomials(
    x: Float[AnyArray, "*batch dim n"],
    score: Float[AnyArray, "*batch dim n"],
    weights: tuple[float, ...],
) -> Float[AnyArray, "*batch p n"]:
    r"""The features of all monomials, $\mathcal{L}\, \sqrt{w_j / \alpha!}\, x^\alpha$, a row for each.

    By $\mathcal{L}(v x_i) = v s_i + x_i \mathcal{L} v + 2 \partial_i v$ of the second-order operator,
    degree by degree.

    Args:
        x: the points, a column for each.
        score: their scores.
        weights: $w_j$ of each degree.
    """
    xp = namespace(x)
    if xp is np:
        return _filled(x, score, weights)
    values, stein, scaled = [xp.ones((1, 1), dtype=x.dtype), x], [score], [score]
    for weight, layer in zip(weights[1:], layers(x.shape[-2], len(weights)), strict=True):
        parent, last = values[-1][..., layer.parent, :], x[..., layer.last, :]
        slope = layer.repeats[:, None].astype(x.dtype) * values[-2][..., layer.grandparent, :]
        moved = parent * score[..., layer.last, :] + last * stein[-1][..., layer.parent, :]
        stein.append(moved + 2 * slope)
        values.append(parent * last)
        scaled.append(stein[-1] * (layer.norm * weight**0.5)[:, None].astype(x.dtype))
    return xp.concat(scaled, axis=-2)


def _filled(x: np.ndarray, score: np.ndarray, weights: tuple[float, ...]) -> np.ndarray:
    """The same in place. The children of one monomial follow one another: no row is copied."""
    dim, made = x.shape[-2], layers(x.shape[-2], len(weights))
    edges = np.cumsum([0, dim, *(len(layer.last) for layer in made)])
    stein = np.empty((*x.shape[:-2], edges[-1], x.shape[-1]))
    stein[..., :dim, :] = score
    older, values = np.ones((1, 1)), x
    for start, layer in zip(edges, made, strict=False):
        block = stein[..., start + values.shape[-2] :, :][..., : len(layer.last), :]
        young = None if layer is made[-1] else np.empty(block.shape)  # the last have no children
        first = np.flatnonzero(np.diff(layer.parent, prepend=-1))
        for i, stop in zip(first, [*first[1:], len(layer.last)], strict=True):
            up, last = layer.parent[i], slice(layer.last[i], dim)
            value, moved = values[..., up, None, :], stein[..., start + up, None, :]
            if young is not None:
                np.multiply(value, x[..., last, :], out=young[..., i:stop, :])
            np.multiply(value, score[..., last, :], out=block[..., i:stop, :])
            block[..., i:stop, :] += moved * x[..., last, :]
            block[..., i, :] += 2 * layer.repeats[i] * older[..., layer.grandparent[i], :]
        if young is not None:
            older, values = values, young
    for start, layer, weight in zip(edges[1:], made, weights[1:], strict=False):
        stein[..., start : start + len(layer.last), :] *= (layer.norm * weight**0.5)[:, None]
    return stein


def _norm(variables: tuple[int, ...]) -> float:
    counts = [variables.count(i) for i in set(variables)]
    return float(np.prod([factorial(c) for c in counts])) ** -0.5


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

    references: ClassVar[tuple[str, ...]] = ("assaraf1999zero", "mira2013zero")
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
        return stein_monomials(x[:, None], score[:, None], self._weights(x.shape[0]))[:, 0]

    def feature_matrix(self, state: PyTree, x: Points, score: Points) -> AnyArray:
        # a subclass with `features` of its own has them mapped over the points
        own = type(self).features is not Polynomial.features
        if own or not isinstance(self.operator, ScalarLangevin):
            return super().feature_matrix(state, x, score)
        return stein_monomials(x.T, score.T, self._weights(x.shape[1])).T

    def cross_gram(
        self, state: PyTree, x: Points, score_x: Points, y: OtherPoints, score_y: OtherPoints
    ) -> AnyArray:
        if not isinstance(self.operator, ScalarLangevin):
            return super().cross_gram(state, x, score_x, y, score_y)
        return dot_product_stein(self._weights(x.shape[1]), x, score_x, y, score_y)

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

    def _weights(self, dim: int) -> tuple[float, ...]:
        return tuple(self._weight(j, dim) for j in range(1, self.degree + 1))


def dot_product_stein(
    weights: tuple[float, ...], x: Points, score_x: Points, y: OtherPoints, score_y: OtherPoints
) -> AnyArray:
    r"""The second-order Stein kernel of $\kappa(x^\top y)$ on all pairs.

    With $u = x \cdot y$, $p = x \cdot s_y$, $q = y \cdot s_x$:
    $\kappa'''' |x|^2 |y|^2 + 4 u \kappa''' + 2 d \kappa'' + \kappa''' (|x|^2 q + |y|^2 p) +
    2 \kappa'' (x \cdot s_x + y \cdot s_y) + \kappa'' p q + \kappa' s_x \cdot s_y$.
    """
    dim, degree = x.shape[1], len(weights)
    u, p, r = x @ y.T, x @ score_y.T, score_x @ score_y.T
    q = p.T if x is y and score_x is score_y else score_x @ y.T
    k1, k2, k3, k4 = (_kappa(u, n, weights) for n in (1, 2, 3, 4))
    xp = namespace(x, y)
    own = xp.sum(x * score_x, axis=1)[:, None] + xp.sum(y * score_y, axis=1)
    total = k1 * r
    if degree >= 2:
        total = total + k2 * (2 * (dim + own) + p * q)
    if degree >= 3:
        xx, yy = xp.sum(x**2, axis=1)[:, None], xp.sum(y**2, axis=1)
        total = total + k3 * (4 * u + xx * q + yy * p) + k4 * xx * yy
    return total


def _kappa(u: AnyArray, order: int, weights: tuple[float, ...]) -> AnyArray | float:
    r"""The derivative of order $o$ of $\kappa$: $\sum_j w_j u^{j - o} / (j - o)!$."""
    degrees = range(order, len(weights) + 1)
    rising = [weights[j - 1] / factorial(j - order) for j in degrees]
    if not rising:
        return 0.0
    total = rising[-1]
    for coefficient in rising[-2::-1]:
        total = total * u + coefficient
    return total
