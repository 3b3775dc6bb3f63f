"""Polynomial control variates: monomials under a Stein operator."""

from collections.abc import Callable
from functools import cache, partial
from itertools import combinations_with_replacement
from math import comb, factorial
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._numerics import namespace
from .._types import AnyArray, OtherPoints, Point, Points, PyTree
from ..operators import AbstractOperator, ScalarLangevin
from ._base import AbstractLinearFamily, Products, check_potentials


def quadratic_products(x: Points, score: Points, weight: float) -> Products:
    """Return the products with the features of quadratic polynomials, without their (n, p) matrix.

    Each costs an (n, dim, dim) product per integrand. Whatever depends on the points alone is computed
    once, for solvers that call the products many times.
    """
    dim = x.shape[1]
    rows, columns, norm = _upper(dim)
    place = np.empty((dim, dim), np.int32)  # index of each entry of A among the coefficients
    place[rows, columns] = place[columns, rows] = dim + np.arange(len(rows), dtype=np.int32)
    scale = weight**0.5 * np.where(np.eye(dim) > 0, 2**0.5, 1.0)
    # a column of ones includes the linear part in the same product; transposing here, not inside the
    # product, halves its time
    extended = jnp.concatenate([x, jnp.ones((x.shape[0], 1), x.dtype)], axis=1)
    extended, transposed = jax.lax.optimization_barrier((extended, jnp.asarray(score).T))

    def values(linear: jax.Array, matrix: jax.Array) -> jax.Array:
        gradient = extended @ jnp.concatenate([matrix, linear[None]])
        return jnp.trace(matrix) + jnp.sum(jax.lax.optimization_barrier(gradient) * score, axis=1)

    def moments(column: jax.Array) -> tuple[jax.Array, jax.Array]:
        moment = jax.lax.optimization_barrier(transposed * column) @ extended
        linear, moment = moment[:, -1], moment[:, :-1]
        return linear, moment + moment.T + 2 * jnp.sum(column) * jnp.eye(dim, dtype=x.dtype)

    def apply(column: jax.Array) -> AnyArray:
        return values(column[:dim], column[place] * scale)

    def adjoint(column: jax.Array) -> AnyArray:
        linear, moment = moments(column)
        return jnp.concatenate([linear, moment[rows, columns] * (norm * weight**0.5)])

    def both(column: jax.Array) -> jax.Array:
        linear, moment = moments(column)
        return values(linear, weight * moment)

    def leading() -> tuple[jax.Array, jax.Array]:
        inner, squares = (
            jnp.sum(x * score, axis=1),
            jnp.sum(x**2, axis=1) * jnp.sum(score**2, axis=1),
        )
        return jnp.asarray(score), weight * jnp.mean(2 * dim + 4 * inner + inner**2 + squares)

    by_column = [partial(_map_columns, function) for function in (apply, adjoint, both)]
    return Products(by_column[0], by_column[1], by_column[2], leading)


def _map_columns(function: Callable[[jax.Array], jax.Array], columns: AnyArray) -> jax.Array:
    """Apply a function of one column to every column of a matrix."""
    if columns.shape[1] == 1:
        return function(columns[:, 0])[:, None]
    return jax.lax.map(function, columns.T).T


def _upper(dim: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the rows, columns and norms of the quadratic monomials."""
    rows, columns = np.triu_indices(dim)
    return rows, columns, np.where(rows == columns, 0.5**0.5, 1.0)


class Layer(NamedTuple):
    r"""The monomials of one degree, $x_{i_1} \cdots x_{i_j}$ with $i_1 \le \ldots \le i_j$.

    Each is `parent * x[last]`. The derivative of the parent along `x[last]` is `repeats` times the
    grandparent; it is zero unless the last variable of the parent is `last`.
    """

    parent: np.ndarray
    last: np.ndarray
    grandparent: np.ndarray
    repeats: np.ndarray
    norm: np.ndarray  # 1 / sqrt(alpha!), under which (x.y)^j / j! is the sum of squares


@cache
def layers(dim: int, degree: int) -> tuple[Layer, ...]:
    """Enumerate the monomials of degrees 2 to `degree` in `dim` variables (degree 1 is x itself)."""
    index = [{(): 0}, {(i,): i for i in range(dim)}]
    result = []
    for j in range(2, degree + 1):
        tuples = list(combinations_with_replacement(range(dim), j))
        index.append({t: i for i, t in enumerate(tuples)})
        repeats = [t[:-1].count(t[-1]) for t in tuples]
        result.append(
            Layer(
                parent=np.array([index[j - 1][t[:-1]] for t in tuples], np.int32),
                last=np.array([t[-1] for t in tuples], np.int32),
                grandparent=np.array([index[j - 2][t[:-2]] for t in tuples], np.int32),
                repeats=np.array(repeats, dtype=float),
                norm=np.array([_norm(t) for t in tuples]),
            )
        )
    return tuple(result)


def stein_monomials(
    x: Float[AnyArray, "*batch dim n"],
    score: Float[AnyArray, "*batch dim n"],
    weights: tuple[float, ...],
) -> Float[AnyArray, "*batch p n"]:
    r"""Compute the features $\mathcal{L}\, \sqrt{w_j / \alpha!}\, x^\alpha$ of all monomials, one per row.

    They follow from $\mathcal{L}(v x_i) = v s_i + x_i \mathcal{L} v + 2 \partial_i v$ degree
    by degree, for the second-order operator.

    Args:
        x: the points, one per column.
        score: their scores.
        weights: the weight $w_j$ of each degree.
    """
    xp = namespace(x)
    if xp is np:
        return _fill_monomials(x, score, weights)
    values, stein, scaled = [xp.ones((1, 1), dtype=x.dtype), x], [score], [score]
    for weight, layer in zip(weights[1:], layers(x.shape[-2], len(weights)), strict=True):
        parent, last = values[-1][..., layer.parent, :], x[..., layer.last, :]
        slope = layer.repeats[:, None].astype(x.dtype) * values[-2][..., layer.grandparent, :]
        product = parent * score[..., layer.last, :] + last * stein[-1][..., layer.parent, :]
        stein.append(product + 2 * slope)
        values.append(parent * last)
        scaled.append(stein[-1] * (layer.norm * weight**0.5)[:, None].astype(x.dtype))
    return xp.concat(scaled, axis=-2)


def _fill_monomials(x: np.ndarray, score: np.ndarray, weights: tuple[float, ...]) -> np.ndarray:
    """Compute `stein_monomials` in place with NumPy; children of a monomial are adjacent rows."""
    dim, by_degree = x.shape[-2], layers(x.shape[-2], len(weights))
    edges = np.cumsum([0, dim, *(len(layer.last) for layer in by_degree)])
    stein = np.empty((*x.shape[:-2], edges[-1], x.shape[-1]))
    stein[..., :dim, :] = score
    older, values = np.ones((1, 1)), x
    for start, layer in zip(edges, by_degree, strict=False):
        block = stein[..., start + values.shape[-2] :, :][..., : len(layer.last), :]
        children = None if layer is by_degree[-1] else np.empty(block.shape)
        first = np.flatnonzero(np.diff(layer.parent, prepend=-1))
        for i, stop in zip(first, [*first[1:], len(layer.last)], strict=True):
            up, last = layer.parent[i], slice(layer.last[i], dim)
            value, feature = values[..., up, None, :], stein[..., start + up, None, :]
            if children is not None:
                np.multiply(value, x[..., last, :], out=children[..., i:stop, :])
            np.multiply(value, score[..., last, :], out=block[..., i:stop, :])
            block[..., i:stop, :] += feature * x[..., last, :]
            block[..., i, :] += 2 * layer.repeats[i] * older[..., layer.grandparent[i], :]
        if children is not None:
            older, values = values, children
    for start, layer, weight in zip(edges[1:], by_degree, weights[1:], strict=False):
        stein[..., start : start + len(layer.last), :] *= (layer.norm * weight**0.5)[:, None]
    return stein


def _norm(variables: tuple[int, ...]) -> float:
    r"""Return $1 / \sqrt{\alpha!}$ of a monomial, given as a tuple of variables."""
    counts = [variables.count(i) for i in set(variables)]
    return float(np.prod([factorial(c) for c in counts])) ** -0.5


class Polynomial(AbstractLinearFamily):
    r"""Polynomials of total degree at most `degree`: zero-variance control variates.

    The basis functions are the monomials $\sqrt{w_j / \alpha!}\; x^\alpha$ with $j = |\alpha|$ from 1 to
    the degree; there are $\binom{d + \text{degree}}{d} - 1$ of them. With this scaling the family is the
    span of the kernel $\kappa(x^\top y)$, $\kappa(u) = \sum_j w_j u^j / j!$, whose Stein kernel has a
    closed form: for any degree and dimension the $n \times n$ problem needs three matrix products,
    regardless of the number of monomials. The weights are $w_j = w^{j - 1}$; a small $w$ lets linear
    terms move more freely than quadratic ones under a penalty, which helps when there are more monomials
    than draws.

    Args:
        degree: the highest total degree, 1 or more.
        operator: `ScalarLangevin()`, which has closed forms; others use automatic differentiation.
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
        if not isinstance(self.degree, int | np.integer) or self.degree < 1:
            raise ValueError(
                f"Polynomial({self.degree!r}): the degree must be 1 or more, and whole: give one such as "
                "Polynomial(2)."
            )
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
        r"""Compute the features by $\mathcal{L}(v x_i) = v s_i + x_i \mathcal{L} v + 2 \partial_i v$."""
        if not isinstance(self.operator, ScalarLangevin):
            return super().features(state, x, score)
        return stein_monomials(x[:, None], score[:, None], self._weights(x.shape[0]))[:, 0]

    def feature_matrix(self, state: PyTree, x: Points, score: Points) -> AnyArray:
        # the `features` of a subclass that overrides them are mapped over the points
        overridden = type(self).features is not Polynomial.features
        if overridden or not isinstance(self.operator, ScalarLangevin):
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
        """Return the weight of degree j."""
        weight = 1 / (20 * dim) if self.weight is None else self.weight
        return weight ** (j - 1)

    def _weights(self, dim: int) -> tuple[float, ...]:
        """Return the weights of all degrees."""
        return tuple(self._weight(j, dim) for j in range(1, self.degree + 1))


def dot_product_stein(
    weights: tuple[float, ...], x: Points, score_x: Points, y: OtherPoints, score_y: OtherPoints
) -> AnyArray:
    r"""Compute the second-order Stein kernel of $\kappa(x^\top y)$ on all pairs of points, (n, m).

    With $u = x \cdot y$, $p = x \cdot s_y$, $q = y \cdot s_x$:
    $\kappa'''' |x|^2 |y|^2 + 4 u \kappa''' + 2 d \kappa'' + \kappa''' (|x|^2 q + |y|^2 p) +
    2 \kappa'' (x \cdot s_x + y \cdot s_y) + \kappa'' p q + \kappa' s_x \cdot s_y$.
    """
    dim, degree = x.shape[1], len(weights)
    u, p, r = x @ y.T, x @ score_y.T, score_x @ score_y.T
    q = p.T if x is y and score_x is score_y else score_x @ y.T
    k1, k2, k3, k4 = (_kappa(u, n, weights) for n in (1, 2, 3, 4))
    xp = namespace(x, y)
    inner = xp.sum(x * score_x, axis=1)[:, None] + xp.sum(y * score_y, axis=1)
    total = k1 * r
    if degree >= 2:
        total = total + k2 * (2 * (dim + inner) + p * q)
    if degree >= 3:
        xx, yy = xp.sum(x**2, axis=1)[:, None], xp.sum(y**2, axis=1)
        total = total + k3 * (4 * u + xx * q + yy * p) + k4 * xx * yy
    return total


def _kappa(u: AnyArray, order: int, weights: tuple[float, ...]) -> AnyArray | float:
    r"""Compute the derivative of order $o$ of $\kappa$: $\sum_j w_j u^{j - o} / (j - o)!$."""
    degrees = range(order, len(weights) + 1)
    coefficients = [weights[j - 1] / factorial(j - order) for j in degrees]
    if not coefficients:
        return 0.0
    total = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        total = total * u + coefficient
    return total
