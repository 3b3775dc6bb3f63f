from typing import ClassVar

import jax
import jax.numpy as jnp

from .._types import Point
from ._langevin import AbstractOperator, Function, PairFunction


class SteinChen(AbstractOperator):
    r"""The Stein-Chen operator on vector fields over the counts $\mathbb{N}^d$.

    $$ \mathcal{L} u(x) = \sum_i u_i(x) - \rho_i(x)\, u_i(x - e_i), \qquad
       \rho_i(x) = \frac{\pi(x - e_i)}{\pi(x)} $$

    with $\rho_i = 0$ where $x_i = 0$. The score is $s_i = 1 - \rho_i(x)$, so that a constant field gives
    $u \cdot s$, as under `Langevin`. For a Poisson target, $\rho = x / \lambda$, it is the operator of
    Chen (1975). The sum over all counts telescopes, so the mean is zero if $\pi(x)\, u_i(x)$ tends to zero:
    polynomials do for tails that fall faster than every power. No count may have an upper end.

    >>> import jax.numpy as jnp
    >>> x, rate = jnp.array([3.0]), 2.0
    >>> float(SteinChen()(lambda x: rate * jnp.ones(1), x, 1 - x / rate))  # rate - x
    -1.0
    """

    references: ClassVar[tuple[str, ...]] = ("chen1975poisson", "yang2018goodness")

    @property
    def acts_on_fields(self) -> bool:
        return True

    @property
    def domain(self) -> str:
        return "counts"

    def __call__(self, u: Function, x: Point, score: Point) -> jax.Array:
        below = jax.vmap(u)(one_less(x))
        own = jnp.diagonal(below, axis1=0, axis2=-1)  # the component of the coordinate that moved
        return jnp.sum(u(x) - (1 - score) * own, axis=-1)

    def representer(self, kernel: PairFunction, y: Point, score: Point) -> Function:
        def field(x):
            below = jax.vmap(lambda z: kernel(x, z))(one_less(y))
            return kernel(x, y) - (1 - score) * below

        return field


class BirthDeath(AbstractOperator):
    r"""The generator of a birth and death process, on potentials over the counts $\mathbb{N}^d$.

    $$ \mathcal{L} v(x) = \sum_i v(x + e_i) - v(x) + \rho_i(x) \bigl( v(x - e_i) - v(x) \bigr) $$

    Births have rate 1 and deaths $\rho_i(x) = \pi(x - e_i) / \pi(x)$: that is detailed balance. It is
    `SteinChen` applied to the differences $v(x + e_i) - v(x)$, and the one used with polynomials; the
    score is $s_i = 1 - \rho_i(x)$.

    >>> import jax.numpy as jnp
    >>> x, rate = jnp.array([3.0]), 2.0
    >>> float(BirthDeath()(lambda x: rate * x[0], x, 1 - x / rate))  # rate - x
    -1.0
    """

    references: ClassVar[tuple[str, ...]] = ("chen1975poisson", "yang2018goodness")

    @property
    def acts_on_fields(self) -> bool:
        return False

    @property
    def domain(self) -> str:
        return "counts"

    def __call__(self, u: Function, x: Point, score: Point) -> jax.Array:
        here = u(x)
        born = jax.vmap(u)(x + jnp.eye(x.shape[-1], dtype=x.dtype)) - here
        died = jax.vmap(u)(one_less(x)) - here
        return born.sum(axis=0) + jnp.tensordot(1 - score, died, axes=1)

    def representer(self, kernel: PairFunction, y: Point, score: Point) -> Function:
        return lambda x: self(lambda z: kernel(x, z), y, score)


def one_less(x: Point) -> jax.Array:
    """The points with one less in each coordinate in turn, (dim, dim); where there is none, none is taken.

    There the ratio is zero, and a function need not exist below zero.
    """
    return jnp.maximum(x - jnp.eye(x.shape[-1], dtype=x.dtype), 0)
