import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._precision import as_leaf
from .._types import AnyArray, Point
from ._langevin import AbstractOperator, Function, Langevin, PairFunction, directional


class WallDistance(eqx.Module):
    r"""A diagonal matrix field that is zero on every face of a box, and positive inside.

    $$ b_i(x) = \frac{(x_i - l_i)(h_i - x_i)}{h_i - l_i}, \qquad x_i - l_i, \qquad h_i - x_i, \qquad 1 , $$

    where both bounds are finite, the lower one, the upper one, or none.

    Args:
        lower: $l$, for each coordinate or one for all.
        upper: $h$.

    >>> upper = jnp.array([1.0, jnp.inf])
    >>> WallDistance(0.0, upper)(jnp.array([0.5, 3.0])).tolist()
    [0.25, 3.0]
    """

    lower: AnyArray = eqx.field(converter=as_leaf)
    upper: AnyArray = eqx.field(converter=as_leaf)

    def __call__(self, x: Point) -> jax.Array:
        lower, upper = jnp.asarray(self.lower, x.dtype), jnp.asarray(self.upper, x.dtype)
        below, above = jnp.isfinite(lower), jnp.isfinite(upper)
        # infinities must not meet in a difference: its derivative would not be a number
        low, high = jnp.where(below, lower, 0.0), jnp.where(above, upper, 0.0)
        width = jnp.where(below & above, high - low, 1.0)
        return jnp.where(below, x - low, 1.0) * jnp.where(above, high - x, 1.0) / width


class BoxLangevin(AbstractOperator):
    r"""The Langevin operator on a box, for functions that need not vanish at its faces.

    $$ \mathcal{L} u = \nabla \cdot (b\, u) + b\, u \cdot \nabla \log \pi, \qquad
       \mathcal{L} v = \nabla \cdot (b\, \nabla v) + b\, \nabla v \cdot \nabla \log \pi $$

    with $b$ the `WallDistance`: the operator of a diffusion that stops at the walls. Without $b$,
    integration by parts leaves $\oint u\, \pi$ over the faces, and the mean is not zero unless the density
    vanishes there. For beta and gamma densities $b\, \nabla \log \pi$ is linear, so that polynomials are
    exact on polynomials.

    Args:
        lower: the lower bounds, one for all coordinates or one for each; may be infinite.
        upper: the upper bounds.
        on_fields: whether it acts on vector fields, or else on potentials.

    >>> x = jnp.array([0.25])
    >>> operator = BoxLangevin(0.0, 1.0, on_fields=False)
    >>> float(operator(lambda x: x[0], x, jnp.zeros(1)))  # of the uniform: 1 - 2 x
    0.5
    """

    walls: WallDistance
    on_fields: bool = eqx.field(static=True)

    def __init__(self, lower: float | AnyArray, upper: float | AnyArray, on_fields: bool = True):
        self.walls = WallDistance(lower, upper)
        self.on_fields = on_fields

    @property
    def acts_on_fields(self) -> bool:
        return self.on_fields

    @property
    def domain(self) -> str:
        return box_domain(self.walls.lower, self.walls.upper)

    def __call__(self, u: Function, x: Point, score: Point) -> jax.Array:
        if self.on_fields:
            return Langevin()(lambda z: u(z) * self.walls(z), x, score)

        def second(unit: jax.Array) -> AnyArray:  # the derivative of one component of b grad u
            return directional(lambda z: directional(u, z, self.walls(z) * unit)[1], x, unit)[1]

        divergence = jax.vmap(second)(jnp.eye(x.shape[-1], dtype=x.dtype)).sum(axis=0)
        return divergence + directional(u, x, self.walls(x) * score)[1]

    def representer(self, kernel: PairFunction, y: Point, score: Point) -> Function:
        if not self.on_fields:
            return lambda x: self(lambda z: kernel(x, z), y, score)
        walls, slope = directional(self.walls, y, jnp.ones_like(y))  # each of its own coordinate
        drift = walls * score + slope

        def field(x: jax.Array) -> jax.Array:
            value, gradient = jax.value_and_grad(kernel, argnums=1)(x, y)
            return walls * gradient + value * drift

        return field

    def moved(self, shift: Point, scale: Point) -> "BoxLangevin":
        lower, upper = ((bound - shift) / scale for bound in (self.walls.lower, self.walls.upper))
        return BoxLangevin(lower, upper, self.on_fields)


def box_domain(lower: AnyArray, upper: AnyArray) -> str:
    """The word for a box: another for other bounds."""
    return f"the box from {np.asarray(lower).tolist()} to {np.asarray(upper).tolist()}"
