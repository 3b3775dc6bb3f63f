"""Thinned draws have less discrepancy than others, their weights the least, and estimates hold."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray

import steinax as sx


def banana(seed: int = 0, length: int = 100, **more) -> sx.Sample:
    a, b = np.random.default_rng(seed).normal(size=(2, 4, length))
    x = np.stack([a, b + a**2 / 2], axis=-1)
    return sx.Sample(x, np.stack([a * b - a, -b], axis=-1), **more)


def moments(x):
    return jnp.stack([x[0], x[1], x[0] ** 2])


TRUTH = np.array([0.0, 0.5, 1.0])


@pytest.fixture(scope="module")
def thinned() -> sx.thinning.Thinned:
    return sx.thin(banana(), 20)


def test_the_path_is_that_of_ksd(thinned: sx.thinning.Thinned) -> None:
    for t in (1, 7, 20):
        first = np.bincount(thinned.indices[:t], minlength=400)
        expected = sx.ksd(thinned.whole, weights=first)
        assert thinned.ksd[t - 1] == pytest.approx(expected, rel=1e-10)
    weights = np.bincount(thinned.indices, thinned.weights, minlength=400)
    assert thinned.weighted_ksd == pytest.approx(sx.ksd(thinned.whole, weights=weights), rel=1e-6)


def test_less_than_any_of_1000_random_subsets(thinned: sx.thinning.Thinned) -> None:
    """If thinning chose at random, a chance of 1 in 1,001."""
    sample = thinned.whole
    kernel = thinned.stein
    with jax.enable_x64(True):
        x, score = kernel.scored(sample)
        matrix = np.asarray(kernel.matrix(x, score, x, score))
    rng = np.random.default_rng(1)
    some = [rng.choice(400, 20, replace=False) for _ in range(1000)]
    assert thinned.ksd[-1] < min(np.sqrt(matrix[np.ix_(i, i)].mean()) for i in some)


def test_weights_are_the_best_there_are(thinned: sx.thinning.Thinned) -> None:
    """No move that keeps the sum lowers the discrepancy, and none that keeps all positive."""
    once = np.unique(thinned.indices)
    matrix = thinned.factor @ thinned.factor.T
    assert thinned.weights.sum() == pytest.approx(1.0)
    assert thinned.weighted_ksd < thinned.ksd[-1]
    free = np.bincount(thinned.indices, thinned.weights, minlength=400)[once]
    slope = matrix @ free
    np.testing.assert_allclose(slope, slope.mean(), rtol=1e-6)
    positive = sx.thin(thinned.whole, 20, nonnegative=True)
    held = np.bincount(positive.indices, positive.weights, minlength=400)[once]
    assert held.min() >= 0
    slope = matrix @ held
    level = held @ slope
    np.testing.assert_allclose(slope[held > 0], level, rtol=1e-6)
    assert (slope >= level * (1 - 1e-6)).all()
    rounding = 1 + 1e-12
    assert thinned.weighted_ksd <= rounding * positive.weighted_ksd
    assert positive.weighted_ksd <= positive.ksd[-1]


def test_what_is_chosen_keeps_what_belongs_to_it() -> None:
    plain = banana()
    tau = np.exp(plain.draws[..., 0])
    theta = xarray.Dataset({"tau": (("chain", "draw"), tau)})
    sample = banana(variables=theta, diverging=tau > 2)
    thinned = sx.thin(sample, 10)
    assert np.array_equal(thinned.sample.draws[0], sample.x[thinned.indices])
    assert np.array_equal(thinned.sample.scores[0], sample.score[thinned.indices])
    own = tau.reshape(-1)[thinned.indices]
    assert np.array_equal(thinned.sample.diverging[0], own > 2)
    np.testing.assert_allclose(thinned.average("tau"), thinned.weights @ own)
    np.testing.assert_allclose(thinned.average({"tau": own[None]}), thinned.weights @ own)


def test_a_warm_up_is_passed_over() -> None:
    """A fifth of the draws is far away: the plain mean is wrong by 1, the thinned one is not."""
    x = np.random.default_rng(0).normal(size=(1, 400, 2))
    x[:, :80] += 5.0
    thinned = sx.thin(sx.Sample(x, -x), 30)
    assert (thinned.indices >= 80).all()
    assert np.abs(thinned.average("x")).max() < 0.1


def test_in_whitened_coordinates_units_and_correlations_do_not_matter() -> None:
    sample, mixed = banana(), np.array([[1.0, 0.0], [-30.0, 0.5]])
    other = sx.Sample(sample.draws @ mixed.T, sample.scores @ np.linalg.inv(mixed))
    found = []
    for one in (sample, other):
        with jax.enable_x64(True):
            white = sx.data.standardise(one.x)
        found.append(sx.thin(one, 20, standardise=white))
    assert found[0].indices.tolist() == found[1].indices.tolist()
    np.testing.assert_allclose(found[0].weights, found[1].weights, rtol=1e-6)


def test_the_estimate_is_what_its_parts_are(thinned: sx.thinning.Thinned) -> None:
    """f - g is the weighted average on the chosen draws; elsewhere, its mean is the estimate."""
    sample, once = thinned.whole, np.unique(thinned.indices)
    est = thinned.estimate(moments, audit="off")
    f = np.stack([sample.x[:, 0], sample.x[:, 1], sample.x[:, 0] ** 2], axis=-1)
    with jax.enable_x64(True):
        x, score = thinned.stein.scored(sample)
        matrix = np.asarray(thinned.stein.matrix(x, score, x[once], score[once]))
    c = thinned.average(moments)
    g = matrix @ np.linalg.solve(matrix[once], f[once] - c)
    rest = np.delete(f - g, once, axis=0)
    ours = np.array(["thinned" in one for one in est.chosen])
    assert ours.any()
    np.testing.assert_allclose(est.value[ours], rest.mean(axis=0)[ours], rtol=1e-6)
    np.testing.assert_allclose(est.plain_value, f.mean(axis=0))
    assert (est.mcse <= est.plain_mcse).all()


@pytest.mark.slow
def test_the_estimate_s_errors_hold() -> None:
    """60 samples, three integrands: |z| > 3.5 has a chance of 1 in 2,000 each, 8% for one in 180; three
    of them are a chance below 1 in 5,000. The mean of z over 60 is within 4 of its standard errors, and
    its spread below 1.4, but for a chance below 1 in 1,000.
    """
    found = [sx.thin(banana(seed), 40).estimate(moments, audit="off") for seed in range(60)]
    z = np.array([(one.value - TRUTH) / one.mcse for one in found])
    assert (np.abs(z) > 3.5).sum() <= 2
    assert np.abs(z.mean(axis=0)).max() < 4 / np.sqrt(60)
    assert z.std(axis=0).max() < 1.4
    assert np.median([one.worth[:2] for one in found]) > 1.5


def test_refusals(thinned: sx.thinning.Thinned) -> None:
    with pytest.raises(ValueError, match="whole number of at least 1"):
        sx.thin(thinned.whole, 0)
    with pytest.raises(ValueError, match="give a smaller number"):
        sx.thin(thinned.whole, thinned.whole.size + 1)
    with pytest.raises(ValueError, match="choose at most half"):
        sx.thin(sx.Sample(thinned.whole.draws[:, :6], thinned.whole.scores[:, :6]), 24).estimate(
            "x"
        )
    with pytest.raises(NotImplementedError, match=r"use average\(f\)"):
        sx.thin(banana(log_weights=np.zeros((4, 100))), 5).estimate("x")


@pytest.mark.slow
def test_thinned_draws_beat_regular_ones_in_the_benchmark() -> None:
    """The Lotka-Volterra chain: a margin of 1.5, where the figures of five chains differ by 2 and more."""
    from benchmarks.beyond import thinning

    rows = thinning.measure(only="lotka_volterra", rounds=1)
    ksd = {row["draws"]: row["ksd"] for row in rows if row["m"] == 100}
    assert 1.5 * ksd["thinned"] < min(ksd["every k-th"], ksd["at random"])
    assert ksd["thinned, weighted"] < ksd["thinned, no negative weights"] <= ksd["thinned"]


def test_the_paper_is_cited(thinned: sx.thinning.Thinned) -> None:
    est = thinned.estimate("x", audit="off")
    keys = {one.key for one in sx.citations(est).references}
    assert {"riabiz2022optimal", "oates2017control"} <= keys
