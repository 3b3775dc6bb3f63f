import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float

from .._types import AnyArray, Key, Point, Points, PyTree
from ..operators import AbstractOperator
from ._base import AbstractFamily


class Learned(AbstractFamily):
    r"""Another family whose operator $\mathcal{L}_\alpha$ is trained together with $u_\theta$.

    $$ g_{\alpha, \theta} = \mathcal{L}_\alpha u_\theta $$

    has mean zero for every $\alpha$, so $\alpha$ may be fitted as $\theta$ is. The parameters $\alpha$ are
    the arrays in the family's operator, such as those of a `NetworkMatrix` in `Diffusion`; all integrands
    share them. The result is not linear in its parameters: `Stochastic` trains it.

    Args:
        family: the other family; its operator is where training starts from.

    >>> from steinax import Diffusion, Network
    >>> from steinax.operators import TriangularMatrix
    >>> family = Learned(Network(8, 1, operator=Diffusion(TriangularMatrix(2))))
    """

    family: AbstractFamily

    def __check_init__(self) -> None:
        if not jax.tree.leaves(eqx.filter(self.operator, eqx.is_inexact_array)):
            raise ValueError(
                "Learned: the family's operator has no arrays to train. Give it one that has, such as "
                "Diffusion(TriangularMatrix(dim)), or use the family itself."
            )

    @property
    def operator(self) -> AbstractOperator:
        """The operator that training starts from."""
        operator = getattr(self.family, "operator", None)
        if not isinstance(operator, AbstractOperator):
            raise TypeError(
                f"Learned: a {type(self.family).__name__} has no operator of its own: wrap its terms one by "
                "one."
            )
        return operator

    def setup(self, x: Points, score: Points) -> PyTree:
        return self.family.setup(x, score)

    def init(self, state: PyTree, x: Points, k: int, key: Key) -> PyTree:
        dtype = jnp.asarray(x).dtype
        arrays = eqx.filter(self.operator, eqx.is_inexact_array)
        start = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), arrays)
        return start, self.family.init(state, x, k, key)

    def evaluate(self, state: PyTree, params: PyTree, x: Point, score: Point) -> jax.Array:
        return self.at(params[0]).evaluate(state, params[1], x, score)

    def rescale(self, params: PyTree, factor: Float[AnyArray, " k"]) -> PyTree:
        return params[0], self.family.rescale(params[1], factor)

    def at(self, arrays: PyTree) -> AbstractFamily:
        """The family with these arrays in its operator."""
        operator = eqx.combine(arrays, self.operator)
        return eqx.tree_at(lambda family: family.operator, self.family, operator)
