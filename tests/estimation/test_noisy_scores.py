"""Scores that are right on average, as those of minibatches: no bias, a smaller gain, and the known one."""

import numpy as np
import pytest
from benchmarks.beyond import noisy_scores

import steinax as sx

pytestmark = pytest.mark.slow


def noisy(
    n: int, ratio: float, seed: int = 0, dim: int = 2
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draws of N(0, 1), their scores, and noise of this variance, uneven over the draws."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(4, n // 4, dim))
    uneven = np.sqrt(2) * (x[..., :1] > 0)  # of mean square 1
    return x, -x, np.sqrt(ratio) * uneven * rng.normal(size=x.shape)


@pytest.mark.parametrize("ratio", [0.1, 1.0, 10.0])
def test_the_gain_is_one_plus_signal_over_noise(ratio: float) -> None:
    """Of a mean under a Gaussian, whatever the shape of the noise; 20,000 independent draws.

    The share that is left, r / (1 + r), has a relative error below 2%: a chance below 1 in 1,000 for
    10%.
    """
    x, score, noise = noisy(20_000, ratio)
    est = sx.estimate("x", sx.Sample(x, score + noise), sx.Polynomial(1), audit="off")
    np.testing.assert_allclose(est.worth, 1 + 1 / ratio, rtol=0.1)


def test_the_gain_in_several_dimensions() -> None:
    r"""$\sigma_i^2 / (\sigma_i^2 - e_i^\top (J + V)^{-1} e_i)$, with correlated draws and noise."""
    rng = np.random.default_rng(1)
    root = np.array([[1.0, 0, 0], [0.5, 2.0, 0], [-0.3, 0.4, 0.5]])
    covariance, spread = root @ root.T, np.array([0.5, 0.2, 1.0])
    information = np.linalg.inv(covariance)
    x = rng.normal(size=(4, 5000, 3)) @ root.T
    score = -x @ information + spread * rng.normal(size=x.shape)
    est = sx.estimate("x", sx.Sample(x, score), sx.Polynomial(1), audit="off")
    explained = np.diag(np.linalg.inv(information + np.diag(spread**2)))
    np.testing.assert_allclose(est.worth, 1 / (1 - explained / np.diag(covariance)), rtol=0.1)


@pytest.mark.parametrize(
    "family, samples",
    [(sx.Polynomial(2), 160), (sx.KernelTranslates(), 40)],
    ids=["polynomial", "kernel"],
)
def test_no_bias(family: sx.families.AbstractFamily, samples: int) -> None:
    """Samples of 200 draws, noise as large as the scores: each mean error is within 4 of its standard
    errors. With 40 samples one of six is beyond by a chance of 1 in 600 (Student's), with 160 of 1 in 1,800.
    """
    errors = []
    for seed in range(1000, 1000 + samples):
        x, score, noise = noisy(200, 1.0, seed, dim=3)
        f = {"x": "x", "cosine": np.cos(x)}
        est = sx.estimate(f, sx.Sample(x, score + noise), family, audit="off")
        errors.append(est.value - np.repeat([0.0, np.exp(-0.5)], 3))
    errors = np.array(errors)
    z = errors.mean(axis=0) / (errors.std(axis=0, ddof=1) / np.sqrt(samples))
    assert np.abs(z).max() < 4


def test_the_score_that_made_the_step_is_not_that_of_where_it_led() -> None:
    """After one step of size h, E[1 + x' s] = h (1 + r), with the noisy score s that was stepped by.

    At the draw it was taken at, the mean is zero. 200,000 draws, 5 standard errors: 1 in a million.
    """
    x, score, noise = noisy(200_000, 4.0, dim=1)
    step, moved = 0.05, score + noise
    after = x + step * moved + np.sqrt(2 * step) * np.random.default_rng(9).normal(size=x.shape)
    for place, mean in ((x, 0.0), (after, step * 5.0)):
        feature = 1 + place * moved
        assert abs(feature.mean() - mean) < 5 * feature.std() / np.sqrt(x.size)


def test_noise_is_no_reason_to_refuse() -> None:
    """None of 20 samples at each level: the identities hold on average, and the audit asks no more."""
    for ratio in (1.0, 100.0):
        for seed in range(20):
            x, score, noise = noisy(400, ratio, seed)
            assert sx.audit(sx.Sample(x, score + noise)).passed


def test_the_automatic_choice_is_never_much_worse() -> None:
    """With noise of 100 times the scores nothing can be gained, and plain averages are what is given."""
    x, score, noise = noisy(400, 100.0)
    est = sx.estimate("x", sx.Sample(x, score + noise))
    assert est.worth.min() > 0.9


def test_centred_minibatches_restore_what_plain_ones_lose() -> None:
    """On SGLD's draws, four replicates of five means: gains of about 1 and about 50.

    Each is a geometric mean of five ratios of two mean squares of four: a factor of five from chance alone
    is once in a thousand (F with 4 and 4 degrees of freedom, the five coordinates independent).
    """
    rows = {row["scores"]: row for row in noisy_scores.measure(only="SGLD", rounds=4)}
    plain, centred = rows["minibatch of 100"], rows["centred, 100"]
    assert plain["gain, means"] < 5
    assert centred["gain, means"] > 10
    assert abs(centred["bias"]) < abs(centred["bias, plain"]) / 3
