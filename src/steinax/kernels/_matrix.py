"""A function of pairs of points as a matrix, in an order of work that a processor's cache likes."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from .._types import OtherPoints, Point, Points

type PairValue = Callable[[Point, Point, Point, Point], jax.Array]

# Measured on one core in double precision: below so many entries nothing is gained, a tile of so
# many rows is the fastest, and from so many dimensions on the products take the time, not the entries.
FEW, ROWS, WIDE, PANELS = 250_000, 50, 128, 4


def pair_matrix(
    value: PairValue, x: Points, score_x: Points, y: OtherPoints, score_y: OtherPoints
) -> jax.Array:
    r"""The matrix of $k_0(x_i, y_j)$, (n, m), of a symmetric function of one pair.

    Inner products become matrix products, and what is made of them is written once. In few
    dimensions memory takes the time: the rows are made some at a time, so that the products of a
    tile are still in cache when they are used. In many dimensions the products take it: where both
    sets of points are one and the same array, only half of them is made.

    >>> import jax.numpy as jnp
    >>> x = jnp.array([[1.0], [2.0]])
    >>> pair_matrix(lambda x, s, y, t: x @ y + s @ t, x, -x, x, -x).tolist()
    [[2.0, 4.0], [4.0, 8.0]]
    """
    n, m = len(x), len(y)
    if n * m <= FEW or jax.default_backend() != "cpu" or jax.device_count() > 1:
        return _rectangle(value, x, score_x, y, score_y)
    if x.shape[1] < WIDE:
        return _tiled(value, x, score_x, y, score_y)
    if y is x and score_y is score_x:
        return _mirrored(value, x, score_x)
    return _rectangle(value, x, score_x, y, score_y)


def _rectangle(
    value: PairValue, x: Points, score_x: Points, y: OtherPoints, score_y: OtherPoints
) -> jax.Array:
    """All pairs at once."""
    row = jax.vmap(value, in_axes=(None, None, 0, 0))
    return jax.vmap(row, in_axes=(0, 0, None, None))(x, score_x, y, score_y)


def _tiled(
    value: PairValue, x: Points, score_x: Points, y: OtherPoints, score_y: OtherPoints
) -> jax.Array:
    """Some rows at a time. The second points are transposed once, not in every tile."""
    columns = jax.lax.optimization_barrier((jnp.asarray(y).T, jnp.asarray(score_y).T))
    row = jax.vmap(value, in_axes=(None, None, 1, 1))

    def one(point: tuple[Point, Point]) -> jax.Array:
        return row(*point, *columns)

    return jax.lax.map(one, (x, score_x), batch_size=_rows(len(x)))


def _rows(n: int) -> int:
    """How many rows a tile has: a divisor of their number, if there is one near, for equal tiles."""
    return next((rows for rows in range(ROWS, ROWS // 2, -1) if n % rows == 0), ROWS)


def _mirrored(value: PairValue, x: Points, score: Points) -> jax.Array:
    """Panels of rows up to the diagonal; what is above it is their transpose."""
    n = len(x)
    matrix = jnp.zeros((n, n), jnp.result_type(x, score))
    for i in range(PANELS):
        start, stop = i * n // PANELS, (i + 1) * n // PANELS
        panel = _rectangle(value, x[start:stop], score[start:stop], x[:stop], score[:stop])
        matrix = matrix.at[start:stop, :stop].set(panel)
        matrix = matrix.at[:start, start:stop].set(panel[:, :start].T)
    return matrix
