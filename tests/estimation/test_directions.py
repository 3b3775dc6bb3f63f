"""Integrands in many dimensions: directions in which they vary, and pairs of coordinates."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steinax as sx
from steinax.estimation import _along
from steinax.estimation._along import Ridge, _decomposed
from steinax.kernels._base import autodiff_stein
from steinax.kernels._directional import Directional
from steinax.kernels._pairs import CoordinatePairs

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


@pytest.mark.parametrize("quick", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_more_dimensions_than_half_the_draws(quick: bool) -> None:
    """A polynomial without a penalty would have as many coefficients as draws; a ridge has not."""
    found = sx.estimate(*bump(300, 500), quick=quick)
    assert found.worth.min() > 2
    assert np.all(np.abs(found.value - truth()) < 4 * found.mcse)


def covered(dim: int, n: int) -> int:
    """How many of 60 intervals of 95% hold the truth."""
    hits = 0
    for seed in range(30):
        low, high = sx.estimate(*bump(dim, n, seed), quick=True).interval().T
        hits += int(((low <= truth()) & (truth() <= high)).sum())
    return hits


@pytest.mark.parametrize(("dim", "n"), [(100, 240), (40, 240)])
def test_intervals_cover_in_many_dimensions(dim: int, n: int) -> None:
    """No draw has a say in the directions it is used with (fewer than 50: probability 2e-4)."""
    assert covered(dim, n) >= 50


def test_a_covariance_of_all_draws_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: held-out draws are among those that the covariance is taken of."""

    def leaking(x, score, slopes, folds):
        twice = np.concatenate([x, x]), np.concatenate([score, score])
        return features(*twice, slopes, folds)[: len(x)]

    features = _along._features
    monkeypatch.setattr(_along, "_features", leaking)
    assert covered(40, 240) < 50


def test_the_ridge_is_that_of_refitting() -> None:
    rng = np.random.default_rng(1)
    for dim in (7, 60):
        score, f = rng.normal(size=(40, dim)), rng.normal(size=(40, 2))
        folds = ((0, 10), (10, 25), (25, 40))
        rest, slopes = Ridge(*_decomposed(score), 0.7, f, folds).held_out()
        for (start, stop), slope in zip(folds, slopes, strict=True):
            train = np.r_[0:start, stop:40]
            columns = np.column_stack([np.ones(len(train)), score[train]])
            penalty = np.diag([0.0, *[0.7] * dim])
            direct = np.linalg.solve(columns.T @ columns + penalty, columns.T @ f[train])
            np.testing.assert_allclose(slope, direct[1:], atol=1e-9)
            np.testing.assert_allclose(
                rest[start:stop], f[start:stop] - score[start:stop] @ slope, atol=1e-9
            )


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
