"""Every operator, kernel and family obeys the laws, each row of the registry by the same checks.

The z-tests on exact draws raise a false alarm in at most one run of a million of the whole file.
"""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import laws
import registry
import steinax as sx
import targets
from full import FULL, only_full
from registry import FamilyRow, KernelRow, Row, Shape
from steinax._numerics import precision
from steinax.kernels import AbstractRadial, resolve

TOTAL, BLOCK = 1_000_000 if FULL else 100_000, 10_000  # exact draws, and how many at a time
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
    """A test per row; what is costly to differentiate is left to the long runs."""
    marks = (pytest.mark.slow, only_full)
    params = [pytest.param(row, id=row.name, marks=marks if row.costly else ()) for row in rows]
    return pytest.mark.parametrize("row", params)


def _families_and_dims():
    """One dimension for every row; two in the long runs for rows that differ in the kernel alone."""
    marks = (pytest.mark.slow, only_full)
    return [
        pytest.param(
            row,
            dim,
            id=f"{row}, {dim}d",
            marks=marks if dim == 2 and row not in registry.DISTINCT_FAMILIES else (),
        )
        for row in registry.FAMILIES
        for dim in (1, 2)
    ]


class TestMeanIsZero:
    @pytest.mark.parametrize("dim", [1, 2])
    @pytest.mark.parametrize("row", registry.OPERATORS, ids=str)
    def test_operator_by_quadrature(self, row: Row, dim: int) -> None:
        target, nodes, weights = _quadrature(dim)
        g = laws.operator_on_functions(row.make())
        laws.check_mean_on_grid(g, target.score, nodes, weights, laws.ON_GRID[Shape.ANALYTIC])

    @pytest.mark.slow
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
        laws.check_mean_on_draws(laws.operator_on_functions(row.make()), draws)

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
    @pytest.mark.slow
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

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "row", [r for r in registry.KERNELS if isinstance(r.make(), AbstractRadial)], ids=str
    )
    def test_radial_derivatives(self, row: KernelRow) -> None:
        order = 2 if row.second is None else 4
        laws.check_radial_derivatives(row.make(), order, jnp.array([0.03, 0.5, 2.0, 11.0]))

    def test_a_kernel_that_is_too_rough_says_what_to_use(self) -> None:
        x, score = laws.points(targets.skewed(2), 4, 2)
        with pytest.raises(ValueError, match=r"use Matern52, or the first-order operator"):
            sx.kernels.Matern32(1.0).stein(sx.ScalarLangevin(), x[0], score[0], x[1], score[1])


@pytest.mark.slow
@_families(registry.LINEAR_FAMILIES)
def test_linear_family_keeps_its_word(row: FamilyRow) -> None:
    """Whatever a family overrides is what it was by default."""
    laws.check_linear_family(row.make())


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
