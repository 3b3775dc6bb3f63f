"""Spline wavelets: the coefficients of their inventors, SciPy's splines, and what they are for."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.interpolate import BSpline

import laws
import steinax as sx
import targets
from steinax._precision import precision
from steinax.checks import Shape
from steinax.families import Wavelets
from steinax.families._splines import bspline, hierarchy, two_scale

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def double_precision():
    with precision(np.float64):
        yield


def _table(t, cells: int, levels: int) -> list[np.ndarray]:
    each = jax.vmap(lambda one: hierarchy(one, cells, levels, 0.0))(jnp.asarray(t))
    return [np.asarray(level) for level in each]


class TestSplines:
    def test_the_spline_is_that_of_scipy(self) -> None:
        t = np.linspace(-1, 5, 301)
        expected = np.nan_to_num(BSpline.basis_element(np.arange(5.0), extrapolate=False)(t))
        assert np.allclose(bspline(t), expected, atol=1e-14)

    def test_coefficients_of_chui_and_wang(self) -> None:
        half = np.array([1, -124, 1677, -7904, 18482, -24264])
        assert np.allclose(two_scale() * 40320, [*half, *half[-2::-1]], rtol=1e-13)

    def test_levels_are_orthogonal(self) -> None:
        t = np.linspace(-2, 3, 100_001)
        splines, coarse, fine = _table(t, 4, 2)
        for one, other in ((splines, coarse), (splines, fine), (coarse, fine)):
            inner = one.T @ other / np.sqrt(np.outer((one**2).sum(0), (other**2).sum(0)))
            assert np.abs(inner).max() < 1e-10

    def test_all_splines_of_the_finest_level_are_spanned(self) -> None:
        """On [0, 1] they are a basis, and hold the cubic polynomials."""
        t = np.linspace(0, 1, 500)
        ours, finest = np.hstack(_table(t, 4, 2)), _table(t, 16, 0)[0]
        assert ours.shape[1] == finest.shape[1] == np.linalg.matrix_rank(ours)
        for wanted in (finest, np.vander(t, 4)):
            rest = wanted - ours @ np.linalg.lstsq(ours, wanted, rcond=None)[0]
            assert np.abs(rest).max() < 1e-11

    def test_splines_sum_to_one(self) -> None:
        assert np.allclose(_table(np.linspace(0, 1, 50), 5, 0)[0].sum(1), 1)


@pytest.mark.parametrize("operator", [sx.Langevin(), sx.ScalarLangevin()], ids=str)
def test_mean_is_zero_by_a_fine_rule(operator) -> None:
    target = targets.skewed(1)
    nodes, weights = targets.grid(target, -17.0, 5.5, 40_001)
    g = laws.functions_of(Wavelets(2, operator=operator), target)
    laws.check_mean_on_grid(g, target.score, nodes, weights, laws.ON_GRID[Shape.KINKED])


@pytest.mark.parametrize("operator", [sx.Langevin(), sx.ScalarLangevin()], ids=str)
def test_what_a_rule_finds_of_pairs_falls_as_it_grows_finer(operator) -> None:
    """A spline's second derivative bends at every knot: a trapezoid rule errs by its spacing's square."""
    family = Wavelets(1, 3, pairs=True, operator=operator)
    x = np.random.default_rng(0).normal(size=(50, 2))
    state = family.setup(x, -x)

    def error(count: int) -> float:
        t = (np.arange(count) + 0.5) * 18 / count - 9
        weights = np.exp(-(t**2) / 2) / np.exp(-(t**2) / 2).sum()
        nodes = np.stack(np.meshgrid(t, t, indexing="ij"), axis=-1).reshape(-1, 2)
        g = np.asarray(family.feature_matrix(state, nodes, -nodes))
        both = np.outer(weights, weights).ravel()
        return float(np.max(np.abs(both @ g) / np.sqrt(both @ g**2)))

    assert error(400) < error(100) / 4


class TestFamily:
    @pytest.mark.parametrize("operator", [sx.Langevin(), sx.ScalarLangevin()], ids=str)
    @pytest.mark.parametrize("pairs", [False, True])
    def test_size(self, operator, pairs: bool) -> None:
        family = Wavelets(1, 3, pairs=pairs, operator=operator)
        x = np.random.default_rng(0).normal(size=(9, 3))
        features = family.feature_matrix(family.setup(x, -x), x, -x)
        assert features.shape == (9, family.size(None, 3))

    def test_zero_far_from_the_draws(self) -> None:
        x = np.random.default_rng(0).normal(size=(9, 2))
        family = Wavelets(2)
        far = family.features(family.setup(x, -x), jnp.full(2, 100.0), jnp.ones(2))
        assert not np.any(far)

    @pytest.mark.parametrize("settings", [(-1, 4), (2, 0)])
    def test_refusals(self, settings) -> None:
        with pytest.raises(ValueError, match="use 0 or more levels, and a cell or more"):
            Wavelets(*settings)


def test_a_jump_and_a_bump_are_followed() -> None:
    """What is left on new draws, against a polynomial: gains of about 39 and 350, against 4 and 1."""
    x, new = (
        np.random.default_rng(seed).normal(size=(n, 1)) for seed, n in ((0, 1000), (1, 10_000))
    )

    def functions(x):
        return np.hstack([x > 0.5, np.exp(-50 * (x - 0.7) ** 2)]) * 1.0

    f = {name: functions(x)[None, :, i] for i, name in enumerate(("jump", "bump"))}
    left = {}
    for family, penalty in ((Wavelets(4), sx.Ridge(1e-5)), (sx.Polynomial(4), None)):
        g = sx.fit(f, sx.Sample(x[None], -x[None]), family, penalty=penalty)
        left[type(family)] = (functions(new) - g(new, -new)).var(0) / functions(new).var(0)
    assert np.all(left[Wavelets] < [0.05, 0.02])
    assert np.all(left[Wavelets] < left[sx.Polynomial] / [3, 20])
