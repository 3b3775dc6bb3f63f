"""Base classes of kernels, their Stein kernels, and heuristics for length-scales."""

import abc
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._numerics import as_leaf, namespace
from .._show import Described
from .._types import AnyArray, OtherPoints, Point, Points, PyTree, Scalar
from ..operators import AbstractOperator, ScaledOperator

SUBSAMPLE = 500  # draws between which distances are computed: 124,750 pairs


class AbstractHeuristic(Described):
    """A hyper-parameter that is computed from the draws, given in place of a number.

    >>> import jax.numpy as jnp, numpy as np
    >>> class RootDimension(AbstractHeuristic):
    ...     def __call__(self, x):
    ...         return jnp.sqrt(float(x.shape[1]))
    >>> from steinax.kernels import SquaredExponential
    >>> float(resolve(SquaredExponential(RootDimension()), np.zeros((3, 4))).length_scale)
    2.0
    """

    @abc.abstractmethod
    def __call__(self, x: Points) -> jax.Array:
        """Compute the hyper-parameter from the draws."""


class MedianHeuristic(AbstractHeuristic):
    r"""The median heuristic for a length-scale.

    $$ \ell = a \sqrt{\tfrac12 \operatorname{median}_{i<j} \|x_i - x_j\|^2} , $$

    with the paper's factor of one half. In a large sample 500 draws are used, spread over all
    distances from the mean, regardless of their order.

    Args:
        factor: the factor $a$.

    >>> import numpy as np
    >>> x = np.array([[0.0], [1.0], [2.0]])
    >>> round(float(MedianHeuristic(2.0)(x)), 4)
    1.4142
    """

    factor: Scalar = eqx.field(converter=as_leaf, default=1.0)

    def __call__(self, x: Points) -> AnyArray:
        xp, n = namespace(x), x.shape[0]
        x = x - xp.mean(x, axis=0)
        squared_norm = xp.sum(x**2, axis=1)
        if n > SUBSAMPLE:  # evenly by distance from the mean, regardless of the order of the draws
            subset = xp.argsort(squared_norm)[np.linspace(0, n - 1, SUBSAMPLE).astype(int)]
            x, squared_norm = x[subset], squared_norm[subset]
        squared = squared_norm[:, None] + squared_norm - 2 * x @ x.T  # avoids an (n, n, dim) array
        pairs = squared[np.triu_indices(x.shape[0], k=1)]
        return xp.asarray(self.factor * xp.sqrt(xp.median(pairs) / 2))


if TYPE_CHECKING:  # a hyper-parameter is a number by the time it is used in a formula
    Hyperparameter = Any
else:
    Hyperparameter = Scalar | AbstractHeuristic


def resolve(tree: PyTree, x: Points) -> PyTree:
    """Replace every heuristic in a kernel or a family by the number it gives on the draws.

    >>> import numpy as np
    >>> from steinax.kernels import SquaredExponential
    >>> kernel = resolve(SquaredExponential(), np.array([[0.0], [1.0], [2.0]]))
    >>> round(float(kernel.length_scale), 4)
    0.7071
    """

    def is_heuristic(node: PyTree) -> bool:
        return isinstance(node, AbstractHeuristic) or hasattr(node, "resolved")

    def resolve_node(node: PyTree) -> PyTree:
        if hasattr(node, "resolved"):  # it transforms the draws first
            return node.resolved(x)
        return node(x) if is_heuristic(node) else node

    return jax.tree.map(resolve_node, tree, is_leaf=is_heuristic)


def hyperparameter(value: float | np.number | AnyArray | AbstractHeuristic) -> Hyperparameter:
    """Convert a hyper-parameter: numbers become array leaves, heuristics are kept."""
    if isinstance(value, (AbstractHeuristic, jax.Array)):
        return value
    return as_leaf(value)


class PairProducts:
    r"""Inner products of points $x, y$ and their scores $s, t$: numbers for one pair, matrices for many.

    A closed form in terms of these serves one pair of points, (dim,) each, and all pairs of two sets of
    points, (n, dim) and (m, dim), where it costs a few matrix products and passes over (n, m) arrays.
    Every product is computed on first access.

    >>> import numpy as np
    >>> x = np.array([[1.0, 0.0], [0.0, 2.0]])
    >>> PairProducts(x, -x, x, -x).squared_distance.tolist()
    [[0.0, 5.0], [5.0, 0.0]]
    >>> float(PairProducts(x[0], -x[0], x[1], -x[1]).squared_distance)
    5.0
    """

    def __init__(self, x: AnyArray, s: AnyArray, y: AnyArray, t: AnyArray):
        self.x: AnyArray = x
        self.s: AnyArray = s
        self.y: AnyArray = y
        self.t: AnyArray = t
        self.dim: int = x.shape[-1]
        self.xp: Any = namespace(x, s, y, t)

    def _inner_first(self, left: AnyArray, right: AnyArray) -> Any:
        """Compute the inner product of two vectors of the first point: (n, 1) for many points."""
        total = self.xp.sum(left * right, axis=-1)
        return total if left.ndim == 1 else total[:, None]

    @cached_property
    def xx(self) -> Any:
        return self._inner_first(self.x, self.x)

    @cached_property
    def yy(self) -> Any:
        return self.xp.sum(self.y * self.y, axis=-1)

    @cached_property
    def xs(self) -> Any:
        return self._inner_first(self.x, self.s)

    @cached_property
    def yt(self) -> Any:
        return self.xp.sum(self.y * self.t, axis=-1)

    @cached_property
    def xy(self) -> Any:
        return self.x @ self.y.T

    @cached_property
    def xt(self) -> Any:
        return self.x @ self.t.T

    @cached_property
    def ys(self) -> Any:
        return self.s @ self.y.T

    @cached_property
    def st(self) -> Any:
        return self.s @ self.t.T

    @cached_property
    def crossed(self) -> Any:
        r"""The sum $x \cdot t + y \cdot s$, computed by one matrix product."""
        left = self.xp.concat((self.x, self.s), axis=-1)
        return left @ self.xp.concat((self.t, self.y), axis=-1).T

    @cached_property
    def squared_distance(self) -> Any:
        r"""The polarised $|x - y|^2$, accurate for standardised draws; rounding errors become 0."""
        squared_norms = self.xx + self.yy
        q = squared_norms - 2 * self.xy
        return self.xp.where(q > 8 * self.xp.finfo(q.dtype).eps * squared_norms, q, 0.0)

    def along(self, direction: AnyArray) -> tuple[AnyArray, AnyArray]:
        r"""Compute $a \cdot (x - y)$ and $a \cdot (s - t)$ for a direction $a$."""
        first, second = (
            (u @ direction if u.ndim == 1 else (u @ direction)[:, None]) - v @ direction
            for u, v in ((self.x, self.y), (self.s, self.t))
        )
        return first, second

    def coordinate(self, i: int) -> tuple[AnyArray, AnyArray, AnyArray, AnyArray]:
        """Return x, s, y and t in one coordinate: (n, 1), (n, 1), (m,) and (m,)."""
        x, s = self.x[..., i], self.s[..., i]
        if self.x.ndim > 1:
            x, s = x[:, None], s[:, None]
        return x, s, self.y[..., i], self.t[..., i]


NUMBERS = 2**18  # entries of a tile, so that its intermediate arrays stay in the cache of a core


def pairwise_tiles(n: int, m: int) -> list[slice]:
    """Split the rows of an (n, m) matrix into tiles of about `NUMBERS` entries.

    >>> len(pairwise_tiles(1000, 1000))
    4
    """
    rows = max(NUMBERS // max(m, 1), 8)
    return [slice(start, min(start + rows, n)) for start in range(0, n, rows)]


class AbstractKernel(Described):
    r"""A positive definite kernel $k(x, y)$, written for one pair of points.

    Kernels can be added and multiplied: `SquaredExponential() + Matern52()`. Stein kernels are computed
    by automatic differentiation, unless `closed_form` gives them.

    >>> import jax.numpy as jnp
    >>> from steinax import Langevin
    >>> class Linear(AbstractKernel):
    ...     def __call__(self, x, y):
    ...         return x @ y
    >>> x = jnp.array([1.0, 2.0])
    >>> float(Linear().stein(Langevin(), x, -x, x, -x))  # d - 2 |x|^2 + |x|^4
    17.0
    """

    @abc.abstractmethod
    def __call__(self, x: Point, y: Point) -> jax.Array:
        """Evaluate $k(x, y)$."""

    def closed_form(
        self, operator: AbstractOperator, x: Point, score_x: Point, y: Point, score_y: Point
    ) -> jax.Array | None:
        """Evaluate the Stein kernel in closed form, or return None if the operator has none."""
        return self.from_products(operator, PairProducts(x, score_x, y, score_y))

    def from_products(self, operator: AbstractOperator, pairs: PairProducts) -> AnyArray | None:
        """Evaluate the Stein kernel in closed form from the inner products of one or many pairs of points.

        Returns None if there is no closed form. NumPy products give NumPy arrays, without compilation.
        """
        return None

    def stein_matrix(
        self,
        operator: AbstractOperator,
        x: Points,
        score_x: Points,
        y: OtherPoints,
        score_y: OtherPoints,
    ) -> AnyArray:
        """Compute the Stein kernel of all pairs of points, (n, m): a NumPy array if the points are."""
        if isinstance(operator, ScaledOperator):
            inner = self.stein_matrix(operator.operator, x, score_x, y, score_y)
            return operator.factor**2 * inner
        points, matrix = (x, score_x, y, score_y), None
        is_numpy = namespace(x, y) is np
        if type(self).closed_form is AbstractKernel.closed_form:  # not overridden
            compute = _matrix_numpy if is_numpy else _matrix_jax
            matrix = compute(self, operator, *points)
        if matrix is None:
            matrix = _matrix_mapped(self, operator, *points)
        return np.asarray(matrix) if is_numpy else matrix

    def stein(
        self, operator: AbstractOperator, x: Point, score_x: Point, y: Point, score_y: Point
    ) -> jax.Array:
        r"""Evaluate the Stein kernel $k_0(x, y) = \mathcal{L}_x \mathcal{L}_y k(x, y)$.

        Every $k_0(\cdot, y)$ has mean zero under the target, and $k_0$ is positive definite.
        """
        if isinstance(operator, ScaledOperator):
            inner = self.stein(operator.operator, x, score_x, y, score_y)
            return operator.factor**2 * inner
        closed = self.closed_form(operator, x, score_x, y, score_y)
        if closed is not None:
            return closed
        return autodiff_stein(self, operator, x, score_x, y, score_y)

    def __add__(self, other: "AbstractKernel") -> "AbstractKernel":
        return KernelSum(self, other)

    def __mul__(self, other: "AbstractKernel") -> "AbstractKernel":
        return KernelProduct(self, other)


def _matrix_numpy(
    kernel: "AbstractKernel",
    operator: AbstractOperator,
    x: np.ndarray,
    score_x: np.ndarray,
    y: np.ndarray,
    score_y: np.ndarray,
) -> np.ndarray | None:
    """Compute the Stein kernel matrix in tiles of rows; if it is symmetric, only its lower triangle."""
    matrix = np.empty((len(x), len(y)), np.result_type(x, score_x))
    same = x is y and score_x is score_y
    for rows in pairwise_tiles(len(x), len(y)):
        columns = slice(0, rows.stop) if same else slice(None)
        pairs = PairProducts(x[rows], score_x[rows], y[columns], score_y[columns])
        tile = kernel.from_products(operator, pairs)
        if tile is None:
            return None
        matrix[rows, columns] = tile
        if same:
            matrix[: rows.start, rows] = np.asarray(tile)[:, : rows.start].T
    return matrix


# Measured with jax on one core, in float64: tiles gain nothing below FEW entries, tiles of ROWS rows are the
# fastest, and from WIDE dimensions on the matrix products dominate the time.
FEW, ROWS, WIDE, PANELS = 250_000, 50, 128, 4


def _matrix_jax(
    kernel: "AbstractKernel",
    operator: AbstractOperator,
    x: AnyArray,
    score_x: AnyArray,
    y: AnyArray,
    score_y: AnyArray,
) -> AnyArray | None:
    """Compute the Stein kernel matrix with jax: at once, or on a CPU in tiles that stay in its cache.

    In many dimensions, a symmetric matrix is computed from half of the products.
    """
    large = len(x) * len(y) > FEW and jax.default_backend() == "cpu" and jax.device_count() == 1
    if large and x.shape[1] >= WIDE and y is x and score_y is score_x:
        return _symmetric_matrix_jax(kernel, operator, x, score_x)
    if not large or x.shape[1] >= WIDE:
        return kernel.from_products(operator, PairProducts(x, score_x, y, score_y))
    # transposed once, not in every tile
    transposed = jax.lax.optimization_barrier((jnp.asarray(y).T, jnp.asarray(score_y).T))

    def row(point: tuple[Point, Point]) -> AnyArray | None:
        second = (array.T for array in transposed)
        return kernel.from_products(operator, PairProducts(*point, *second))

    rows = next((r for r in range(ROWS, ROWS // 2, -1) if len(x) % r == 0), ROWS)  # equal tiles
    return jax.lax.map(row, (x, score_x), batch_size=rows)


def _symmetric_matrix_jax(
    kernel: "AbstractKernel", operator: AbstractOperator, x: AnyArray, score: AnyArray
) -> AnyArray | None:
    """Compute a symmetric Stein kernel matrix by panels of rows up to the diagonal."""
    n = len(x)
    matrix = jnp.zeros((n, n), jnp.result_type(x, score))
    for i in range(PANELS):
        start, stop = i * n // PANELS, (i + 1) * n // PANELS
        pairs = PairProducts(x[start:stop], score[start:stop], x[:stop], score[:stop])
        panel = kernel.from_products(operator, pairs)
        if panel is None:
            return None
        matrix = matrix.at[start:stop, :stop].set(panel)
        matrix = matrix.at[:start, start:stop].set(panel[:, :start].T)
    return matrix


@eqx.filter_jit
def _matrix_mapped(
    kernel: "AbstractKernel",
    operator: AbstractOperator,
    x: Points,
    score_x: Points,
    y: OtherPoints,
    score_y: OtherPoints,
) -> jax.Array:
    """Map the Stein kernel of one pair of points over all pairs, compiled."""
    row = jax.vmap(partial(kernel.stein, operator), in_axes=(None, None, 0, 0))
    return jax.vmap(row, in_axes=(0, 0, None, None))(x, score_x, y, score_y)


def autodiff_stein(
    kernel: AbstractKernel,
    operator: AbstractOperator,
    x: Point,
    score_x: Point,
    y: Point,
    score_y: Point,
) -> jax.Array:
    """Evaluate the Stein kernel of any kernel under any operator by automatic differentiation."""
    return operator(operator.representer(kernel, y, score_y), x, score_x)


class KernelSum(AbstractKernel):
    """The sum of two kernels; its Stein kernel is the sum of theirs.

    >>> import jax.numpy as jnp
    >>> from steinax.kernels import Matern52, SquaredExponential
    >>> kernel = SquaredExponential(1.0) + Matern52(2.0)
    >>> float(kernel(jnp.zeros(2), jnp.zeros(2)))
    2.0
    """

    left: AbstractKernel
    right: AbstractKernel

    def __call__(self, x: Point, y: Point) -> jax.Array:
        return self.left(x, y) + self.right(x, y)

    def closed_form(
        self, operator: AbstractOperator, x: Point, score_x: Point, y: Point, score_y: Point
    ) -> jax.Array:
        left = self.left.stein(operator, x, score_x, y, score_y)
        return left + self.right.stein(operator, x, score_x, y, score_y)

    def stein_matrix(
        self,
        operator: AbstractOperator,
        x: Points,
        score_x: Points,
        y: OtherPoints,
        score_y: OtherPoints,
    ) -> AnyArray:
        points = (x, score_x, y, score_y)
        return self.left.stein_matrix(operator, *points) + self.right.stein_matrix(
            operator, *points
        )


class KernelProduct(AbstractKernel):
    """The product of two kernels; its Stein kernel is computed by automatic differentiation.

    >>> import jax.numpy as jnp
    >>> from steinax.kernels import DampedGaussian, Matern52
    >>> kernel = DampedGaussian(0.1, 1.0) * Matern52(2.0)
    >>> float(kernel(jnp.zeros(2), jnp.zeros(2)))
    1.0
    """

    left: AbstractKernel
    right: AbstractKernel

    def __call__(self, x: Point, y: Point) -> jax.Array:
        return self.left(x, y) * self.right(x, y)
