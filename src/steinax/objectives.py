"""Objectives that control variates minimise: losses on the draws, and penalties on the parameters."""

import abc
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ._numerics import as_leaf
from ._show import Described
from ._types import AnyArray, PyTree, Scalar, Values
from .families import AbstractFamily, AbstractLinearFamily

__all__ = [
    "AbstractObjective",
    "AbstractPenalty",
    "LeastSquares",
    "MeanSquare",
    "NativeNorm",
    "NoPenalty",
    "Ridge",
    "Variance",
    "choose_penalties",
    "default_penalties",
    "per_term",
]


def _positive(strength: Any) -> AnyArray:
    """Convert the strength of a penalty to an array; a negative one is refused."""
    if isinstance(strength, int | float) and strength < 0:
        raise ValueError(f"a penalty of strength {strength:g}: give 0 or more.")
    return as_leaf(strength)


class Declared(Described):
    """A loss or a penalty that says whether it is a quadratic form.

    Solvers of linear systems handle only quadratic forms. A class that overrides `__call__` does not inherit
    `is_quadratic`: it is not a quadratic form unless it declares so itself.
    """

    is_quadratic: ClassVar[bool] = False

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if "__call__" in vars(cls) and "is_quadratic" not in vars(cls):
            cls.is_quadratic = False


class AbstractObjective(Declared):
    r"""A loss on the residual f - g of an integrand and its control variate.

    `Stochastic` minimises any loss by its gradient, on integrands of mean 0 and variance 1. All other
    solvers need the mean square $\frac1m \sum_i (r_i - c)^2$, up to a factor, and refuse a loss that
    does not say that it is one: `is_quadratic = True` in its class.

    >>> class Huber(AbstractObjective):
    ...     def __call__(self, residual, intercept):
    ...         size = jnp.abs(residual - intercept)
    ...         return jnp.mean(jnp.where(size < 1, size**2, 2 * size - 1), axis=0)
    >>> Huber().is_quadratic, LeastSquares().is_quadratic
    (False, True)
    """

    @abc.abstractmethod
    def __call__(self, residual: Values, intercept: Float[AnyArray, " k"]) -> jax.Array:
        """Compute the loss of each integrand, (k,).

        Args:
            residual: f - g on some draws, (n, k).
            intercept: the constant c that f - g should be.
        """

    def penalty_factor(self, n: int | float) -> float:
        """Return the factor that turns a quadratic loss into the mean square; it scales the penalty too."""
        return 1.0


class LeastSquares(AbstractObjective):
    r"""The least-squares objective $\frac1m \sum_i (f(x_i) - g(x_i) - c)^2$.

    >>> import jax.numpy as jnp
    >>> LeastSquares()(jnp.array([[1.0], [3.0]]), jnp.array([2.0])).tolist()
    [1.0]
    """

    is_quadratic = True

    def __call__(self, residual: Values, intercept: Float[AnyArray, " k"]) -> jax.Array:
        return jnp.mean((residual - intercept) ** 2, axis=0)


class Variance(AbstractObjective):
    r"""The variance objective $\frac{2}{m(m-1)} \sum_{i>j} (r_i - r_j)^2$ with $r = f - g$.

    It is twice the sample variance of $r$, and computed as such in linear time; the paper sums over
    pairs, at quadratic cost. For a linear family its minimiser is the least-squares one with
    the penalty scaled by $(m - 1) / 2m$.

    >>> import jax.numpy as jnp
    >>> Variance()(jnp.array([[1.0], [3.0]]), jnp.array([0.0])).tolist()
    [4.0]
    """

    is_quadratic = True

    def __call__(self, residual: Values, intercept: Float[AnyArray, " k"]) -> jax.Array:
        return 2 * jnp.var(residual, axis=0, ddof=1)

    def penalty_factor(self, n: int | float) -> float:
        return (n - 1) / (2 * n)


if TYPE_CHECKING:

    class _HasStrength:  # not a module, so that it is no argument of the subclasses
        strength: Scalar
else:
    _HasStrength = object


class AbstractPenalty(Declared, _HasStrength):
    r"""A penalty $\lambda \Omega(\theta)$ on the parameters of one term of a family.

    `Stochastic` takes any penalty. All other solvers need a quadratic form $\lambda\, \theta^\top
    \Omega \theta$, and refuse a penalty that does not say that it is one: `is_quadratic = True` in its
    class. They read $\lambda$ from `strength` and $\Omega$ from `gram`.

    >>> float(Ridge(0.5).strength)
    0.5
    """

    @abc.abstractmethod
    def __call__(
        self, family: AbstractFamily, state: PyTree, params: PyTree, values: Values
    ) -> jax.Array:
        r"""The penalty of each integrand, or of all together.

        Args:
            family: the term.
            state: the term's state, set up on the draws.
            params: its parameters.
            values: its control variates on some draws, (n, k).
        """

    def gram(self, family: AbstractLinearFamily, state: PyTree, dim: int) -> AnyArray | None:
        r"""The matrix $\Omega$ of a quadratic form, (p, p) and positive definite; None for the identity.

        Args:
            family: the term; it has `family.size(state, dim)` coefficients.
            state: the term's state, set up on the draws.
            dim: the dimension of the draws.
        """
        return None


class NoPenalty(AbstractPenalty):
    """No penalty: plain least squares, exact for every function that the term spans.

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
    strength: Scalar = eqx.field(converter=_positive)

    def __call__(
        self, family: AbstractFamily, state: PyTree, params: PyTree, values: Values
    ) -> jax.Array:
        squares = jax.tree.map(lambda leaf: jnp.sum(leaf**2), params)
        return self.strength * jax.tree.reduce(jnp.add, squares)


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
    strength: Scalar = eqx.field(converter=_positive)

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


class MeanSquare(AbstractPenalty):
    r"""The mean square of the control variate, $\lambda \frac1m \sum_i g_\theta(x_i)^2$.

    The paper's choice for networks, after Zhu, Wan and Zhong (2018).

    Args:
        strength: $\lambda > 0$.

    >>> MeanSquare(0.1)
    MeanSquare(0.1)
    """

    is_quadratic = True
    strength: Scalar = eqx.field(converter=_positive)

    def __call__(
        self, family: AbstractFamily, state: PyTree, params: PyTree, values: Values
    ) -> jax.Array:
        return self.strength * jnp.mean(values**2, axis=0).sum()


def per_term(
    penalty: AbstractPenalty | Sequence[AbstractPenalty], family: AbstractFamily
) -> tuple[AbstractPenalty, ...]:
    """Return one penalty per term of the family, from one for all terms or from a sequence.

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
    """Return one penalty per term: the given ones, or the defaults for `n` draws in `dim` dimensions."""
    return default_penalties(family, n, dim) if penalty is None else per_term(penalty, family)


def default_penalties(family: AbstractFamily, n: int, dim: int) -> tuple[AbstractPenalty, ...]:
    """The penalty of each term when none is given.

    A parametric term has none with at least two draws per coefficient, and a strong one with fewer. Other
    linear terms have a weak one in their own norm, and nonlinear terms the mean square of g.

    >>> from steinax import KernelTranslates, Polynomial
    >>> default_penalties(Polynomial(2) + KernelTranslates(), n=1000, dim=10)
    (NoPenalty(), NativeNorm(1e-05))
    >>> default_penalties(Polynomial(2), n=1000, dim=61)
    (NativeNorm(0.003),)
    """

    def default_penalty(term: AbstractFamily) -> AbstractPenalty:
        if not isinstance(term, AbstractLinearFamily):
            return MeanSquare(1e-3)
        if not term.is_parametric:
            return NativeNorm(1e-5)
        return NoPenalty() if 2 * term.size(None, dim) <= n else NativeNorm(3e-3)

    return tuple(default_penalty(term) for term in family.terms)
