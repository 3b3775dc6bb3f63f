"""Stein operators, which map functions to functions of mean zero under the target."""

import abc
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

from ._numerics import as_leaf
from ._show import Described
from ._types import AnyArray, Point, Scalar

__all__ = [
    "AbstractOperator",
    "Langevin",
    "ScalarLangevin",
    "ScaledOperator",
]


type Function = Callable[[jax.Array], jax.Array]
type PairFunction = Callable[[jax.Array, jax.Array], jax.Array]


class AbstractOperator(Described):
    r"""A Stein operator $\mathcal{L}$: $\Pi[\mathcal{L} u] = 0$ for every $u$ it is applied to.

    An operator is written for one point. It acts either on potentials or on vector fields.

    >>> from steinax import Langevin
    >>> isinstance(Langevin(), AbstractOperator)
    True
    """

    @property
    @abc.abstractmethod
    def acts_on_fields(self) -> bool:
        """Whether the operator acts on vector fields rather than on potentials."""

    @property
    def domain(self) -> str:
        """The domain of the target: `"reals"`, or the `domain` of one of `steinax.spaces`."""
        return "reals"

    def moved(self, shift: Point, scale: Point) -> "AbstractOperator":
        """Transform the operator to coordinates $(x - a) / b$; most operators do not change."""
        return self

    @abc.abstractmethod
    def __call__(self, u: Function, x: Point, score: Point) -> jax.Array:
        r"""Evaluate $\mathcal{L} u$ at one point.

        Args:
            u: a function of one point. A potential gives an array of any shape (one number per
                basis function), a vector field the same with a last axis `dim`.
            x: the point.
            score: $\nabla \log \pi(x)$.
        """

    @abc.abstractmethod
    def representer(self, kernel: PairFunction, y: Point, score: Point) -> Function:
        r"""Apply the operator to a kernel's second argument, giving a function of the first.

        The operator can be applied to the result again, which gives
        the Stein kernel $k_0(x, y) = \mathcal{L}_x \mathcal{L}_y k(x, y)$.
        """

    def __rmul__(self, factor: float) -> "ScaledOperator":
        return ScaledOperator(self, factor)


class ScaledOperator(AbstractOperator):
    r"""A multiple $a \mathcal{L}$ of an operator, itself a Stein operator.

    $-\tfrac12 \mathcal{L}$ with the scalar-valued Langevin operator is the Hamiltonian form of
    Assaraf and Caffarel (1999).

    >>> import jax.numpy as jnp
    >>> from steinax import ScalarLangevin
    >>> hamiltonian = -0.5 * ScalarLangevin()
    >>> x = jnp.array([1.0, 2.0])
    >>> float(hamiltonian(lambda x: (x**2).sum(), x, -x))
    3.0
    """

    operator: AbstractOperator
    factor: Scalar = eqx.field(converter=as_leaf)

    @property
    def acts_on_fields(self) -> bool:
        return self.operator.acts_on_fields

    @property
    def domain(self) -> str:
        return self.operator.domain

    def moved(self, shift: Point, scale: Point) -> "ScaledOperator":
        return ScaledOperator(self.operator.moved(shift, scale), self.factor)

    def __call__(self, u: Function, x: Point, score: Point) -> jax.Array:
        return self.factor * self.operator(u, x, score)

    def representer(self, kernel: PairFunction, y: Point, score: Point) -> Function:
        inner = self.operator.representer(kernel, y, score)
        return lambda x: self.factor * inner(x)


def along_direction(u: Function, x: Point, direction: Point) -> tuple[AnyArray, AnyArray]:
    """Compute the value of `u` at `x` and its derivative along `direction`."""
    return jax.jvp(u, (x,), (direction,))


class Langevin(AbstractOperator):
    r"""The first-order Langevin Stein operator, on vector fields.

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
        def partial_derivative(i, direction):
            return along_direction(u, x, direction)[1][..., i]

        dim = x.shape[-1]
        diagonal = jax.vmap(partial_derivative)(jnp.arange(dim), jnp.eye(dim, dtype=x.dtype))
        return diagonal.sum(axis=0) + u(x) @ score

    def representer(self, kernel: PairFunction, y: Point, score: Point) -> Function:
        def field(x):
            value, gradient = jax.value_and_grad(kernel, argnums=1)(x, y)
            return gradient + value * score

        return field


class ScalarLangevin(AbstractOperator):
    r"""The second-order (scalar-valued) Langevin Stein operator, on potentials.

    $$ \mathcal{L} u = \Delta u + \nabla u \cdot \nabla \log \pi $$

    It is the first-order operator applied to $\nabla u$, and the one used with polynomials
    (Mira, Solgi and Imparato, 2013). The potential needs a continuous gradient: a ReLU potential
    has no Laplacian at its kinks, and the identity $\Pi[\mathcal{L} u] = 0$ fails.

    >>> import jax.numpy as jnp
    >>> x = jnp.array([1.0, 2.0])
    >>> float(ScalarLangevin()(lambda x: (x**2).sum(), x, -x))  # 2 dim - 2 |x|^2
    -6.0
    """

    @property
    def acts_on_fields(self) -> bool:
        return False

    def __call__(self, u: Function, x: Point, score: Point) -> jax.Array:
        def second_derivative(direction):
            def first_derivative(z):
                return along_direction(u, z, direction)[1]

            return along_direction(first_derivative, x, direction)[1]

        laplacian = jax.vmap(second_derivative)(jnp.eye(x.shape[-1], dtype=x.dtype)).sum(axis=0)
        return laplacian + along_direction(u, x, score)[1]

    def representer(self, kernel: PairFunction, y: Point, score: Point) -> Function:
        return lambda x: self(lambda z: kernel(x, z), y, score)
