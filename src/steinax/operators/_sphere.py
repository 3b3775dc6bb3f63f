import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import Point
from ._langevin import (
    AbstractOperator,
    Function,
    Langevin,
    PairFunction,
    ScalarLangevin,
    directional,
)


class SphereLangevin(AbstractOperator):
    r"""The Langevin operator on the unit sphere $S^{d-1}$ in $\mathbb{R}^d$, of fields or of potentials.

    With $P = I - x x^\top$ and $|x| = 1$, for any smooth extension of $u$ or $v$ to a neighbourhood,

    $$ \mathcal{L} u = \nabla_{\!S} \cdot P u + P u \cdot \nabla \log \pi
       = \operatorname{tr}(P\, \partial u) - (d - 1)\, x \cdot u + P u \cdot \nabla \log \pi , $$

    and $\mathcal{L} v$ is that of $u = \nabla v$: the Laplace-Beltrami operator and a drift,
    $\Delta_S v = \Delta v - x^\top \nabla^2 v\, x - (d - 1)\, x \cdot \nabla v$. There is no boundary, so
    the mean is zero for every smooth density with respect to the surface.

    Args:
        on_fields: whether it acts on vector fields, or else on potentials.

    >>> x = jnp.array([0.6, 0.8, 0.0])
    >>> operator = SphereLangevin(on_fields=False)
    >>> round(float(operator(lambda x: x[0], x, jnp.zeros(3))), 6)  # of the uniform: -2 x
    -1.2
    """

    on_fields: bool = eqx.field(static=True, default=True)

    @property
    def acts_on_fields(self) -> bool:
        return self.on_fields

    @property
    def domain(self) -> str:
        return "the sphere"

    def __call__(self, u: Function, x: Point, score: Point) -> jax.Array:
        def slope(z):  # along the radius
            return directional(u, z, x)[1]

        drift = _drift(x, score)
        if self.on_fields:
            return Langevin()(u, x, drift) - slope(x) @ x
        return ScalarLangevin()(u, x, drift) - directional(slope, x, x)[1]

    def representer(self, kernel: PairFunction, y: Point, score: Point) -> Function:
        if not self.on_fields:
            return lambda x: self(lambda z: kernel(x, z), y, score)
        drift = _drift(y, score)

        def field(x):
            value, gradient = jax.value_and_grad(kernel, argnums=1)(x, y)
            return _tangential(y, gradient) + value * drift

        return field


def _drift(x: Point, score: Point) -> jax.Array:
    """What the operator makes of constant fields: the tangential score, and the curvature."""
    return _tangential(x, score) - (x.shape[-1] - 1) * x


def _tangential(x: Point, vector: Point) -> jax.Array:
    return jnp.asarray(vector - (x @ vector) * x)
