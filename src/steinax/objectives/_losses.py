import abc

import jax
import jax.numpy as jnp
from jaxtyping import Float

from .._types import AnyArray, Values
from ._quadratic import Declared


class AbstractObjective(Declared):
    r"""A loss on what is left of f when a control variate has been taken away.

    `Stochastic` minimises any loss by its gradient, on integrands of mean 0 and variance 1. All other
    solvers need a quadratic form $\frac1m (r - c)^\top W (r - c)$, up to a factor, and refuse a loss
    that does not say that it is one: `is_quadratic = True` in its class. `smooth` is then the product
    with W, which is the identity by default.

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

    @property
    def reach(self) -> int | None:
        """How many draws in a row it looks at together; None where their order does not matter."""
        return None

    def along(
        self, rest: Values, intercept: Float[AnyArray, " k"], segment: AnyArray | None
    ) -> jax.Array:
        """The loss of each integrand, with the unbroken piece of a chain that each draw is of, (n,)."""
        return self(rest, intercept)

    def smooth(self, values: Values, segment: AnyArray | None) -> AnyArray:
        """The product with W of a quadratic loss, (n, k); the identity unless there is a `reach`."""
        return values

    def prepared(self, length: int) -> "AbstractObjective":
        """The same objective, its settings found for chains of so many draws."""
        return self


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
