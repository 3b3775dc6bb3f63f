import jax
import jax.numpy as jnp
import numpy as np

from .._precision import precision
from ..kernels import SquaredExponential
from ..operators import AbstractOperator
from ._check import Law, expect, law
from ._laws import (
    ON_GRID,
    Shape,
    ZeroMean,
    assert_close,
    autodiff_pairs,
    check_mean_on_grid,
    check_positive,
    points,
)
from ._settings import nothing_changes, same_bits
from ._targets import quadrature, skewed


def operator_on_functions(operator: AbstractOperator) -> ZeroMean:
    """The operator applied to three fixed smooth functions, wiggly and growing."""

    def field(x):
        return jnp.stack([jnp.sin(x + 0.3), x**3, jnp.exp(-(x**2)) * jnp.sum(x)])

    def potential(x):
        return jnp.stack([jnp.sum(jnp.sin(x + 0.3)), jnp.sum(x) ** 3, jnp.exp(-jnp.sum(x**2))])

    u = field if operator.acts_on_fields else potential
    return lambda x, score: operator(u, x, score)


@law(
    "a Stein operator gives functions of mean zero: check signs, the divergence and the score's term."
)
def mean_is_zero(operator: AbstractOperator) -> None:
    """E[L u] = 0 by quadrature in one and two dimensions."""
    for dim in (1, 2):
        target, nodes, weights = quadrature(dim, fine=False)
        g = operator_on_functions(operator)
        check_mean_on_grid(g, target.score, nodes, weights, ON_GRID[Shape.ANALYTIC])


@law("apply the operator to each function by itself: it is linear.")
def is_linear(operator: AbstractOperator) -> None:
    """L(2 u - 3 v) = 2 L u - 3 L v."""
    x, score = points(skewed(3), 1, 1)
    (x,), (score,) = x, score

    def u(x):
        return jnp.sin(x) if operator.acts_on_fields else jnp.sum(jnp.sin(x))

    def v(x):
        return x**2 if operator.acts_on_fields else jnp.sum(x**2)

    both = operator(lambda x: 2 * u(x) - 3 * v(x), x, score)
    expect(both.shape == (), f"one function gives an array of shape {both.shape}: give a number")
    assert_close(both, 2 * operator(u, x, score) - 3 * operator(v, x, score))


@law(
    "`representer` is the operator on the kernel's second argument: then k_0 is symmetric and positive."
)
def its_stein_kernel_is_positive(operator: AbstractOperator) -> None:
    """L_x L_y k is symmetric and positive definite."""
    x, score = points(skewed(2), 4, 20)
    check_positive(autodiff_pairs(SquaredExponential(1.3), operator, x, score))


@law("write it with jax.numpy for one point, take dtypes from x, and set nothing globally.")
def is_a_pure_function(operator: AbstractOperator) -> None:
    """Same bits twice, no settings changed, float32 in float32, compiled as it is."""
    x, score = points(skewed(2), 4, 5)
    g = operator_on_functions(operator)
    with nothing_changes():
        one, other = jax.vmap(g)(x, score), jax.vmap(g)(x, score)
    expect(same_bits(one, other), "the same points gave other values")
    assert_close(jax.jit(jax.vmap(g))(x, score), one)
    with precision(np.float32):
        single = jax.vmap(g)(*(jnp.asarray(np.asarray(a), jnp.float32) for a in (x, score)))
        expect(single.dtype == jnp.float32, f"float32 points gave values of type {single.dtype}")
    assert_close(np.asarray(single, np.float64), one, 1e-4)


OPERATOR_LAWS: tuple[Law, ...] = (
    mean_is_zero,
    is_linear,
    its_stein_kernel_is_positive,
    is_a_pure_function,
)
