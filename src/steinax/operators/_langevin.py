import jax
import jax.numpy as jnp

from .._types import Point
from ._base import AbstractOperator, Function, PairFunction, directional


class Langevin(AbstractOperator):
    r"""The Langevin Stein operator on vector fields, of first order.

    $$ \mathcal{L} u = \nabla \cdot u + u \cdot \nabla \log \pi $$

    Used by control functionals (Oates, Girolami and Chopin, 2017) and neural control variates
    (Zhu, Wan and Zhong, 2018). A field with kinks (ReLU) is allowed.

    >>> import jax.numpy as jnp
    >>> x = jnp.array([1.0, 2.0])
    >>> float(Langevin()(lambda x: 3.0 * x, x, -x))  # 3 dim - 3 |x|^2
    -9.0
    """

    @property
    def acts_on_fields(self) -> bool:
        return True

    def __call__(self, u: Function, x: Point, score: Point) -> jax.Array:
        def diagonal(i, direction):
            return directional(u, x, direction)[1][..., i]

        dim = x.shape[-1]
        along = jax.vmap(diagonal)(jnp.arange(dim), jnp.eye(dim, dtype=x.dtype))
        return along.sum(axis=0) + u(x) @ score

    def representer(self, kernel: PairFunction, y: Point, score: Point) -> Function:
        def field(x):
            value, gradient = jax.value_and_grad(kernel, argnums=1)(x, y)
            return gradient + value * score

        return field


class ScalarLangevin(AbstractOperator):
    r"""The scalar-valued Langevin Stein operator, on potentials, of second order.

    $$ \mathcal{L} u = \Delta u + \nabla u \cdot \nabla \log \pi $$

    It is the first-order operator applied to $\nabla u$, and the one used with polynomials
    (Mira, Solgi and Imparato, 2013). The potential needs a continuous gradient: a ReLU potential
    has a Laplacian that is missing at its kinks, and the identity $\Pi[\mathcal{L} u] = 0$ fails.

    >>> import jax.numpy as jnp
    >>> x = jnp.array([1.0, 2.0])
    >>> float(ScalarLangevin()(lambda x: (x**2).sum(), x, -x))  # 2 dim - 2 |x|^2
    -6.0
    """

    @property
    def acts_on_fields(self) -> bool:
        return False

    def __call__(self, u: Function, x: Point, score: Point) -> jax.Array:
        def second(direction):
            def first(z):
                return directional(u, z, direction)[1]

            return directional(first, x, direction)[1]

        laplacian = jax.vmap(second)(jnp.eye(x.shape[-1], dtype=x.dtype)).sum(axis=0)
        return laplacian + directional(u, x, score)[1]

    def representer(self, kernel: PairFunction, y: Point, score: Point) -> Function:
        return lambda x: self(lambda z: kernel(x, z), y, score)
