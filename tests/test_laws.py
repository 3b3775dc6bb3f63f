"""Every operator, kernel and family obeys the laws, each row of the registry by the same checks.

The z-tests on exact draws raise a false alarm in at most one run of a million of the whole file.
"""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import laws
import registry
import steinax as sx
import targets
from full import FULL
from registry import FamilyRow, KernelRow, Row, Shape
from steinax import AbstractLinearFamily, AbstractRadial, AllDraws, KernelTranslates
from steinax._precision import precision
from steinax.kernels import resolve

TOTAL, BLOCK = 1_000_000, 10_000  # exact draws, and how many at a time
CROWD = 20  # points on which closed forms are compared


@pytest.fixture(autouse=True)
def double_precision():
    with precision(np.float64):
        yield


@cache
def _quadrature(dim: int) -> tuple:
    """A non-Gaussian target and a trapezoid rule for it, fine enough for kinks."""
    if dim == 1:
        target = targets.skewed(1)
        return target, *targets.grid(target, -17.0, 5.5, 20_001)
    target = targets.mixture(2)
    return target, *targets.grid(target, -9.5, 9.5, 401)


def _families(rows=registry.FAMILIES):
    """A test per row; what is costly to differentiate is left to the slow set."""
    slow = pytest.mark.slow
    params = [pytest.param(row, id=row.name, marks=slow if row.costly else ()) for row in rows]
    return pytest.mark.parametrize("row", params)


def _families_and_dims():
    """One dimension for every row; two in the slow set for rows that differ in the kernel alone."""
    slow = pytest.mark.slow
    return [
        pytest.param(
            row,
            dim,
            id=f"{row}, {dim}d",
            marks=slow if dim == 2 and row not in registry.DISTINCT_FAMILIES else (),
        )
        for row in registry.FAMILIES
        for dim in (1, 2)
    ]


def _operator_function(operator):
    """The operator applied to three fixed smooth functions, wiggly and growing."""

    def field(x):
        return jnp.stack([jnp.sin(x + 0.3), x**3, jnp.exp(-(x**2)) * jnp.sum(x)])

    def potential(x):
        return jnp.stack([jnp.sum(jnp.sin(x + 0.3)), jnp.sum(x) ** 3, jnp.exp(-jnp.sum(x**2))])

    u = field if operator.acts_on_fields else potential
    return lambda x, score: operator(u, x, score)


class TestMeanIsZero:
    @pytest.mark.parametrize("dim", [1, 2])
    @pytest.mark.parametrize("row", registry.OPERATORS, ids=str)
    def test_operator_by_quadrature(self, row: Row, dim: int) -> None:
        target, nodes, weights = _quadrature(dim)
        g = _operator_function(row.make())
        laws.check_mean_on_grid(g, target.score, nodes, weights, laws.ON_GRID[Shape.ANALYTIC])

    @pytest.mark.parametrize(("row", "dim"), _families_and_dims())
    def test_family_by_quadrature(self, row: FamilyRow, dim: int) -> None:
        target, nodes, weights = _quadrature(dim)
        g = laws.functions_of(row.make(), target)
        laws.check_mean_on_grid(g, target.score, nodes, weights, laws.ON_GRID[row.shape])

    @pytest.mark.slow
    @pytest.mark.parametrize("row", registry.OPERATORS, ids=str)
    def test_operator_by_exact_draws(self, row: Row) -> None:
        target = targets.mixture(10)
        draws = targets.blocks(target, 1, TOTAL, BLOCK)
        laws.check_mean_on_draws(_operator_function(row.make()), draws)

    @pytest.mark.slow
    @_families()
    def test_family_by_exact_draws(self, row: FamilyRow) -> None:
        target = targets.mixture(10)
        g = laws.functions_of(row.make(), target, seed=2)
        total = TOTAL if FULL or row in registry.DISTINCT_FAMILIES else TOTAL // 5
        total = TOTAL // 20 if row.costly else total
        laws.check_mean_on_draws(g, targets.blocks(target, 3, total, BLOCK))


PAIRS = [
    pytest.param(row, operator, id=f"{row}, {operator}")
    for row in registry.KERNELS
    for operator in registry.OPERATORS
    if (operator.make().acts_on_fields or row.second is not None)
    and (operator in registry.OPERATORS[:2] or row is registry.KERNELS[0])
]


class TestKernels:
    @pytest.mark.parametrize(("row", "operator"), PAIRS)
    def test_stein_kernel_is_its_definition_and_positive(
        self, row: KernelRow, operator: Row
    ) -> None:
        x, score = laws.points(targets.skewed(3), 4, CROWD)
        laws.check_positive(laws.check_stein_kernel(row.make(), operator.make(), x, score))

    @pytest.mark.parametrize("row", registry.KERNELS, ids=str)
    def test_kernel_is_symmetric_and_positive(self, row: KernelRow) -> None:
        x, _ = laws.points(targets.skewed(2), 5, 30)
        kernel = row.make()
        laws.check_positive(jax.jit(jax.vmap(lambda a: jax.vmap(lambda b: kernel(a, b))(x)))(x))

    @pytest.mark.parametrize(
        "row", [r for r in registry.KERNELS if isinstance(r.make(), AbstractRadial)], ids=str
    )
    def test_radial_derivatives(self, row: KernelRow) -> None:
        order = 2 if row.second is None else 4
        laws.check_radial_derivatives(row.make(), order, jnp.array([0.03, 0.5, 2.0, 11.0]))

    def test_a_kernel_that_is_too_rough_says_what_to_use(self) -> None:
        x, score = laws.points(targets.skewed(2), 4, 2)
        with pytest.raises(ValueError, match=r"use Matern52, or the first-order operator"):
            sx.Matern32(1.0).stein(sx.ScalarLangevin(), x[0], score[0], x[1], score[1])


@_families(registry.LINEAR_FAMILIES)
def test_linear_family_keeps_its_word(row: FamilyRow) -> None:
    """Whatever a family overrides is what it was by default; all of it from one compiled call."""
    x, score = laws.points(targets.skewed(3), 7, CROWD)
    y, score_y = laws.points(targets.skewed(3), 9, CROWD + 3)
    family = resolve(row.make(), x)
    size = family.size(family.setup(x, score), 3)
    rng = np.random.default_rng(8)
    coef, dual = jnp.asarray(rng.normal(size=(size, 2))), jnp.asarray(rng.normal(size=(CROWD, 2)))
    made = jax.jit(partial(_everything, family))(x, score, y, score_y, coef, dual)

    assert made["features"].shape == (CROWD + 3, size)
    laws.assert_close(made["features"], made["default features"])
    laws.assert_close(made["applied"], made["features"] @ coef)
    laws.assert_close(made["one point"], made["features"][0] @ coef)
    laws.assert_close(made["adjoint"], made["features at x"].T @ dual)
    laws.assert_close(made["kernel"], made["default kernel"])
    laws.assert_close(made["from dual"], made["kernel at x"] @ dual, 1e-9)
    laws.check_positive(made["kernel at x"])
    if made["gram"] is not None:
        laws.check_positive(made["gram"])


def _everything(family: AbstractLinearFamily, x, score, y, score_y, coef, dual) -> dict:
    """What the laws of a linear family speak of, for one that is set up on x."""
    state = family.setup(x, score)
    from_dual = family.from_dual(state, x, score, dual)
    return {
        "features": family.feature_matrix(state, y, score_y),
        "default features": laws.default_features(family, state, y, score_y),
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


class TestAllFamilies:
    @_families(registry.NETWORKS)
    def test_network_is_the_operator_on_its_output(self, row: FamilyRow) -> None:
        network = row.make()
        x, score = laws.points(targets.skewed(3), 11, CROWD)
        laws.check_network(network, laws.random_params(network, None, x), x, score)

    @_families(registry.DISTINCT_FAMILIES)
    def test_starts_as_zero_and_scales_by_integrand(self, row: FamilyRow) -> None:
        x, score = laws.points(targets.skewed(3), 12, CROWD)
        family = resolve(row.make(), x)
        state = family.setup(x, score)
        value = jax.jit(lambda params: family.evaluate(state, params, x[0], score[0]))
        assert not np.any(value(family.init(state, x, 3, jax.random.key(0))))
        params, factor = laws.random_params(family, state, x), jnp.array([2.0, -1.0, 0.5])
        laws.assert_close(value(family.rescale(params, factor)), factor * value(params))


def _span_kernel(family: AbstractLinearFamily, state, x, score, y, score_y) -> jax.Array:
    """The kernel whose translates the family spans, from its definition."""
    if len(family.terms) > 1:
        terms = zip(family.terms, state, strict=True)
        return sum(_span_kernel(*one, x, score, y, score_y) for one in terms)
    if isinstance(family, KernelTranslates) and isinstance(family.centres, AllDraws):
        return laws.autodiff_pairs(family.kernel, family.operator, x, score, y, score_y)
    return AbstractLinearFamily.cross_gram(family, state, x, score, y, score_y)
