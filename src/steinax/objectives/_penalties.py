"""Losses, and penalties on coefficients."""

import abc
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._precision import as_leaf
from .._types import AnyArray, PyTree, Scalar, Values
from ..families import AbstractFamily, AbstractLinearFamily


class Declared(eqx.Module):
    """A loss or a penalty that says whether it is a quadratic form.

    Solvers of linear systems know only quadratic forms. A class with another `__call__` does not inherit
    the answer: it is no quadratic form, unless it says so anew.
    """

    is_quadratic: ClassVar[bool] = False

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if "__call__" in vars(cls) and "is_quadratic" not in vars(cls):
            cls.is_quadratic = False


class AbstractObjective(Declared):
    r"""A loss on what is left of f when a control variate has been taken away.

    `Stochastic` minimises any loss by its gradient, on integrands of mean 0 and variance 1. All other
    solvers need the mean square $\frac1m \sum_i (r_i - c)^2$, up to a factor, and refuse a loss that
    does not say that it is one: `is_quadratic = True` in its class.

    >>> class Huber(AbstractObjective):
    ...     def __call__(self, rest, intercept):
    ...         size = jnp.abs(rest - intercept)
    ...         return jnp.mean(jnp.where(size < 1, size**2, 2 * size - 1), axis=0)
    >>> Huber().is_quadratic, LeastSquares().is_quadratic
    (False, True)
    """

    @abc.abstractmethod
    def __call__(self, rest: Values, intercept: Float[AnyArray, " k"]) -> jax.Array:
        """The loss of each integrand, (k,).

        Args:
            rest: f - g on some draws, (n, k).
            intercept: the constant c that f - g should be.
        """

    def penalty_factor(self, n: int | float) -> float:
        """The factor that takes a quadratic loss to the mean square, and the penalty with it."""
        return 1.0


class LeastSquares(AbstractObjective):
    r"""The least-squares objective $\frac1m \sum_i (f(x_i) - g(x_i) - c)^2$.

    >>> import jax.numpy as jnp
    >>> LeastSquares()(jnp.array([[1.0], [3.0]]), jnp.array([2.0])).tolist()
    [1.0]
    """

    is_quadratic = True

    def __call__(self, rest: Values, intercept: Float[AnyArray, " k"]) -> jax.Array:
        return jnp.mean((rest - intercept) ** 2, axis=0)


class Variance(AbstractObjective):
    r"""The variance objective $\frac{2}{m(m-1)} \sum_{i>j} (r_i - r_j)^2$ with $r = f - g$.

    It is twice the sample variance of $r$, and computed as that, in linear time; the paper counts
    the pairs, at quadratic cost. For a linear family its minimiser is the least-squares one with
    the penalty scaled by $(m - 1) / 2m$.

    >>> import jax.numpy as jnp
    >>> Variance()(jnp.array([[1.0], [3.0]]), jnp.array([0.0])).tolist()
    [4.0]
    """

    is_quadratic = True

    def __call__(self, rest: Values, intercept: Float[AnyArray, " k"]) -> jax.Array:
        return 2 * jnp.var(rest, axis=0, ddof=1)

    def penalty_factor(self, n: int | float) -> float:
        return (n - 1) / (2 * n)


class AbstractPenalty(Declared):
    r"""A penalty $\lambda \Omega(\theta)$ on the parameters of one term of a family.

    `Stochastic` takes any penalty. All other solvers need a quadratic form $\lambda\, \theta^\top
    \Omega \theta$, and refuse a penalty that does not say that it is one: `is_quadratic = True` in its
    class. They read $\lambda$ from `strength` and $\Omega$ from `gram`.

    >>> float(Ridge(0.5).strength)
    0.5
    """

    if TYPE_CHECKING:  # a field of those that have one
        strength = cast(Scalar, None)

    @abc.abstractmethod
    def __call__(
        self, family: AbstractFamily, state: PyTree, params: PyTree, values: Values
    ) -> jax.Array:
        r"""The penalty of each integrand, or of all together.

        Args:
            family: the term.
            state: what it keeps of the draws.
            params: its parameters.
            values: its control variates on some draws, (n, k).
        """

    def gram(self, family: AbstractLinearFamily, state: PyTree, dim: int) -> AnyArray | None:
        r"""The matrix $\Omega$ of a quadratic form, (p, p) and positive definite; None if it is 1.

        Args:
            family: the term; it has `family.size(state, dim)` coefficients.
            state: what it keeps of the draws.
            dim: the dimension of the draws.
        """
        return None


class NoPenalty(AbstractPenalty):
    """No penalty: least squares, and exactness for everything the term spans.

    >>> NoPenalty()
    NoPenalty()
    """

    is_quadratic = True

    @property
    def strength(self) -> Scalar:
        return np.zeros(())

    def __call__(
        self, family: AbstractFamily, state: PyTree, params: PyTree, values: Values
    ) -> jax.Array:
        return jnp.zeros(())


class Ridge(AbstractPenalty):
    r"""The sum of squares of the parameters, $\lambda \|\theta\|^2$.

    Args:
        strength: $\lambda > 0$.

    >>> Ridge(1e-3)
    Ridge(0.001)
    """

    is_quadratic = True
    strength: Scalar = eqx.field(converter=as_leaf)

    def __call__(
        self, family: AbstractFamily, state: PyTree, params: PyTree, values: Values
    ) -> jax.Array:
        squares = jax.tree.map(lambda leaf: jnp.sum(leaf**2), params)
        return self.strength * jax.tree.reduce(jnp.add, squares)

    def __repr__(self) -> str:
        return f"Ridge({self.strength:.3g})"


class NativeNorm(AbstractPenalty):
    r"""The family's own norm, $\lambda \|g_\theta\|^2 = \lambda\, \theta^\top \Omega \theta$.

    For translates of a kernel it is the norm of the Stein kernel's Hilbert space, with
    $\Omega$ the kernel matrix of the centres; for polynomials the sum of squares of the scaled
    coefficients.

    Args:
        strength: $\lambda > 0$.

    >>> NativeNorm(1e-6)
    NativeNorm(1e-06)
    """

    is_quadratic = True
    strength: Scalar = eqx.field(converter=as_leaf)

    def __call__(
        self, family: AbstractFamily, state: PyTree, params: PyTree, values: Values
    ) -> jax.Array:
        if not isinstance(family, AbstractLinearFamily):
            raise TypeError(
                f"{type(family).__name__} has no norm of its own: use MeanSquare or Ridge."
            )
        gram = family.gram(state)
        squares = params**2 if gram is None else params * (gram @ params)
        return self.strength * jnp.sum(squares)

    def gram(self, family: AbstractLinearFamily, state: PyTree, dim: int) -> AnyArray | None:
        return family.gram(state)

    def __repr__(self) -> str:
        return f"NativeNorm({self.strength:.3g})"


class MeanSquare(AbstractPenalty):
    r"""The mean square of the control variate, $\lambda \frac1m \sum_i g_\theta(x_i)^2$.

    The paper's choice for networks, after Zhu, Wan and Zhong (2018).

    Args:
        strength: $\lambda > 0$.

    >>> MeanSquare(0.1)
    MeanSquare(0.1)
    """

    is_quadratic = True
    strength: Scalar = eqx.field(converter=as_leaf)

    def __call__(
        self, family: AbstractFamily, state: PyTree, params: PyTree, values: Values
    ) -> jax.Array:
        return self.strength * jnp.mean(values**2, axis=0).sum()

    def __repr__(self) -> str:
        return f"MeanSquare({self.strength:.3g})"


def per_term(
    penalty: AbstractPenalty | Sequence[AbstractPenalty], family: AbstractFamily
) -> tuple[AbstractPenalty, ...]:
    """One penalty per term of the family, from one for all or from a sequence of them.

    >>> from steinax import KernelTranslates, Polynomial
    >>> per_term([NoPenalty(), NativeNorm(0.01)], Polynomial(2) + KernelTranslates())
    (NoPenalty(), NativeNorm(0.01))
    """
    terms = family.terms
    if isinstance(penalty, (int, float)):
        raise TypeError(f"the penalty is {penalty!r}: give one such as Ridge({penalty!r}).")
    penalties = (penalty,) * len(terms) if isinstance(penalty, AbstractPenalty) else tuple(penalty)
    if len(penalties) != len(terms):
        raise ValueError(
            f"{len(penalties)} penalties for {len(terms)} terms: give one penalty for all, or a "
            "sequence with one for each term of the sum, in order."
        )
    return penalties


def choose_penalties(
    penalty: AbstractPenalty | Sequence[AbstractPenalty] | None,
    family: AbstractFamily,
    n: int,
    dim: int,
) -> tuple[AbstractPenalty, ...]:
    """One penalty per term: those that were given, or the defaults for `n` draws in `dim` dimensions."""
    return default_penalties(family, n, dim) if penalty is None else per_term(penalty, family)


def default_penalties(family: AbstractFamily, n: int, dim: int) -> tuple[AbstractPenalty, ...]:
    """The penalty of each term when none is given.

    None for a parametric family with at least two draws per coefficient, a strong one with fewer; a
    weak one in its own norm for other linear terms; and the mean square of g for the rest.

    >>> from steinax import KernelTranslates, Polynomial
    >>> default_penalties(Polynomial(2) + KernelTranslates(), n=1000, dim=10)
    (NoPenalty(), NativeNorm(1e-05))
    >>> default_penalties(Polynomial(2), n=1000, dim=61)
    (NativeNorm(0.003),)
    """

    def one(term: AbstractFamily) -> AbstractPenalty:
        if not isinstance(term, AbstractLinearFamily):
            return MeanSquare(1e-3)
        if not term.is_parametric:
            return NativeNorm(1e-5)
        return NoPenalty() if 2 * term.size(None, dim) <= n else NativeNorm(3e-3)

    return tuple(one(term) for term in family.terms)
