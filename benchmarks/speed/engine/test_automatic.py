"""The whole automatic search against one exact fit by the method of the strongest peer, ZVCV's CF."""

from collections.abc import Callable

import numpy as np
import scipy.linalg

import steinax as sx

N, DIM, CHAINS = 1000, 10, 4
BEND = 0.25  # of a normal distribution, along every other coordinate
ZVCV = 0.16  # CPU seconds of ZVCV 2.1.3 on one core, November 2026: Gram 0.09, solve 0.07
RIDGE = 1e-8  # of the mean of the diagonal, so that the factorisation succeeds


def test_automatic(ratio) -> None:
    """Ten means and ten other integrands, on 4 chains of 250 draws in ten dimensions.

    The other side is the method of ZVCV in NumPy, which is faster than ZVCV itself.
    """
    x, score, f = bent_normal()
    ratio(searching(), lambda: control_functional(x, score, f), at_most=6.0, rounds=5)


def test_automatic_zvcv(benchmark) -> None:
    """The same against the time that ZVCV itself takes for one fit: R is not run here."""
    search = searching()
    search()  # compiles
    benchmark.pedantic(search, rounds=5)
    found = benchmark.stats.stats.min / ZVCV
    benchmark.extra_info |= {"bare": ZVCV, "ratio": found, "at_most": 6.0}


def searching() -> Callable[[], sx.Estimate]:
    """The search, on the draws of `bent_normal`."""
    shape = (CHAINS, N // CHAINS, -1)
    x, score, f = (one.reshape(shape) for one in bent_normal())
    sample = sx.Sample(x, score)
    return lambda: sx.estimate(f, sample)


def bent_normal() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draws and scores of a target on which no candidate is exact, ten means and ten other integrands."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(N, DIM))
    x, score = z.copy(), -z
    x[:, 1::2] += BEND * (z[:, ::2] ** 2 - 1)
    score[:, ::2] += 2 * BEND * z[:, ::2] * z[:, 1::2]
    turn = np.linalg.qr(rng.normal(size=(DIM, DIM)))[0]
    x, score = x @ turn.T, score @ turn.T
    others = np.sin(x[:, :4]), np.exp(x[:, 4:7] / 2), np.abs(x[:, 7:])
    return x, score, np.concatenate([x, *others], axis=1)


def control_functional(x: np.ndarray, score: np.ndarray, f: np.ndarray) -> np.ndarray:
    r"""$1^\top K^{-1} f / 1^\top K^{-1} 1$, with $K$ the Stein kernel matrix of a Gaussian kernel."""
    n, dim = x.shape
    inner, along, scores = x @ x.T, x @ score.T, score @ score.T
    size, own = np.diag(inner), np.diag(along)
    square = size[:, None] + size - 2 * inner
    both = along + along.T - own[:, None] - own
    rate = 1 / np.median(square)
    kernel = np.exp(-rate / 2 * square)
    kernel *= dim * rate - rate**2 * square - rate * both + scores
    kernel[np.diag_indices(n)] += RIDGE * np.trace(kernel) / n
    factor = scipy.linalg.cho_factor(kernel, lower=True, overwrite_a=True)
    solved = scipy.linalg.cho_solve(factor, np.concatenate([np.ones((n, 1)), f], axis=1))
    total = solved.sum(axis=0)
    return total[1:] / total[0]
