from functools import cache
from itertools import combinations
from math import comb

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._types import Point, Points, PyTree
from ..operators import AbstractOperator, Glauber
from ..operators._binary import flip_rate
from ._base import AbstractLinearFamily


class Multilinear(AbstractLinearFamily):
    r"""Products of distinct coordinates of a binary vector, for each coordinate that may flip.

    The basis are the fields $u = x_i \prod_{j \in S} x_j\, e_i$ for every coordinate $i$ and every set $S$
    of up to `degree` - 1 others. Under `Glauber` their features are

    $$ \bigl( P(x_i = 1 \mid x_{-i}) - x_i \bigr) \prod_{j \in S} x_j , $$

    all functions that a flip of $x_i$ averages to zero, up to that degree. Powers of a coordinate are left
    out, because $x_i^2 = x_i$ here.

    Args:
        degree: the highest number of coordinates in a product, 1 or more.
        operator: `Glauber()`, or one on fields of your own.

    >>> import jax.numpy as jnp, numpy as np
    >>> x, score = jnp.array([1.0, 0.0]), jnp.array([0.5, 0.0])
    >>> np.asarray(Multilinear(2).features(None, x, score), float).round(2).tolist()
    [-0.33, 0.5, -0.0, 0.5]
    """

    degree: int = eqx.field(static=True, default=2)
    operator: AbstractOperator = eqx.field(default_factory=Glauber)

    def __check_init__(self) -> None:
        if self.degree < 1:
            raise ValueError(f"Multilinear({self.degree}): the degree must be 1 or more.")
        if not self.operator.acts_on_fields:
            raise ValueError(
                f"Multilinear is a family of vector fields, and {type(self.operator).__name__} acts on "
                "potentials: use operator=Glauber(), or Polynomial for potentials."
            )

    def setup(self, x: Points, score: Points) -> None:
        return None

    def size(self, state: PyTree, dim: int) -> int:
        return dim * sum(comb(dim - 1, j) for j in range(min(self.degree, dim)))

    def basis(self, state: PyTree, x: Point) -> jax.Array:
        own, others = products(x.shape[0], self.degree)
        values = x[own] * _product(x, others)
        return values[:, None] * jax.nn.one_hot(own, x.shape[0], dtype=x.dtype)

    def features(self, state: PyTree, x: Point, score: Point) -> jax.Array:
        if not isinstance(self.operator, Glauber):
            return super().features(state, x, score)
        own, others = products(x.shape[0], self.degree)
        expected = flip_rate(score) * (1 - 2 * x)
        return expected[own] * _product(x, others)

    @property
    def is_parametric(self) -> bool:
        return True


@cache
def products(dim: int, degree: int) -> tuple[np.ndarray, np.ndarray]:
    """The coordinate that flips, (p,), and those it is multiplied with, (p, degree - 1), `dim` for none."""
    found = [
        (i, others + (dim,) * (degree - 1 - size))
        for size in range(min(degree, dim))
        for i in range(dim)
        for others in combinations([j for j in range(dim) if j != i], size)
    ]
    own, others = zip(*found, strict=True)
    return np.array(own, np.int32), np.array(others, np.int32).reshape(len(own), degree - 1)


def _product(x: Point, others: np.ndarray) -> jax.Array:
    padded = jnp.concatenate([jnp.asarray(x), jnp.ones(1, x.dtype)])
    return jnp.prod(padded[others], axis=1)
