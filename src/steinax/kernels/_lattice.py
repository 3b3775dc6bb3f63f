from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._precision import as_leaf
from .._types import AnyArray, Point, Points, Scalar
from ..operators import AbstractOperator, SteinChen
from ._base import AbstractHeuristic, AbstractKernel


class StandardDeviations(AbstractHeuristic):
    r"""A length-scale for each coordinate, $a \sqrt d$ times its standard deviation.

    Args:
        factor: $a$.

    >>> import numpy as np
    >>> StandardDeviations(2.0)(np.array([[0.0], [2.0]])).tolist()
    [2.0]
    """

    factor: Scalar = eqx.field(converter=as_leaf, default=1.0)

    def __call__(self, x: Points) -> jax.Array:
        x = jnp.asarray(x)
        return self.factor * jnp.sqrt(float(x.shape[1])) * jnp.std(x, axis=0)


if TYPE_CHECKING:  # by the time it is used in a formula, a heuristic is numbers
    LengthScales = Any
else:
    LengthScales = Float[AnyArray, " dim"] | AbstractHeuristic


class Lattice(AbstractKernel):
    r"""The kernel $\exp(-\tfrac12 \sum_i (x_i - y_i)^2 / \ell_i^2)$ of counts.

    Draws of a space are not standardised, so there is a length-scale for each coordinate. The Stein kernel
    under `SteinChen` has a closed form.

    Args:
        length_scales: $\ell$, one for each coordinate, or a heuristic.

    >>> import jax.numpy as jnp
    >>> round(float(Lattice([1.0, 2.0])(jnp.zeros(2), jnp.array([0.0, 2.0]))), 4)
    0.6065
    """

    length_scales: LengthScales = eqx.field(
        converter=lambda value: (
            value
            if isinstance(value, AbstractHeuristic | jax.Array)
            else np.asarray(value, np.float64)
        ),
        default_factory=StandardDeviations,
    )

    def __call__(self, x: Point, y: Point) -> jax.Array:
        return jnp.exp(-0.5 * jnp.sum(((x - y) / self.length_scales) ** 2))

    def closed_form(
        self, operator: AbstractOperator, x: Point, score_x: Point, y: Point, score_y: Point
    ) -> jax.Array | None:
        r"""One less in $x_i$ multiplies $k$ by $\exp((\delta_i - \tfrac12) / \ell_i^2)$, $\delta = x - y$.

        $$ k_0 = k \sum_i 1 - \rho_i e^{(\delta_i - 1/2) / \ell_i^2}
           - \rho'_i e^{-(\delta_i + 1/2) / \ell_i^2} + \rho_i \rho'_i $$
        """
        if not isinstance(operator, SteinChen):
            return None
        rate, gap, left, right = 1 / self.length_scales**2, x - y, 1 - score_x, 1 - score_y
        down = left * jnp.exp((gap - 0.5) * rate) + right * jnp.exp(-(gap + 0.5) * rate)
        return self(x, y) * jnp.sum(1 - down + left * right)
