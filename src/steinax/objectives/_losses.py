import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float

from .._types import AnyArray, Values


class AbstractObjective(eqx.Module):
    """A loss on what is left of f when a control variate has been taken away.

    >>> isinstance(LeastSquares(), AbstractObjective)
    True
    """

    @abc.abstractmethod
    def __call__(self, rest: Values, intercept: Float[AnyArray, " k"]) -> jax.Array:
        """The loss of each integrand, (k,).

        Args:
            rest: f - g on some draws, (n, k).
            intercept: the constant c that f - g should be.
        """

    @abc.abstractmethod
    def penalty_factor(self, n: int | float) -> float:
        """By how much a penalty weighs more against mean squares than against this loss."""

    @property
    def reach(self) -> int | None:
        """How many draws in a row it looks at together; None where their order does not matter."""
        return None

    def along(
        self, rest: Values, intercept: Float[AnyArray, " k"], segment: AnyArray | None
    ) -> jax.Array:
        """The loss of each integrand, with the unbroken piece of a chain that each draw is of, (n,)."""
        return self(rest, intercept)

    def prepared(self, length: int) -> "AbstractObjective":
        """The same objective, its settings found for chains of so many draws."""
        return self


class LeastSquares(AbstractObjective):
    r"""The least-squares objective $\frac1m \sum_i (f(x_i) - g(x_i) - c)^2$.

    >>> import jax.numpy as jnp
    >>> LeastSquares()(jnp.array([[1.0], [3.0]]), jnp.array([2.0])).tolist()
    [1.0]
    """

    def __call__(self, rest: Values, intercept: Float[AnyArray, " k"]) -> jax.Array:
        return jnp.mean((rest - intercept) ** 2, axis=0)

    def penalty_factor(self, n: int | float) -> float:
        return 1.0


class Variance(AbstractObjective):
    r"""The variance objective $\frac{2}{m(m-1)} \sum_{i>j} (r_i - r_j)^2$ with $r = f - g$.

    It is twice the sample variance of $r$, and computed as that, in linear time; the paper counts
    the pairs, at quadratic cost. For a linear family its minimiser is the least-squares one with
    the penalty scaled by $(m - 1) / 2m$.

    >>> import jax.numpy as jnp
    >>> Variance()(jnp.array([[1.0], [3.0]]), jnp.array([0.0])).tolist()
    [4.0]
    """

    def __call__(self, rest: Values, intercept: Float[AnyArray, " k"]) -> jax.Array:
        return 2 * jnp.var(rest, axis=0, ddof=1)

    def penalty_factor(self, n: int | float) -> float:
        return (n - 1) / (2 * n)
