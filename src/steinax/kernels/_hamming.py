import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import Point, Points
from ..operators import AbstractOperator, Glauber
from ..operators._binary import flip_rate
from ._base import AbstractHeuristic, AbstractKernel, Hyperparameter, hyperparameter


class RootDimension(AbstractHeuristic):
    r"""The length-scale $\sqrt d$ of binary vectors: all of them differ by a few of it.

    >>> import numpy as np
    >>> float(RootDimension()(np.zeros((3, 4))))
    2.0
    """

    def __call__(self, x: Points) -> jax.Array:
        return jnp.sqrt(jnp.asarray(float(x.shape[1])))


class Hamming(AbstractKernel):
    r"""The kernel $\exp(-|\{i : x_i \ne y_i\}| / \ell)$ of binary vectors.

    It is the product over coordinates of $e^{-1/\ell}$ where they differ, so its Stein kernel under `Glauber`
    is a few inner products, where flipping all pairs of coordinates would take $d^2$ evaluations.

    Args:
        length_scale: $\ell$, a number or a heuristic.

    >>> import jax.numpy as jnp
    >>> round(float(Hamming(1.0)(jnp.array([0.0, 1.0]), jnp.array([1.0, 1.0]))), 4)
    0.3679
    """

    length_scale: Hyperparameter = eqx.field(
        converter=hyperparameter, default_factory=RootDimension
    )

    def __call__(self, x: Point, y: Point) -> jax.Array:
        return jnp.exp(-(x.sum() + y.sum() - 2 * (x @ y)) / self.length_scale)

    def closed_form(
        self, operator: AbstractOperator, x: Point, score_x: Point, y: Point, score_y: Point
    ) -> jax.Array | None:
        r"""With $a = 1/\ell$ and signs $t = 2x - 1$.

        A flip of $x_i$ multiplies $k$ by $\cosh a - t_i t'_i \sinh a$, and

        $$ k_0 = 2 k \sum_i q_i q'_i \bigl( 1 - \cosh a + t_i t'_i \sinh a \bigr) $$
        """
        if not isinstance(operator, Glauber):
            return None
        a, q, other = 1 / self.length_scale, flip_rate(score_x), flip_rate(score_y)
        signed = (q * (2 * x - 1)) @ (other * (2 * y - 1))
        return 2 * self(x, y) * ((1 - jnp.cosh(a)) * (q @ other) + jnp.sinh(a) * signed)
