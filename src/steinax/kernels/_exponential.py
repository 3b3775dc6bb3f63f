import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import Point
from ..operators import AbstractOperator, Langevin, ScalarLangevin
from ._base import AbstractKernel
from ._heuristics import Hyperparameter, MedianHeuristic, hyperparameter


class ExponentialDotProduct(AbstractKernel):
    r"""The kernel $\exp(x^\top y / \ell^2)$: polynomials of every degree, high ones held back.

    Its space is spanned by all monomials, $x^\alpha$ with weight $\ell^{-2|\alpha|} / \alpha!$, so
    it is what `Polynomial` tends to as the degree grows. It is the squared exponential without the
    damping $\exp(-\|x\|^2 / 2\ell^2)$ far from the origin: for targets with tails as light as a
    Gaussian's nothing converges faster, and for heavy tails it is the wrong choice.

    Args:
        length_scale: $\ell$, a number or a heuristic.

    >>> import jax.numpy as jnp
    >>> round(float(ExponentialDotProduct(1.0)(jnp.ones(2), jnp.ones(2))), 4)
    7.3891
    """

    length_scale: Hyperparameter = eqx.field(
        converter=hyperparameter, default_factory=lambda: MedianHeuristic(4.0)
    )

    def __call__(self, x: Point, y: Point) -> jax.Array:
        return jnp.exp(x @ y / self.length_scale**2)

    def closed_form(
        self, operator: AbstractOperator, x: Point, score_x: Point, y: Point, score_y: Point
    ) -> jax.Array | None:
        r"""With $w = \ell^{-2}$, $u = x \cdot y$, $t = x \cdot s_x + y \cdot s_y$.

        First order: $k\, [w d + w^2 u + w t + s_x \cdot s_y]$. Second: $w k$ times
        $w^3 |x|^2 |y|^2 + 4 w^2 u + 2 w d + w^2 (|x|^2\, y \cdot s_x + |y|^2\, x \cdot s_y)
        + 2 w t + w\, (x \cdot s_y)(y \cdot s_x) + s_x \cdot s_y$.
        """
        rate, d = 1 / self.length_scale**2, x.shape[-1]
        u, own, scores = x @ y, x @ score_x + y @ score_y, score_x @ score_y
        value = jnp.exp(rate * u)
        if isinstance(operator, Langevin):
            return value * (rate * (d + rate * u + own) + scores)
        if isinstance(operator, ScalarLangevin):
            xx, yy, left, right = x @ x, y @ y, x @ score_y, y @ score_x
            third = rate * (4 * u + xx * right + yy * left) + rate**2 * xx * yy
            second = 2 * (d + own) + left * right
            return rate * value * (rate * (third + second) + scores)
        return None
