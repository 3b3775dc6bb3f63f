"""The automatic choice: degenerate draws, exact answers, nothing to compile."""

import subprocess
import sys

import numpy as np
import pytest

import steinax as sx
import targets

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 100, 2))
SAMPLE = sx.Sample(X, -X)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("dim", "length", "seed"), [(1, 10, 13), (2, 10, 7), (40, 60, 2)])
def test_coordinates_that_move_in_one_fold_only(dim: int, length: int, seed: int) -> None:
    """Collinear in every other fold: such candidates are dropped, and an honest answer is left."""
    rng = np.random.default_rng(seed)
    for _ in range(5):
        x = rng.normal(size=(4, length, dim))
        x[..., :3] = 0.0
        x[1, 3:6, :3] = rng.normal(size=x[1, 3:6, :3].shape)
        est = sx.estimate({"f": x[..., 0]}, sx.Sample(x, -x), audit="off")
        assert np.isfinite(est.mcse).all()


@pytest.mark.filterwarnings("error")
def test_a_feature_that_is_zero_on_every_draw() -> None:
    x = np.tile([1.0, -1.0], 120).reshape(4, 60, 1)  # 1 + x s is zero
    est = sx.estimate("x", sx.Sample(x, -x), audit="off")
    assert np.isfinite(est.mcse).all()


def test_it_is_exact_where_polynomials_are() -> None:
    x = RNG.normal(size=(4, 500, 3))
    est = sx.estimate({"mean": "x", "square": lambda x: x[0] ** 2}, sx.Sample(x, -x))
    np.testing.assert_allclose(est.value, [0, 0, 0, 1], atol=1e-10)


def test_plain_stays_where_nothing_helps() -> None:
    noise = RNG.normal(size=(4, 100))
    est = sx.estimate({"noise": noise}, SAMPLE)
    assert est.worth[0] <= 1.0


@pytest.mark.parametrize(("length", "dim"), [(60, 2), (150, 3), (150, 6), (60, 40), (800, 2)])
def test_a_choice_compiles_nothing(length: int, dim: int) -> None:
    """A grid, searches, many dimensions, a part of many draws: arrays and names as integrands."""
    code = (
        "import jax, numpy as np, steinax as sx\n"
        "jax.config.update('jax_log_compiles', True)\n"
        f"x = np.random.default_rng(0).normal(size=(4, {length}, {dim}))\n"
        "sx.estimate({'x': 'x', 'f': np.sin(x[..., :1])}, sx.Sample(x, -x))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Finished XLA compilation" not in done.stderr


def test_more_draws_are_never_worse() -> None:
    """Of the same chains, also where a part begins to choose, at 1,000 draws. Before, a step was tenfold."""
    samples = [targets.skewed(6).sample(seed, chains=4, length=1000) for seed in (0, 1)]
    lengths = (100, 240, 260, 500, 1000)
    found = [
        [np.log(sx.estimate("x", one[:, :length], audit="off").mcse) for one in samples]
        for length in lengths
    ]
    typical = dict(zip(lengths, np.exp(np.mean(found, axis=(1, 2))), strict=True))
    assert typical[100] > typical[240] > typical[500] > typical[1000], typical
    assert typical[260] < 2 * typical[240], typical
