"""Real posteriors, real draws: a first look, on three of posteriordb, from 1,000 draws each."""

import json

import numpy as np
import pytest

import steinax as sx

BLOCKS = 3


def _gain(folder, family) -> np.ndarray:
    """Squared errors of the plain means over those of the estimates, means of unconstrained draws.

    Each of three blocks (chains) of 1,000 draws is compared with the estimate from all others.
    """
    stored = np.load(folder / "scores.npz")
    u, score = stored["u"].reshape(10, 1000, -1), stored["score"].reshape(10, 1000, -1)
    plain, better = [], []
    for block in range(BLOCKS):
        others = np.arange(10) != block
        reference = sx.estimate("x", sx.Sample(u[others], score[others]), family).value
        one = sx.estimate("x", sx.Sample(u[block], score[block]), family)
        plain.append((one.plain_value - reference) ** 2)
        better.append((one.value - reference) ** 2)
    return np.mean(plain, axis=0) / np.mean(better, axis=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "at_least"),
    [("arK-arK", 300), ("earnings-logearn_interaction", 300), ("sblri-blr", 300)],
)
def test_gain(data_dir, name, at_least):
    """Nearly Gaussian posteriors: at least 300 times less squared error, geometric mean of all."""
    folder = data_dir / "posteriordb" / name
    assert json.loads((folder / "meta.json").read_text())
    gain = _gain(folder, sx.Polynomial(2))
    assert np.exp(np.mean(np.log(gain))) > at_least, gain
