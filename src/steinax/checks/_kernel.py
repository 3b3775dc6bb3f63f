"""Laws of operators and kernels."""

from collections.abc import Iterator
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from .._numerics import precision
from ..families import KernelTranslates, Landmarks
from ..kernels import AbstractKernel, AbstractRadial, SquaredExponential, resolve
from ..operators import AbstractOperator, Langevin, ScalarLangevin
from ._check import Law, expect, law, nothing_changes, same_bits
from ._laws import (
    ON_GRID,
    POINTS,
    Shape,
    ZeroMean,
    assert_close,
    autodiff_pairs,
    check_mean_on_grid,
    check_positive,
    check_radial_derivatives,
    check_stein_kernel,
    functions_of,
    points,
    quadrature,
    skewed,
)


def operator_on_functions(operator: AbstractOperator) -> ZeroMean:
    """Apply the operator to three fixed smooth functions, oscillating and growing."""

    def field(x):
        return jnp.stack([jnp.sin(x + 0.3), x**3, jnp.exp(-(x**2)) * jnp.sum(x)])

    def potential(x):
        return jnp.stack([jnp.sum(jnp.sin(x + 0.3)), jnp.sum(x) ** 3, jnp.exp(-jnp.sum(x**2))])

    u = field if operator.acts_on_fields else potential
    return lambda x, score: operator(u, x, score)


@law(
    "a Stein operator gives functions of mean zero: check signs, the divergence and the score term."
)
def mean_is_zero(operator: AbstractOperator) -> None:
    """E[L u] = 0, by quadrature in one and two dimensions."""
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
    "`representer` is the operator applied to the second argument: then k_0 is symmetric and positive."
)
def its_stein_kernel_is_positive(operator: AbstractOperator) -> None:
    """L_x L_y k is symmetric and positive definite."""
    x, score = points(skewed(2), 4, 20)
    check_positive(autodiff_pairs(SquaredExponential(1.3), operator, x, score))


@law("write it with jax.numpy for one point, take dtypes from x, and set nothing globally.")
def is_a_pure_function(operator: AbstractOperator) -> None:
    """The operator is deterministic, can be compiled, keeps float32 and changes no global settings."""
    x, score = points(skewed(2), 4, 5)
    g = operator_on_functions(operator)
    with nothing_changes():
        first, second = jax.vmap(g)(x, score), jax.vmap(g)(x, score)
    expect(same_bits(first, second), "the same points gave different values")
    assert_close(jax.jit(jax.vmap(g))(x, score), first)
    with precision(np.float32):
        single = jax.vmap(g)(*(jnp.asarray(np.asarray(a), jnp.float32) for a in (x, score)))
        expect(single.dtype == jnp.float32, f"float32 points gave values of type {single.dtype}")
    assert_close(np.asarray(single, np.float64), first, 1e-4)


OPERATOR_LAWS: tuple[Law, ...] = (
    mean_is_zero,
    is_linear,
    its_stein_kernel_is_positive,
    is_a_pure_function,
)


CROWD = 20


@dataclass(frozen=True)
class KernelCase:
    """A kernel, and how smooth its first- and second-order Stein kernels are (None: not defined)."""

    kernel: AbstractKernel
    first: Shape = Shape.ANALYTIC
    second: Shape | None = Shape.ANALYTIC

    @property
    def radial(self) -> bool:
        """Return whether the kernel depends on the distance alone."""
        return isinstance(self.kernel, AbstractRadial)

    def operators(self) -> Iterator[tuple[AbstractOperator, Shape]]:
        """Yield the operators that the kernel is smooth enough for, with the shape of its Stein kernel."""
        yield Langevin(), self.first
        if self.second is not None:
            yield ScalarLangevin(), self.second

    def resolved(self, x: jax.Array) -> AbstractKernel:
        """Return the kernel with its hyper-parameters set from x."""
        return resolve(self.kernel, x)

    def gram(self, x: jax.Array) -> jax.Array:
        """Compute the kernel matrix of all pairs of points."""
        kernel = self.resolved(x)
        return jax.jit(jax.vmap(lambda a: jax.vmap(lambda b: kernel(a, b))(x)))(x)


@law(
    "a kernel is symmetric and positive definite: build it from sums and products of such kernels."
)
def is_symmetric_and_positive(case: KernelCase) -> None:
    """The kernel matrix of 30 draws is symmetric and has no negative eigenvalue."""
    check_positive(case.gram(points(skewed(2), 5, 30)[0]))


@law("fix `closed_form`, or leave it out: automatic differentiation gives the Stein kernel.")
def stein_kernel_is_its_definition(case: KernelCase) -> None:
    """The closed form equals the operator applied to both arguments, and is positive definite."""
    x, score = points(skewed(3), 4, CROWD)
    for operator, _ in case.operators():
        check_positive(check_stein_kernel(case.resolved(x), operator, x, score))


@law("a translate of the Stein kernel must have mean zero: check `closed_form` and `derivatives`.")
def stein_kernel_has_mean_zero(case: KernelCase) -> None:
    """Translates of the Stein kernel have mean zero, by quadrature in one dimension."""
    for operator, shape in case.operators():
        target, nodes, weights = quadrature(1, fine=shape is not Shape.ANALYTIC)
        family = KernelTranslates(case.kernel, Landmarks(POINTS), operator)
        g = functions_of(family, target)
        check_mean_on_grid(g, target.score, nodes, weights, ON_GRID[shape])


@law("each derivative must be the derivative of the one before.", lambda case: case.radial)
def derivatives_follow_each_other(case: KernelCase) -> None:
    """Each derivative of the profile of a radial kernel is the derivative of the one before."""
    x, _ = points(skewed(2), 5, 30)
    kernel = case.resolved(x)
    assert isinstance(kernel, AbstractRadial)
    order = 2 if case.second is None else 4
    check_radial_derivatives(kernel, order, jnp.array([0.03, 0.5, 2.0, 11.0]))


@law("guard square roots and divisions at distance zero with jnp.where on their argument.")
def is_finite_everywhere(case: KernelCase) -> None:
    """The kernel and its Stein kernels are finite at x = y, at zero and far away."""
    x, score = points(skewed(2), 6, 6)
    x = jnp.concatenate([x, x[:1], jnp.zeros((1, 2)), 6 * x[:2]])
    score = jnp.concatenate([score, score[:1], jnp.zeros((1, 2)), score[:2]])
    kernel = case.resolved(x)
    expect(np.all(np.isfinite(case.gram(x))), "the kernel is not finite at x = y, at 0 or far away")
    for operator, _ in case.operators():
        family = KernelTranslates(kernel, operator=operator)
        gram = jax.jit(lambda x, score, span=family: span.feature_matrix((x, score), x, score))(
            x, score
        )
        name = type(operator).__name__
        expect(np.all(np.isfinite(gram)), f"the Stein kernel of {name} is not finite everywhere")


@law("keep nothing between calls, and set nothing globally.")
def is_deterministic(case: KernelCase) -> None:
    """Two evaluations give the same bits, and no global setting changes."""
    x, _ = points(skewed(2), 5, 10)
    with nothing_changes():
        first, second = case.gram(x), case.gram(x)
    expect(same_bits(first, second), "the same points gave different values")


@law("take dtypes from x, and give hyper-parameters `converter=hyperparameter`.")
def works_in_float32(case: KernelCase) -> None:
    """From float32 points, values are float32 and close to those in float64."""
    x, _ = points(skewed(2), 5, 10)
    exact = np.asarray(case.gram(x))
    with precision(np.float32):
        single = np.asarray(case.gram(jnp.asarray(np.asarray(x), jnp.float32)))
    expect(single.dtype == np.float32, f"float32 points gave values of type {single.dtype}")
    assert_close(single.astype(np.float64), exact, 1e-4)


@law("write it for one pair with jax.numpy, without `if` on values.")
def maps_and_compiles(case: KernelCase) -> None:
    """Compiled and mapped over pairs, the kernel gives the same value as at a single pair."""
    x, _ = points(skewed(2), 5, 10)
    kernel = case.resolved(x)
    assert_close(case.gram(x)[1, 2], kernel(x[1], x[2]))


KERNEL_LAWS: tuple[Law, ...] = (
    is_symmetric_and_positive,
    stein_kernel_is_its_definition,
    stein_kernel_has_mean_zero,
    derivatives_follow_each_other,
    is_finite_everywhere,
    is_deterministic,
    works_in_float32,
    maps_and_compiles,
)
