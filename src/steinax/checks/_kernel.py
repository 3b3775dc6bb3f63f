from collections.abc import Iterator
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from .._precision import precision
from ..families import KernelTranslates, Landmarks
from ..kernels import AbstractKernel, AbstractRadial, resolve
from ..operators import AbstractOperator, Langevin, ScalarLangevin
from ._check import Law, expect, law
from ._laws import (
    ON_GRID,
    POINTS,
    Shape,
    assert_close,
    check_mean_on_grid,
    check_positive,
    check_radial_derivatives,
    check_stein_kernel,
    functions_of,
    points,
)
from ._settings import nothing_changes, same_bits
from ._targets import quadrature, skewed

CROWD = 20


@dataclass(frozen=True)
class KernelCase:
    """A kernel, and how smooth its Stein kernels of first and second order are (None: refused)."""

    kernel: AbstractKernel
    first: Shape = Shape.ANALYTIC
    second: Shape | None = Shape.ANALYTIC

    @property
    def radial(self) -> bool:
        """Whether it depends on the distance alone."""
        return isinstance(self.kernel, AbstractRadial)

    def operators(self) -> Iterator[tuple[AbstractOperator, Shape]]:
        """The operators that it is smooth enough for."""
        yield Langevin(), self.first
        if self.second is not None:
            yield ScalarLangevin(), self.second

    def resolved(self, x: jax.Array) -> AbstractKernel:
        """The kernel with its hyper-parameters found."""
        return resolve(self.kernel, x)

    def gram(self, x: jax.Array) -> jax.Array:
        """The kernel on all pairs."""
        kernel = self.resolved(x)
        return jax.jit(jax.vmap(lambda a: jax.vmap(lambda b: kernel(a, b))(x)))(x)


@law(
    "a kernel is symmetric and positive definite: build it from sums and products of ones that are."
)
def is_symmetric_and_positive(case: KernelCase) -> None:
    """Its matrix on 30 draws has no negative eigenvalue."""
    check_positive(case.gram(points(skewed(2), 5, 30)[0]))


@law("mend `closed_form`, or leave it out: automatic differentiation gives the Stein kernel.")
def stein_kernel_is_its_definition(case: KernelCase) -> None:
    """The closed form is the operator applied to both arguments, and positive definite."""
    x, score = points(skewed(3), 4, CROWD)
    for operator, _ in case.operators():
        check_positive(check_stein_kernel(case.resolved(x), operator, x, score))


@law("a translate of the Stein kernel must have mean zero: check `closed_form` and `derivatives`.")
def stein_kernel_has_mean_zero(case: KernelCase) -> None:
    """By quadrature in one dimension."""
    for operator, shape in case.operators():
        target, nodes, weights = quadrature(1, fine=shape is not Shape.ANALYTIC)
        family = KernelTranslates(case.kernel, Landmarks(POINTS), operator)
        g = functions_of(family, target)
        check_mean_on_grid(g, target.score, nodes, weights, ON_GRID[shape])


@law("each derivative must be the derivative of the one before.", lambda case: case.radial)
def derivatives_follow_each_other(case: KernelCase) -> None:
    """Those of the profile of a radial kernel."""
    x, _ = points(skewed(2), 5, 30)
    kernel = case.resolved(x)
    assert isinstance(kernel, AbstractRadial)
    order = 2 if case.second is None else 4
    check_radial_derivatives(kernel, order, jnp.array([0.03, 0.5, 2.0, 11.0]))


@law("guard square roots and divisions at distance zero with jnp.where on their argument.")
def is_finite_everywhere(case: KernelCase) -> None:
    """At x = y, at zero and far away, the Stein kernels too."""
    x, score = points(skewed(2), 6, 6)
    x = jnp.concatenate([x, x[:1], jnp.zeros((1, 2)), 6 * x[:2]])
    score = jnp.concatenate([score, score[:1], jnp.zeros((1, 2)), score[:2]])
    kernel = case.resolved(x)
    expect(np.all(np.isfinite(case.gram(x))), "the kernel is not finite at x = y, at 0 or far away")
    for operator, _ in case.operators():
        family = KernelTranslates(kernel, operator=operator)
        gram = jax.jit(lambda x, score, one=family: one.feature_matrix((x, score), x, score))(
            x, score
        )
        name = type(operator).__name__
        expect(np.all(np.isfinite(gram)), f"the Stein kernel of {name} is not finite everywhere")


@law("keep nothing between calls, and set nothing globally.")
def is_deterministic(case: KernelCase) -> None:
    """The same bits twice, and no setting changed."""
    x, _ = points(skewed(2), 5, 10)
    with nothing_changes():
        one, other = case.gram(x), case.gram(x)
    expect(same_bits(one, other), "the same points gave other values")


@law("take dtypes from x, and give hyper-parameters `converter=hyperparameter`.")
def works_in_float32(case: KernelCase) -> None:
    """In single precision it is near what it is in double."""
    x, _ = points(skewed(2), 5, 10)
    exact = np.asarray(case.gram(x))
    with precision(np.float32):
        single = np.asarray(case.gram(jnp.asarray(np.asarray(x), jnp.float32)))
    expect(single.dtype == np.float32, f"float32 points gave values of type {single.dtype}")
    assert_close(single.astype(np.float64), exact, 1e-4)


@law("write it for one pair with jax.numpy, without `if` on values.")
def maps_and_compiles(case: KernelCase) -> None:
    """Compiled and mapped over pairs it gives what it gives at one."""
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
