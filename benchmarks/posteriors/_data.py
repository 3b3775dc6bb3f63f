"""The reference draws of posteriordb, the integrands, and the blocks that they are cut into."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import steinax as sx
from steinax.data import kept_training

from .._data import data_folder

TOTAL = 10_000  # reference draws of each posterior
REFERENCE = 1000  # draws of the blocks whose estimates are the references


@dataclass(frozen=True)
class Posterior:
    """All draws of one posterior, and its integrands: the means first, then the squares."""

    name: str
    u: np.ndarray  # (TOTAL, dim), unconstrained
    score: np.ndarray  # (TOTAL, dim)
    f: np.ndarray  # (TOTAL, 2 k)
    names: tuple[str, ...]

    def block(
        self, start: int, n: int, training: bool = False
    ) -> tuple[sx.data.Integrands, sx.Sample]:
        """The integrands on `n` consecutive draws, and these draws as a sample of one chain.

        With `training`, the other draws of the same `REFERENCE` draws are its training points.
        """
        rows = slice(start, start + n)
        sample = sx.Sample(self.u[rows], self.score[rows])
        values = sx.data.Integrands(self.f[None, rows], self.names)
        if not training:
            return values, sample
        first = start // REFERENCE * REFERENCE
        others = np.setdiff1d(np.arange(first, first + REFERENCE), np.arange(start, start + n))
        sample = sample.with_training(sx.Sample(self.u[others], self.score[others]))
        kept = np.concatenate(kept_training(sample))
        return replace(values, training=self.f[others][kept]), sample


def folder() -> Path:
    """The folder of posteriors."""
    return data_folder("posteriordb")


def load(name: str) -> Posterior:
    """Read one posterior; parameters are squared after standardising, by constants of all draws."""
    with np.load(folder() / name / "draws.npz") as stored:
        theta = stored["draws"].reshape(TOTAL, -1)
        names = tuple(map(str, stored["names"]))
    with np.load(folder() / name / "scores.npz") as stored:
        u, score = stored["u"], stored["score"]
    squares = ((theta - theta.mean(axis=0)) / theta.std(axis=0)) ** 2
    labels = (*names, *(f"square of {one}" for one in names))
    return Posterior(name, u, score, np.hstack([theta, squares]), labels)


def starts(n: int, blocks: int) -> np.ndarray:
    """Where disjoint blocks of `n` draws begin, spread evenly; at `REFERENCE` they are all draws."""
    blocks = TOTAL // REFERENCE if n == REFERENCE else blocks
    if n * blocks > TOTAL:
        raise ValueError(
            f"{blocks} blocks of {n} draws overlap among {TOTAL}: ask for at most {TOTAL // n}."
        )
    return np.arange(blocks) * TOTAL // blocks


def apart(start: int, n: int) -> np.ndarray:
    """Which of the reference blocks share no draw with this block: a mask."""
    first = np.arange(0, TOTAL, REFERENCE)
    return (first + REFERENCE <= start) | (start + n <= first)
