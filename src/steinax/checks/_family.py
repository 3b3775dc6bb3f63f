"""Laws of families: control variates of mean zero, and overrides that agree with the defaults."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import DTypeLike

from .._numerics import precision, to_numpy
from ..families import AbstractFamily, AbstractLinearFamily, AllDraws, KernelTranslates
from ..kernels import resolve
from ._check import Law, expect, law, layouts, nothing_changes, same_bits, stirred, unmodified
from ._laws import (
    ON_GRID,
    Shape,
    assert_close,
    autodiff_pairs,
    check_mean_on_grid,
    check_positive,
    default_features,
    functions_of,
    points,
    quadrature,
    random_params,
    skewed,
)

CROWD = 20  # points at which closed forms are compared


def check_linear_family(family: AbstractLinearFamily) -> None:
    """Check that everything a linear family overrides equals its default, in one compiled call."""
    x, score = points(skewed(3), 7, CROWD)
    y, score_y = points(skewed(3), 9, CROWD + 3)
    family = resolve(family, x)
    state = family.setup(x, score)
    size = family.size(state, 3)
    count = jax.eval_shape(lambda x, score: family.features(state, x, score), x[0], score[0]).shape
    expect(count == (size,), f"`size` is {size}, and `features` gives {count}")
    rng = np.random.default_rng(8)
    coef, dual = jnp.asarray(rng.normal(size=(size, 2))), jnp.asarray(rng.normal(size=(CROWD, 2)))
    computed = jax.jit(partial(_everything, family))(x, score, y, score_y, coef, dual)
    features = computed["features"]
    _same("features", features, computed["default features"])
    _same("apply", computed["applied"], features @ coef)
    _same("evaluate", computed["one point"], features[0] @ coef)
    _same("adjoint", computed["adjoint"], computed["features at x"].T @ dual)
    _same("cross_gram", computed["kernel"], computed["default kernel"])
    _same("from_dual", computed["from dual"], computed["kernel at x"] @ dual, 1e-9)
    check_positive(computed["kernel at x"])
    if computed["gram"] is not None:
        check_positive(computed["gram"])


def _same(method: str, actual: jax.Array, expected: jax.Array, tolerance: float = 1e-10) -> None:
    try:
        assert_close(actual, expected, tolerance)
    except AssertionError as error:
        raise AssertionError(f"`{method}` is {error}") from None


def _everything(family: AbstractLinearFamily, x, score, y, score_y, coef, dual) -> dict:
    """Compute features, products and kernels of a linear family set up on x, and their defaults."""
    state = family.setup(x, score)
    from_dual = family.from_dual(state, x, score, dual)
    return {
        "features": family.feature_matrix(state, y, score_y),
        "default features": default_features(family, state, y, score_y),
        "applied": family.apply(state, coef, y, score_y),
        "one point": family.evaluate(state, coef, y[0], score_y[0]),
        "adjoint": family.adjoint(state, x, score, dual),
        "features at x": family.feature_matrix(state, x, score),
        "kernel": family.cross_gram(state, x, score, y, score_y),
        "default kernel": _span_kernel(family, state, x, score, y, score_y),
        "kernel at x": family.cross_gram(state, x, score, x, score),
        "from dual": family.apply(state, from_dual, x, score),
        "gram": family.gram(state),
    }


def _span_kernel(family: AbstractLinearFamily, state, x, score, y, score_y) -> jax.Array:
    """Compute the kernel whose translates the family spans, from its definition."""
    if len(family.terms) > 1:
        terms = zip(family.terms, state, strict=True)
        return sum(_span_kernel(*term, x, score, y, score_y) for term in terms)  # type: ignore
    if isinstance(family, KernelTranslates) and isinstance(family.centres, AllDraws):
        return autodiff_pairs(family.kernel, family.operator, x, score, y, score_y)
    return AbstractLinearFamily.cross_gram(family, state, x, score, y, score_y)


DRAWS = 12


@dataclass(frozen=True)
class FamilyCase:
    """A family, how smooth its features are, and draws to set it up on."""

    family: AbstractFamily
    shape: Shape = Shape.ANALYTIC

    @property
    def linear(self) -> bool:
        """Return whether the family is linear in its parameters."""
        return isinstance(self.family, AbstractLinearFamily)

    @cached_property
    def draws(self) -> tuple[np.ndarray, np.ndarray]:
        """Return draws in two dimensions and their scores."""
        target = skewed(2)
        x = target.draw(np.random.default_rng(5), DRAWS)
        return x, target.score(x)

    def values(self, x: np.ndarray, score: np.ndarray) -> np.ndarray:
        """Evaluate control variates with fixed parameters at the draws that the family is set up on."""
        family = resolve(self.family, jnp.asarray(x))
        state = family.setup(x, score)
        params = random_params(family, state, jnp.asarray(x))
        at_one = jax.vmap(family.evaluate, in_axes=(None, None, 0, 0))
        return np.asarray(jax.jit(at_one)(state, params, jnp.asarray(x), jnp.asarray(score)))

    def features(self, dtype: DTypeLike) -> np.ndarray | None:
        """Compute the features at the draws, or return None if the family is not linear."""
        x, score = (jnp.asarray(array.astype(dtype)) for array in self.draws)
        family = resolve(self.family, x)
        if not isinstance(family, AbstractLinearFamily):
            return None
        state = family.setup(x, score)
        return np.asarray(jax.jit(lambda *points: family.feature_matrix(state, *points))(x, score))


def of_linear_family(case: FamilyCase) -> bool:
    """Whether the family is linear in its parameters, for laws of linear families."""
    return case.linear


def _mean(case: FamilyCase, dim: int) -> None:
    target, nodes, weights = quadrature(dim, fine=case.shape is not Shape.ANALYTIC)
    g = functions_of(case.family, target)
    check_mean_on_grid(g, target.score, nodes, weights, ON_GRID[case.shape])


MEAN = (
    "a control variate must have mean zero under every target: apply a Stein operator to the basis, and "
    "leave out closed forms until this passes. Features with kinks or jumps need shape=Shape.KINKED or "
    "Shape.BROKEN."
)


@law(MEAN)
def mean_is_zero_in_one_dimension(case: FamilyCase) -> None:
    """E g = 0 under a skewed target, by quadrature."""
    _mean(case, 1)


@law(MEAN)
def mean_is_zero_in_two_dimensions(case: FamilyCase) -> None:
    """E g = 0 under a mixture, by quadrature."""
    _mean(case, 2)


@law(
    "make the override agree with the default, or remove it: the default is right.",
    of_linear_family,
)
def overrides_agree_with_the_defaults(case: FamilyCase) -> None:
    """Features, products, kernels and sizes equal those that follow from the basis."""
    assert isinstance(case.family, AbstractLinearFamily)
    check_linear_family(case.family)


def _at_a_point(case: FamilyCase) -> tuple[AbstractFamily, object, Callable]:
    x, score = case.draws
    family = resolve(case.family, jnp.asarray(x))
    state = family.setup(jnp.asarray(x), jnp.asarray(score))
    point = jnp.asarray(x[0] + 0.1), jnp.asarray(score[0])
    return family, state, jax.jit(lambda params: family.evaluate(state, params, *point))


@law("let `init` return parameters with which g is zero: fitting starts from plain Monte Carlo.")
def starts_as_plain_monte_carlo(case: FamilyCase) -> None:
    """With its initial parameters, g is zero."""
    family, state, value = _at_a_point(case)
    start = value(family.init(state, jnp.asarray(case.draws[0]), 3, jax.random.key(0)))
    expect(
        start.shape == (3,), f"for 3 integrands `evaluate` gives an array of shape {start.shape}"
    )
    expect(not np.any(start), f"with the parameters of `init`, g is {np.asarray(start)}")


@law("let `rescale` change each integrand's parameters so that its g is multiplied by the factor.")
def rescales_by_integrand(case: FamilyCase) -> None:
    """`rescale` multiplies the control variate of each integrand by its factor."""
    family, state, value = _at_a_point(case)
    params = random_params(family, state, jnp.asarray(case.draws[0]))
    factor = jnp.array([2.0, -1.0, 0.5])
    assert_close(value(family.rescale(params, factor)), factor * value(params))


@law("draw random numbers from a fixed key, and keep nothing between calls.")
def gives_the_same_bits_twice(case: FamilyCase) -> None:
    """Two runs on the same draws give the same values, to the bit."""
    x, score = case.draws
    expected = case.values(x, score)
    with stirred():
        expect(same_bits(expected, case.values(x, score)), "the same draws gave different values")


@law("copy what you change: x and score belong to the caller.")
def leaves_its_input_alone(case: FamilyCase) -> None:
    """`setup` changes neither its arrays nor the family."""
    x, score = case.draws
    family = resolve(case.family, jnp.asarray(x))
    before = to_numpy(jax.tree.map(np.array, jax.tree.leaves(case.family)))
    unmodified(lambda x, score: (family.setup(x, score), case.values(x, score)), x, score)
    expect(same_bits(before, jax.tree.leaves(case.family)), "it changed its own hyper-parameters")


@law("take any array: use jnp.asarray(x), and never ask for x.flags or x.data.")
def takes_any_memory_layout(case: FamilyCase) -> None:
    """Read-only, Fortran-ordered and strided draws give the same values, to the bit."""
    expected = case.values(*case.draws)
    for name, (x, score) in layouts(*case.draws):
        expect(same_bits(expected, case.values(x, score)), f"{name} draws gave different values")


@law(
    "set nothing globally: use `with jax.enable_x64(...)`, np.random.default_rng and jax.random.key."
)
def changes_no_global_setting(case: FamilyCase) -> None:
    """Settings of jax, NumPy and warnings are left unchanged."""
    with nothing_changes():
        case.values(*case.draws)


@law("take dtypes from x (jnp.zeros(..., x.dtype)), not float64 by name.")
def works_in_float32(case: FamilyCase) -> None:
    """From float32 draws, values are float32, and features are close to those in float64."""
    with precision(np.float32):
        single = case.values(*(array.astype(np.float32) for array in case.draws))
        features = case.features(np.float32)
    expect(single.dtype == np.float32, f"float32 draws gave values of type {single.dtype}")
    expect(np.all(np.isfinite(single)), "float32 draws gave values that are not finite")
    if features is not None:
        assert_close(features.astype(np.float64), case.features(np.float64), 1e-2)


@law("guard square roots and divisions at distance zero with jnp.where on their argument.")
def is_finite_everywhere(case: FamilyCase) -> None:
    """g is finite at the draws themselves, at zero and far away."""
    x, score = case.draws
    x = np.concatenate([x, x[:1], np.zeros((1, 2)), 30 * x[:2]])
    score = np.concatenate([score, score[:1], np.zeros((1, 2)), score[:2]])
    expect(np.all(np.isfinite(case.values(x, score))), "g is NaN or infinite at some points")


@law("write `evaluate` with jax.numpy and lax control flow, for one point.")
def maps_and_compiles(case: FamilyCase) -> None:
    """Compiled and mapped over draws, `evaluate` gives the same values as at single points."""
    x, score = (jnp.asarray(array) for array in case.draws)
    family = resolve(case.family, x)
    state = family.setup(x, score)
    params = random_params(family, state, x)
    expected = jnp.stack([family.evaluate(state, params, x[i], score[i]) for i in range(2)])
    assert_close(case.values(*case.draws)[:2], expected, 1e-9)


@law("evaluate each point by itself: g at a draw must not depend on which others are evaluated.")
def points_do_not_know_each_other(case: FamilyCase) -> None:
    """Values at a draw do not depend on the order or number of the other draws."""
    x, score = (jnp.asarray(array) for array in case.draws)
    family = resolve(case.family, x)
    state = family.setup(x, score)
    params = random_params(family, state, x)
    order = np.random.default_rng(1).permutation(DRAWS)

    def values(x, score):
        if isinstance(family, AbstractLinearFamily):
            return family.apply(state, params, x, score)
        return jax.vmap(family.evaluate, in_axes=(None, None, 0, 0))(state, params, x, score)

    assert_close(values(x[order], score[order]), values(x, score)[order], 1e-9)
    assert_close(values(x[:5], score[:5]), values(x, score)[:5], 1e-9)


FAMILY_LAWS: tuple[Law, ...] = (
    mean_is_zero_in_one_dimension,
    mean_is_zero_in_two_dimensions,
    overrides_agree_with_the_defaults,
    starts_as_plain_monte_carlo,
    rescales_by_integrand,
    gives_the_same_bits_twice,
    leaves_its_input_alone,
    takes_any_memory_layout,
    changes_no_global_setting,
    works_in_float32,
    is_finite_everywhere,
    maps_and_compiles,
    points_do_not_know_each_other,
)
