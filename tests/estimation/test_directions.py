"""Integrands in many dimensions: directions in which they vary, and pairs of coordinates."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steinax as sx
from steinax.estimation import _directions
from steinax.estimation._draws import integration
from steinax.kernels._base import autodiff_stein
from steinax.kernels._structured import CoordinatePairs, Directional

pytestmark = pytest.mark.slow


def test_the_closed_form_is_the_autodiff_one() -> None:
    with jax.enable_x64(True):
        rng = np.random.default_rng(0)
        x, s, y, t = (jnp.asarray(row) for row in rng.normal(size=(4, 5)))
        direction = jnp.asarray(rng.normal(size=5))
        kernel = Directional(direction / jnp.linalg.norm(direction), 0.7, 2.0)
        for other, score in ((y, t), (x, s)):
            closed = kernel.stein(sx.Langevin(), x, s, other, score)
            slow = autodiff_stein(kernel, sx.Langevin(), x, s, other, score)
            np.testing.assert_allclose(closed, slow, rtol=1e-10)


def bump(dim: int, n: int, seed: int = 0) -> tuple[dict, sx.Sample]:
    """A sigmoid along one combination of independent Gaussian coordinates."""
    x = np.random.default_rng(seed).normal(size=(4, n // 4, dim))
    a = np.ones(dim) / np.sqrt(dim)
    values = 1 / (1 + np.exp(1 - 2 * (x @ a)))
    return {"f": values, "square": values**2}, sx.Sample(x, -x)


def truth() -> tuple[float, float]:
    z = np.linspace(-12, 12, 20_001)
    weight, f = np.exp(-(z**2) / 2), 1 / (1 + np.exp(1 - 2 * z))
    return weight @ f / weight.sum(), weight @ f**2 / weight.sum()


def test_helps_where_an_integrand_varies_along_one_direction() -> None:
    """Forty dimensions, 500 draws: the kernel and the powers each leave less than linear terms do."""
    found = sx.estimate(*bump(40, 500))
    linear = found.candidates.left[found.candidates.names.index("Polynomial(1)")]
    for name in ("Directional", "along its direction"):
        own = found.candidates.left[[name in one for one in found.candidates.names]]
        assert own.min() < linear.min() / 2


def test_more_dimensions_than_half_the_draws() -> None:
    """A polynomial without a penalty would have as many coefficients as draws; a ridge has not."""
    found = sx.estimate(*bump(300, 500))
    assert found.worth.min() > 2
    assert np.all(np.abs(found.value - truth()) < 4 * found.mcse)


def covered(dim: int, n: int) -> int:
    """How many of 60 intervals of 95% hold the truth."""
    hits = 0
    for seed in range(30):
        low, high = sx.estimate(*bump(dim, n, seed)).interval().T
        hits += int(((low <= truth()) & (truth() <= high)).sum())
    return hits


@pytest.mark.parametrize(("dim", "n"), [(100, 240), (40, 240)])
def test_intervals_cover_in_many_dimensions(dim: int, n: int) -> None:
    """No draw has a say in the directions it is used with (fewer than 50: probability 2e-4)."""
    assert covered(dim, n) >= 50


def off(dim: int, n: int) -> float:
    """The mean square of the errors of squares along their direction, in standard errors: 60 of them."""
    errors = []
    for seed in range(30):
        f, sample = bump(dim, n, seed)
        asked = integration(sx.data.integrands(f, sample), sample, np.full(2, float(n)))
        shapes = _directions.shapes_of(asked.draws)
        along = _directions.along_directions(asked.draws, shapes)[2]
        residual = along.held.residual * asked.scale
        errors.append((residual.mean(axis=0) - truth()) / (residual.std(axis=0) / np.sqrt(n)))
    return float(np.mean(np.square(errors)))


def test_no_draw_is_in_the_covariance_that_it_is_used_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the mutant, whose covariance is that of all draws, is seen. A mean of 60 beyond 1.7: 1 in 1,000."""

    class Leaking(_directions.Shape):
        def __init__(self, draws, group, slopes=None):
            super().__init__(draws, group, slopes)
            self.covariance = np.corrcoef(draws.scaled[0].T)

    assert off(40, 240) < 1.7
    monkeypatch.setattr(_directions, "Shape", Leaking)
    assert off(40, 240) > 1.7


def test_the_direction_of_an_integrand_is_found_from_its_values() -> None:
    """A combination, a coordinate's square and a prediction, from 300 points in 40 dimensions."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 40))
    x = x / x.std(axis=0)
    slopes = rng.normal(size=40) / 6
    f = np.column_stack([x @ slopes, x[:, 2] ** 2, 1 / (1 + np.exp(-x @ slopes))])
    found = _directions.directions_of(x, f)
    wanted = np.column_stack([slopes, np.eye(40)[2], slopes])
    cosine = (found * wanted).sum(axis=0) / np.linalg.norm(found, axis=0)
    cosine /= np.linalg.norm(wanted, axis=0)
    assert (np.abs(cosine) > [1 - 1e-9, 1 - 1e-9, 1 - 1e-6]).all()


def test_slopes_are_those_of_refitting_with_the_best_strength() -> None:
    """The first integrand is linear and wants the weak penalty; the second is noise."""
    rng = np.random.default_rng(1)
    folds, strengths = ((0, 10), (10, 25), (25, 40)), np.array([0.7, 1e6])
    for dim in (7, 60):
        score, noise = rng.normal(size=(40, dim)), rng.normal(size=40)
        f = np.column_stack([3 * score[:, 0] + 0.1 * noise, noise])
        slopes = _directions._slopes(score, f, strengths, folds)
        for (start, stop), slope in zip(folds, slopes, strict=True):
            train = np.r_[0:start, stop:40]
            columns = np.column_stack([np.ones(len(train)), score[train]])
            for k, strength in enumerate(strengths):
                penalty = np.diag([0.0, *[strength] * dim])
                direct = np.linalg.solve(columns.T @ columns + penalty, columns.T @ f[train, k])
                np.testing.assert_allclose(slope[:, k], direct[1:], atol=1e-9)


def test_pairs_are_the_sum_over_components() -> None:
    """The Stein kernel of each component's own kernel, by automatic differentiation."""
    with jax.enable_x64(True):
        rng = np.random.default_rng(2)
        x, s, y, t = (jnp.asarray(row) for row in rng.normal(size=(4, 5)))
        kernel = CoordinatePairs(0.8)

        def part(i: int):
            def own(a, b):
                each = jnp.exp(-0.5 * ((a - b) / 0.8) ** 2)
                return each[i] * (1 + (each.sum() - each[i]) / 5)

            inner = lambda a: jax.grad(own, 1)(a, y)[i] + t[i] * own(a, y)  # noqa: E731
            return jax.grad(inner)(x)[i] + s[i] * inner(x)

        closed = kernel.stein(sx.Langevin(), x, s, y, t)
        np.testing.assert_allclose(closed, sum(part(i) for i in range(5)), rtol=1e-10)
        with pytest.raises(NotImplementedError, match="Langevin"):
            kernel.stein(sx.ScalarLangevin(), x, s, y, t)


def test_pairs_help_where_coordinates_hardly_interact() -> None:
    """A product of ten functions of one coordinate each, 500 draws."""
    x = np.random.default_rng(0).normal(size=(4, 125, 10))
    found = sx.estimate({"f": np.prod(1 / (1 + 0.3 * np.tanh(x) ** 2), axis=-1)}, sx.Sample(x, -x))
    pairs = ["CoordinatePairs" in name for name in found.candidates.names]
    left = found.candidates.left[:, 0]
    assert left[pairs].min() < min(left[np.logical_not(pairs)]) / 2
