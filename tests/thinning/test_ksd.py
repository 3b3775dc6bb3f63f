"""The discrepancy has its known values, and tells right scores from wrong ones."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import steinax as sx
from steinax import thinning
from steinax.thinning import _check

ROOT = Path(__file__).parents[2]


def gaussian(n: int, seed: int = 0, shift: float = 0.0) -> sx.Sample:
    x = np.random.default_rng(seed).normal(size=(4, n // 4, 2))
    return sx.Sample(x, shift - x)


def test_two_points_by_hand() -> None:
    """In one dimension k0 = -4 phi'' q - 2 phi' + 2 phi' (x - y)(t - s) + phi s t, phi = (1 + q)^(-1/2)."""
    x, s = np.array([0.5, -1.0]), np.array([-0.3, 1.4])
    q = (x[:, None] - x) ** 2
    phi, first, second = (1 + q) ** -0.5, -0.5 * (1 + q) ** -1.5, 0.75 * (1 + q) ** -2.5
    along = (x[:, None] - x) * (s - s[:, None])
    matrix = -4 * second * q - 2 * first + 2 * first * along + phi * np.outer(s, s)
    sample = sx.Sample(x[:, None], s[:, None])
    w = np.array([0.3, 0.7])
    assert sx.ksd(sample, standardise=False) == pytest.approx(np.sqrt(matrix.mean()), rel=1e-12)
    weighted = sx.ksd(sample, weights=10 * w, standardise=False)
    assert weighted == pytest.approx(np.sqrt(w @ matrix @ w), rel=1e-12)
    unbiased = sx.ksd(sample, standardise=False, unbiased=True)
    signed = np.sign(matrix[0, 1]) * np.sqrt(abs(matrix[0, 1]))
    assert unbiased == pytest.approx(signed, rel=1e-12)


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = gaussian(100)
    whole = [sx.ksd(sample, unbiased=unbiased) for unbiased in (False, True)]
    monkeypatch.setattr(thinning, "BLOCK", 30)
    parts = [sx.ksd(sample, unbiased=unbiased) for unbiased in (False, True)]
    np.testing.assert_allclose(parts, whole, rtol=1e-12)


def test_it_falls_as_the_root_of_the_draws_and_not_for_wrong_scores() -> None:
    """The square times n is about its mean, E k0(x, x), 16 seeds a size.

    For right scores it is a sum of weighted chi-squares, with a standard deviation of at most 1.5 of its
    mean; so the averages of 16 lie within 2.5 of each other's ratio but for a chance below 1 in 1,000.
    """
    like = gaussian(1600, 99)
    sizes = (100, 1600)
    right = [
        np.mean([n * sx.ksd(gaussian(n, seed), like=like) ** 2 for seed in range(16)])
        for n in sizes
    ]
    assert 1 / 2.5 < right[1] / right[0] < 2.5
    wrong = [sx.ksd(gaussian(n, 0, 0.5), like=like) for n in sizes]
    assert min(wrong) > 0.3
    assert sx.ksd(gaussian(1600), like=like) < 0.1


def test_the_sample_s_own_weights_count() -> None:
    """Draws of N(0, 1.5^2) and scores of N(0, 1): importance weights mend what is wrong."""
    x = 1.5 * np.random.default_rng(0).normal(size=(4, 250, 1))
    logs = -0.5 * x[..., 0] ** 2 * (1 - 1 / 1.5**2)
    weighted = sx.Sample(x, -x, log_weights=logs)
    found = sx.ksd(weighted)
    assert found < 0.3 * sx.ksd(sx.Sample(x, -x))
    assert found == pytest.approx(sx.ksd(sx.Sample(x, -x), weights=np.exp(logs)), rel=1e-10)


def test_like_makes_discrepancies_comparable() -> None:
    sample = gaussian(400)
    half = sx.Sample(sample.draws[:2], sample.scores[:2])
    whole = sx.ksd(half, like=sample)
    again = sx.ksd(sample, weights=np.repeat([1.0, 0.0], 200))
    assert whole == pytest.approx(again, rel=1e-10)


def test_refusals() -> None:
    sample = gaussian(40)
    with pytest.raises(TypeError, match=r"give a Sample\(draws, scores\)"):
        _check(np.zeros((3, 2)), None)
    with pytest.raises(TypeError, match="every tenth"):
        _check(sx.Stream(lambda: sample.blocks(10), 4), None)
    with pytest.raises(TypeError, match=r"give one of steinax\.kernels"):
        _check(sample, sx.Polynomial(2))
    with pytest.raises(ValueError, match="give one finite number for each draw"):
        sx.ksd(sample, weights=np.ones(39))
    with pytest.raises(ValueError, match="sum is positive"):
        sx.ksd(sample, weights=-np.ones(40))
    with pytest.raises(ValueError, match="samples of one target"):
        sx.ksd(sample, like=sx.Sample(sample.draws[..., :1], sample.scores[..., :1]))


@pytest.mark.slow
def test_memory_grows_with_the_draws_and_not_their_square() -> None:
    """20,000 draws: the matrix of all pairs would be 3.2 GB."""
    code = (
        "import numpy as np, steinax as sx\n"
        "from benchmarks._pinned import peak_megabytes as peak\n"
        "x = np.random.default_rng(0).normal(size=(1, 20_000, 2))\n"
        "sx.ksd(sx.Sample(x[:, :1500], -x[:, :1500]))\n"
        "before = peak()\n"
        "sx.ksd(sx.Sample(x, -x))\n"
        "print(peak() - before)"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    )
    assert float(out.stdout) < 100  # MB
