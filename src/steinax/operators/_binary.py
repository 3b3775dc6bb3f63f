from typing import ClassVar

import jax
import jax.numpy as jnp

from .._types import Point
from ._langevin import AbstractOperator, Function, PairFunction


class Glauber(AbstractOperator):
    r"""The operator of Glauber dynamics on vector fields over $\{0, 1\}^d$.

    $$ \mathcal{L} u(x) = \sum_i q_i(x) \bigl( u_i(x^i) - u_i(x) \bigr), \qquad
       q_i = \frac{\rho_i}{1 + \rho_i}, \quad \rho_i(x) = \frac{\pi(x^i)}{\pi(x)} $$

    where $x^i$ is $x$ with its coordinate $i$ flipped. Each term is $E[u_i \mid x_{-i}] - u_i$, what a step
    of a Gibbs sampler is expected to change (Bresler and Nagaraj, 2019; Reinert and Ross, 2019). The score is
    $s_i = 1 - \rho_i(x)$. Unlike the difference $u_i(x) - \rho_i u_i(x^i)$ of Yang, Liu, Rao and Neville
    (2018) it is bounded wherever $u$ is, however unlikely $x$ may be.

    >>> import jax.numpy as jnp
    >>> x, p = jnp.array([1.0]), 0.5
    >>> float(Glauber()(lambda x: x, x, 1 - jnp.array([(1 - p) / p])))  # p - x
    -0.5
    """

    references: ClassVar[tuple[str, ...]] = ("bresler2019stein", "yang2018goodness")

    @property
    def acts_on_fields(self) -> bool:
        return True

    @property
    def domain(self) -> str:
        return "binary"

    def __call__(self, u: Function, x: Point, score: Point) -> jax.Array:
        own = jnp.diagonal(jax.vmap(u)(flips(x)), axis1=0, axis2=-1)
        return (own - u(x)) @ flip_rate(score)

    def representer(self, kernel: PairFunction, y: Point, score: Point) -> Function:
        def field(x):
            flipped = jax.vmap(lambda z: kernel(x, z))(flips(y))
            return flip_rate(score) * (flipped - kernel(x, y))

        return field


class ScalarGlauber(AbstractOperator):
    r"""The generator of Glauber dynamics, on potentials over $\{0, 1\}^d$.

    $$ \mathcal{L} v(x) = \sum_i q_i(x) \bigl( v(x^i) - v(x) \bigr), \qquad q_i = \frac{\rho_i}{1 + \rho_i} $$

    It is `Glauber` with one function for all coordinates: fewer basis functions, and less that they can do.

    >>> import jax.numpy as jnp
    >>> x, p = jnp.array([1.0]), 0.5
    >>> float(ScalarGlauber()(lambda x: x[0], x, 1 - jnp.array([(1 - p) / p])))  # p - x
    -0.5
    """

    references: ClassVar[tuple[str, ...]] = ("bresler2019stein", "yang2018goodness")

    @property
    def acts_on_fields(self) -> bool:
        return False

    @property
    def domain(self) -> str:
        return "binary"

    def __call__(self, u: Function, x: Point, score: Point) -> jax.Array:
        return jnp.tensordot(flip_rate(score), jax.vmap(u)(flips(x)) - u(x), axes=1)

    def representer(self, kernel: PairFunction, y: Point, score: Point) -> Function:
        return lambda x: self(lambda z: kernel(x, z), y, score)


def flips(x: Point) -> jax.Array:
    """The points with each coordinate flipped in turn: (dim, dim)."""
    return jnp.abs(x - jnp.eye(x.shape[-1], dtype=x.dtype))


def flip_rate(score: Point) -> jax.Array:
    r"""The chance $q_i = \rho_i / (1 + \rho_i)$ that a Gibbs sampler flips, from $s = 1 - \rho$."""
    return jnp.asarray((1 - score) / (2 - score))
