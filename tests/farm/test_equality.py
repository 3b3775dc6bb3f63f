"""Each row of a farm is what `estimate` gives for its posterior alone."""

import numpy as np
import pytest

import steinax as sx
from posterior_zoo import KINDS, zoo
from steinax.auditing._identities import identities
from steinax.farm._batched import NUMBERS, compute, standardised_rows, surely_hold


def _functions(x):
    import jax.numpy as jnp

    return jnp.concatenate([x, jnp.stack([x[0] * x[1], jnp.tanh(x[2]), jnp.sum(x**2)])])


def _agree(rows: sx.farm.Estimates, i: int, alone: sx.Estimate, f: np.ndarray) -> None:
    rounding = 1e-13 * np.abs(f).max(axis=(0, 1))
    exact = np.asarray(alone.mcse) < 10 * rounding  # nothing is left of f but rounding
    for number in NUMBERS:
        here, there = getattr(rows, number)[i], np.asarray(getattr(alone, number))
        if number in ("value", "mcse", "plain_value", "plain_mcse"):
            np.testing.assert_array_less(np.abs(here - there), 1e-9 * np.abs(there) + rounding)
        else:
            np.testing.assert_allclose(here[~exact], there[~exact], rtol=1e-9, err_msg=number)


def test_a_few_posteriors() -> None:
    """A smooth integrand, noise, and one whose chains lie apart though their draws swing."""
    rng = np.random.default_rng(1)
    x = rng.logistic(size=(2, 4, 60, 2))
    swing = np.resize([1.0, 1.0, -1.0, -1.0], 60) + 0.5 * np.arange(4.0)[:, None]
    noise = rng.normal(size=(2, 4, 60))
    f = np.stack([np.exp(x[..., 0] / 3), noise, swing + 0.1 * noise], axis=-1)
    rows = sx.estimate_many(f, sx.Batch(x, -np.tanh(x / 2)))
    assert rows.ok.all(), rows
    for i in range(2):
        sample = sx.Sample(x[i], -np.tanh(x[i] / 2))
        _agree(rows, i, sx.estimate(f[i], sample, sx.Polynomial(2)), f[i])


def test_statuses_are_what_the_audit_says() -> None:
    """Scores that are off by a little and by much: a row is refused where the audit refuses it."""
    draws, scores = zoo(1)
    found = []
    for factor in (1.0, 0.9, 0.85, 0.7, -1.0):
        rows = sx.estimate_many(draws[..., :1], sx.Batch(draws, factor * scores))
        fatal = [
            sx.audit(sx.Sample(*one)).fatal for one in zip(draws, factor * scores, strict=True)
        ]
        expected = [one[0].kind if one else "ok" for one in fatal]
        assert rows.status.tolist() == expected, factor
        found += expected
    assert {"ok", "sign", "tempered"} <= set(found)


def test_a_chain_that_is_wrong_alone_is_refused() -> None:
    """By half a standard deviation in one chain of eight: the identities of all together hold."""
    x = np.random.default_rng(0).normal(size=(2, 8, 250, 2))
    scores = -x
    scores[1, 5] += 0.5
    rows = sx.estimate_many(x, sx.Batch(x, scores))
    assert rows.ok.tolist() == [True, False]
    assert "chain 5 alone fails" in rows.reason[1]


@pytest.mark.slow
@pytest.mark.parametrize("degree", [1, 2])
def test_a_zoo_of_posteriors(degree: int) -> None:
    draws, scores = zoo(4)
    rows = sx.estimate_many(_functions, sx.Batch(draws, scores), sx.Polynomial(degree))
    assert rows.value.shape == (4 * len(KINDS), 6)
    assert rows.ok.all(), rows
    for i in range(len(rows)):
        sample = sx.Sample(draws[i], scores[i])
        f = sx.data.integrands(_functions, sample)
        _agree(rows, i, sx.estimate(f, sample, sx.Polynomial(degree)), f.values)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("chains", "length", "dim"), [(1, 201, 2), (2, 75, 1), (3, 64, 2), (9, 31, 2), (11, 20, 1)]
)
def test_other_shapes(chains: int, length: int, dim: int) -> None:
    """Folds of unequal lengths, odd chains, one dimension."""
    rng = np.random.default_rng(1)
    x = rng.logistic(size=(3, chains, length, dim))
    scores, f = -np.tanh(x / 2), np.exp(x / 3)
    rows = sx.estimate_many(f, sx.Batch(x, scores))
    for i in range(3):
        _agree(rows, i, sx.estimate(f[i], sx.Sample(x[i], scores[i]), sx.Polynomial(2)), f[i])


@pytest.mark.slow
@pytest.mark.parametrize(
    "family", [sx.Polynomial(3), sx.KernelTranslates()], ids=["cubic", "kernel"]
)
def test_other_families_go_one_by_one(family: sx.families.AbstractFamily) -> None:
    draws, scores = zoo(1)
    part = slice(0, 2)
    rows = sx.estimate_many("x", sx.Batch(draws[part, :, :50], scores[part, :, :50]), family)
    for i in range(2):
        sample = sx.Sample(draws[i, :, :50], scores[i, :, :50])
        _agree(rows, i, sx.estimate("x", sample, family), sample.draws)


def test_few_draws_and_singular_fits_go_one_by_one() -> None:
    """Too few draws for the shared path, and draws of which one dimension is nearly another."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(2, 4, 250, 2))
    x[..., 1] = x[..., 0] + 1e-6 * x[..., 1]
    precision = np.linalg.inv(np.array([[1.0, 1.0], [1.0, 1.0 + 1e-12]]))
    scores = -x @ precision
    cases = [(x, scores), (x[:, :, :4, :1], -x[:, :, :4, :1])]
    for draws, gradients in cases:
        rows = sx.estimate_many("x", sx.Batch(draws, gradients), audit="off")
        for i in range(2):
            sample = sx.Sample(draws[i], gradients[i])
            alone = sx.estimate("x", sample, sx.Polynomial(2), audit="off")
            # up to rounding: BLAS sums in another order where f lies otherwise in memory, and 1e-6
            # of the columns is all that tells them apart
            np.testing.assert_allclose(rows.value[i], alone.value, rtol=1e-9)
            np.testing.assert_allclose(rows.mcse[i], alone.mcse, rtol=1e-9)
    at = (np.moveaxis(one, -1, 1) for one in (x, scores, x))
    assert compute(*at, None, 2, False).alone.all()


@pytest.mark.slow
def test_the_quick_look_never_passes_what_the_audit_refuses() -> None:
    """And leaves few right posteriors to it."""
    draws, scores = zoo(6, seed=3)
    n = draws.shape[1] * draws.shape[2]
    factors = np.array([1.0, 0.97, 0.9, 0.8, 1.2, -1.0])
    left = []
    for factor in factors:
        rows = (
            np.ascontiguousarray(np.moveaxis(one, -1, 1)).reshape(len(draws), -1, n)
            for one in (draws, factor * scores)
        )
        sure = surely_hold(standardised_rows(*rows), chains=4)
        truth = [identities(*one).hold for one in zip(draws, factor * scores, strict=True)]
        assert not np.any(sure & ~np.array(truth)), factor
        left.append(np.sum(~sure & np.array(truth)))
    assert left[0] <= 2, left
