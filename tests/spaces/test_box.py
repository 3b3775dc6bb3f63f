"""Boxes: known answers, what is refused, and the box in the coordinates of a fit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import steinax as sx
from steinax._numerics import precision
from steinax.contrib import Diffusion
from steinax.spaces import BoxLangevin, WallDistance

UNIT = sx.spaces.Box(0.0, 1.0)
POWERS = {"x": lambda x: x[0], "square": lambda x: x[0] ** 2}


def _sample(draws, score, space=UNIT) -> sx.Sample:
    x = draws.reshape(4, -1, 1)
    return sx.Sample(x, score(x), space=space)


class TestKnownAnswers:
    """With a potential of degree two, polynomials of degree two are exact on these densities."""

    @pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (0.7, 2.0), (3.0, 0.5)])
    def test_beta(self, a: float, b: float) -> None:
        x = np.random.default_rng(0).beta(a, b, size=400).clip(1e-12, 1 - 1e-12)
        sample = _sample(x, lambda x: (a - 1) / x - (b - 1) / (1 - x))
        family = sx.Polynomial(2, operator=UNIT.potential_operator)
        est = sx.estimate(POWERS, sample, family)
        mean = a / (a + b)
        assert np.allclose(est.value, [mean, mean * (a + 1) / (a + b + 1)], atol=1e-10)

    def test_gamma_in_any_unit(self) -> None:
        x = 1e4 * np.random.default_rng(0).gamma(2.5, size=400)
        space = sx.spaces.Box(0.0, np.inf)
        sample = _sample(x, lambda x: 1.5 / x - 1e-4, space)
        est = sx.estimate(POWERS, sample, sx.Polynomial(2, operator=space.potential_operator))
        assert np.allclose(est.value, [2.5e4, 2.5 * 3.5e8], rtol=1e-10)

    def test_without_bounds_it_is_the_usual_operator(self) -> None:
        with precision(np.float64):
            x = jnp.array([0.3, -2.0])

            def u(x):
                return jnp.stack([jnp.sin(x), x**2])

            free = BoxLangevin(-np.inf, np.inf)(u, x, -x)
            assert np.allclose(free, sx.Langevin()(u, x, -x), rtol=1e-14)
            v = BoxLangevin(-np.inf, np.inf, on_fields=False)(jnp.sum, x, -x)
            assert np.allclose(v, sx.ScalarLangevin()(jnp.sum, x, -x), rtol=1e-14)

    def test_it_is_a_diffusion(self) -> None:
        x, y = jnp.array([0.3, 0.2]), jnp.array([0.6, 1.7])
        upper = np.array([1.0, np.inf])
        kernel = sx.kernels.SquaredExponential(1.3)
        for on_fields, u in ((True, jnp.sin), (False, lambda z: jnp.prod(jnp.sin(z)))):
            box = BoxLangevin(0.0, upper, on_fields)
            diffusion = Diffusion(WallDistance(0.0, upper), on_fields)
            assert np.allclose(box(u, x, -x), diffusion(u, x, -x))
            found, known = (one.representer(kernel, y, -y)(x) for one in (box, diffusion))
            assert np.allclose(found, known)


class TestAudit:
    def test_bounded_draws_without_the_space_are_told_of_it(self) -> None:
        rng = np.random.default_rng(0)
        cut = stats.truncnorm(-1.0, 1.0).rvs(1000, random_state=0).reshape(4, 250, 1)
        uniform, waiting = rng.uniform(size=(4, 250, 1)), rng.exponential(size=(4, 250, 1))
        for x, score in ((uniform, 0 * uniform), (waiting, 0 * waiting - 1), (cut, -cut)):
            (finding,) = sx.audit(sx.Sample(x, score)).fatal
            assert finding.kind == "boundary"
            assert "spaces.Box(lower, upper)" in finding.message

    def test_the_report_has_no_infinite_limit(self) -> None:
        x = np.random.default_rng(0).uniform(size=1000)
        assert "inf" not in repr(sx.audit(_sample(x, lambda x: 0 * x)))

    @pytest.mark.parametrize("seed", range(3))
    def test_mistakes_on_the_box_are_refused(self, seed: int) -> None:
        x = np.random.default_rng(seed).beta(2.0, 3.0, size=1000)

        def right(x):
            return 1 / x - 2 / (1 - x)

        assert sx.audit(_sample(x, right)).passed
        for wrong in (lambda x: -right(x), lambda x: x * (1 - x) * right(x) + 1 - 2 * x):
            assert not sx.audit(_sample(x, wrong)).passed


class TestRefusals:
    def test_bounds(self) -> None:
        with pytest.raises(ValueError, match="less than the upper"):
            sx.spaces.Box(1.0, 0.0)
        with pytest.raises(ValueError, match="one number for all dimensions"):
            sx.spaces.Box(np.zeros(2), np.ones(3))
        with pytest.raises(ValueError, match="3 bounds for 1 dimensions"):
            _sample(np.full(8, 0.5), lambda x: x, sx.spaces.Box(0.0, np.ones(3)))

    def test_draws(self) -> None:
        with pytest.raises(ValueError, match=r"1 draws lie outside .* a larger box"):
            _sample(np.array([0.5] * 7 + [1.5]), lambda x: x)

    def test_another_box(self) -> None:
        x = np.random.default_rng(0).uniform(size=400)
        family = sx.Polynomial(2, operator=sx.spaces.Box(0.0, 2.0).potential_operator)
        with pytest.raises(
            TypeError, match=r"box from 0\.0 to 2\.0, and the draws live on the box"
        ):
            sx.fit("x", _sample(x, lambda x: 0 * x), family)

    def test_streams_and_farms(self) -> None:
        sample = _sample(np.random.default_rng(0).uniform(size=400), lambda x: 0 * x)
        with pytest.raises(ValueError, match=r"a stream supports R\^d only"):
            sx.estimate("x", sx.Stream(lambda: sample.blocks(50), chains=4))


def test_units_of_the_coordinates_do_not_matter() -> None:
    rng = np.random.default_rng(0)
    x, unit = rng.uniform(size=(4, 50, 2)), np.array([1.0, 1000.0])
    f = {"f": np.sin(3 * x[..., 0] * x[..., 1])}
    one = sx.estimate(f, sx.Sample(x, 0 * x, space=UNIT))
    space = sx.spaces.Box(0.0, unit)
    other = sx.estimate(f, sx.Sample(x * unit, 0 * x, space=space))
    assert np.allclose(one.value, other.value, rtol=1e-8)
    assert np.allclose(one.mcse, other.mcse, rtol=1e-5)


class TestOpen:
    """With nothing given, a box is opened: logits and logs, with the Jacobian in the scores."""

    def test_scores_are_those_of_the_new_coordinates(self) -> None:
        space = sx.spaces.Box(
            np.array([0.0, 2.0, -np.inf, -np.inf]), np.array([3.0, np.inf, 1.0, np.inf])
        )

        def back(z):
            return jnp.stack(
                [3 / (1 + jnp.exp(-z[0])), 2 + jnp.exp(z[1]), 1 - jnp.exp(-z[2]), z[3]]
            )

        def log_density(x):
            return -jnp.sum(jnp.sin(x) + x**2)

        def moved(z):
            return log_density(back(z)) + jnp.linalg.slogdet(jax.jacfwd(back)(z))[1]

        with precision(np.float64):
            z = jnp.array([0.3, -1.0, 0.7, 2.0])
            x = back(z)
            score = jax.grad(log_density)(x)
            found = space.unbounded(np.asarray(x)[None, None], np.asarray(score)[None, None])
            assert found is not None
            np.testing.assert_allclose(found[0][0, 0], z, rtol=1e-12)
            np.testing.assert_allclose(found[1][0, 0], jax.grad(moved)(z), rtol=1e-12)

    def test_a_draw_on_a_face_keeps_the_box_closed(self) -> None:
        x = np.random.default_rng(0).uniform(size=(4, 100, 1))
        x[0, 0] = 0.0
        est = sx.estimate("x", sx.Sample(x, 0 * x, space=UNIT))
        assert abs(est.value[0] - 0.5) < 1e-8
        assert "BoxLangevin" in est.chosen[0]
