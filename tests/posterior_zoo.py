"""Posteriors of many kinds, with draws, scores and functions of them, all of one shape."""

from pathlib import Path

import numpy as np

import steinax as sx

CHAINS, LENGTH, DIM = 4, 250, 3
SHAPE = (CHAINS, LENGTH, DIM)


def _normal(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    x = rng.normal(size=SHAPE)
    return x, -x


def _correlated(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A Gaussian whose dimensions correlate by 0.99."""
    root = np.linalg.cholesky(0.99 * np.ones((DIM, DIM)) + 0.01 * np.eye(DIM))
    z = rng.normal(size=SHAPE)
    return z @ root.T, -z @ np.linalg.inv(root)


def _autoregressive(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    x = rng.normal(size=SHAPE)
    for i in range(1, LENGTH):
        x[:, i] = 0.8 * x[:, i - 1] + 0.6 * x[:, i]
    return x, -x


def _antithetic(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    x = rng.normal(size=SHAPE)
    for i in range(1, LENGTH):
        x[:, i] = -0.6 * x[:, i - 1] + 0.8 * x[:, i]
    return x, -x


def _gumbel(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Skewed: the log of an exponential variable."""
    x = np.log(rng.exponential(size=SHAPE))
    return x, 1.0 - np.exp(x)


def _logistic(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    x = rng.logistic(size=SHAPE)
    return x, -np.tanh(x / 2)


def _student(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    x = rng.standard_t(5, size=SHAPE)
    return x, -6 * x / (5 + x**2)


def _scales(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Far from zero, in units that differ by a factor of a million."""
    z, scale = rng.normal(size=SHAPE), np.array([1e-3, 1.0, 1e3])
    return 5 * scale + z * scale, -z / scale


KINDS = (
    _normal,
    _correlated,
    _autoregressive,
    _antithetic,
    _gumbel,
    _logistic,
    _student,
    _scales,
)


def zoo(each: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Draws and scores, (posterior, chain, draw, dim): so many of each kind, kinds in turn."""
    rng = np.random.default_rng(seed)
    found = [kind(rng) for _ in range(each) for kind in KINDS]
    draws, scores = (np.stack(arrays) for arrays in zip(*found, strict=True))
    return draws, scores


# Functions that another process can import.

STOP: tuple[Path, int] | None = None  # while the file is there, that source interrupts the run


def square(x):
    """Of the first dimension."""
    return x[0] ** 2


def made(source: int) -> sx.Sample:
    """A sample from a seed, but not from 3."""
    if source == 3:
        raise OSError("there is no posterior three")
    x = np.random.default_rng(source).normal(size=(4, 50, 2))
    return sx.Sample(x, -x)


def counted(source: tuple[str, int]) -> sx.Sample:
    """A sample from a seed, which is written to a file."""
    visits, seed = source
    if STOP is not None and STOP[0].exists() and seed == STOP[1]:
        raise KeyboardInterrupt
    with Path(visits).open("a", encoding="ascii") as file:
        file.write(f"{seed} ")
    return made(seed + 10)
