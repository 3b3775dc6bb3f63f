import jax
import jax.numpy as jnp
from jaxtyping import Float

from .._types import AnyArray, Point, Points, PyTree
from ..operators import AbstractOperator
from ._base import AbstractLinearFamily


class Masked(AbstractLinearFamily):
    """Another family with some of its features set to zero.

    They are not cut out, so that one compilation serves whichever they are. Exact least squares gives them
    the coefficient zero.

    Args:
        family: the other family.
        mask: 1 for features that are kept and 0 for the others, (p,).

    >>> import jax.numpy as jnp
    >>> from steinax import Polynomial
    >>> one = Masked(Polynomial(1), jnp.array([1.0, 0.0]))
    >>> one.features(None, jnp.ones(2), -jnp.ones(2)).tolist()
    [-1.0, -0.0]
    """

    family: AbstractLinearFamily
    mask: Float[AnyArray, " p"]

    @property
    def operator(self) -> AbstractOperator:
        return self.family.operator

    def setup(self, x: Points, score: Points) -> PyTree:
        return self.family.setup(x, score)

    def basis(self, state: PyTree, x: Point) -> jax.Array:
        basis = self.family.basis(state, x)
        return basis * jnp.reshape(self.mask, (-1,) + (1,) * (basis.ndim - 1))

    def features(self, state: PyTree, x: Point, score: Point) -> jax.Array:
        return self.family.features(state, x, score) * self.mask

    def feature_matrix(self, state: PyTree, x: Points, score: Points) -> AnyArray:
        return self.family.feature_matrix(state, x, score) * self.mask

    @property
    def is_parametric(self) -> bool:
        return self.family.is_parametric
