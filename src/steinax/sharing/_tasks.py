"""Several samples with their integrands, as the rows of one system."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from .._types import AnyArray, Points
from ..data import Integrands, Sample, integrands
from ..data._affine import check_moves
from ..data._integrands import IntegrandSpec
from ..estimation import CrossFit
from ..fitting import standardised
from ..solvers import Folds

type Specs = IntegrandSpec | Integrands | Sequence[IntegrandSpec | Integrands]

MOST = 4000  # draws of all tasks together: a matrix of all pairs is factorised


class Tasks(NamedTuple):
    """All draws, one task below the other."""

    samples: tuple[Sample, ...]
    wanted: tuple[Integrands, ...]

    @property
    def number(self) -> int:
        """How many tasks there are."""
        return len(self.samples)

    @property
    def task(self) -> np.ndarray:
        """The task of every row: (n,)."""
        return np.repeat(np.arange(self.number), [one.size for one in self.samples])

    @property
    def f(self) -> np.ndarray:
        """The integrands on every row: (n, k)."""
        flat = [one.values.reshape(-1, one.values.shape[-1]) for one in self.wanted]
        return np.concatenate(flat).astype(np.float64)

    def folds(self) -> list[Folds]:
        """Where the folds of each task start and stop among its own draws."""
        return [CrossFit().boundaries(one.chains, one.length) for one in self.samples]

    def points(self, shared: bool) -> tuple[AnyArray, AnyArray]:
        """Draws and scores of all rows in standard coordinates.

        Args:
            shared: whether these are the same for all tasks, or each task's own.
        """
        if shared:
            x, score = (
                np.concatenate(both) for both in zip(*map(_flat, self.samples), strict=True)
            )
            return standardised(x, score)[:2]
        each = [standardised(*_flat(one))[:2] for one in self.samples]
        x, score = (jnp.concatenate(both) for both in zip(*each, strict=True))
        return x, score


def tasks_of(f: Specs, samples: Sequence[Any]) -> Tasks:
    """The integrands on every sample; what cannot be one system is refused.

    Args:
        f: integrands for all samples, or a list with those of each.
        samples: one for each task.
    """
    samples = tuple(samples)
    for sample in samples:
        _check(sample)
    if len(samples) < 2 or len({sample.dim for sample in samples}) > 1:
        raise ValueError(
            f"{len(samples)} samples of dimensions {sorted({one.dim for one in samples})}: give two "
            "or more of the same dimension, or use estimate_many."
        )
    specs: list[Any] = f if isinstance(f, list) and not _are_names(f) else [f] * len(samples)
    if len(specs) != len(samples):
        raise ValueError(
            f"{len(specs)} integrands for {len(samples)} samples: give one for all, or a list with "
            "those of each sample."
        )
    wanted = tuple(integrands(one, sample) for one, sample in zip(specs, samples, strict=True))
    counts = sorted({len(one.names) for one in wanted})
    if len(counts) > 1:
        raise ValueError(f"tasks with {counts} integrands: give as many for every task.")
    size = sum(sample.size for sample in samples)
    if size > MOST:
        raise ValueError(
            f"{size} draws in all, and a matrix of all pairs is too large beyond {MOST}: give fewer "
            "tasks at a time, or use estimate_many, which gains as much where each has many draws."
        )
    return Tasks(samples, wanted)


def _check(sample: Any) -> None:
    if not isinstance(sample, Sample):
        raise TypeError(f"a {type(sample).__name__} is no sample: give a list of Sample.")
    if sample.weights is not None or sample.space is not None:
        raise ValueError(
            "related tasks need draws of equal weight on all of R^d: use estimate for a sample with "
            "weights or a space."
        )
    check_moves(sample)


def _are_names(f: list) -> bool:
    return all(isinstance(one, str) for one in f)


def _flat(sample: Sample) -> tuple[Points, Points]:
    return sample.x.astype(np.float64), sample.score.astype(np.float64)


class Part(NamedTuple):
    """Some folds of every task, to be left out: their rows come first in `order`."""

    order: np.ndarray  # of all rows
    folds: Folds  # where each starts and stops in that order
    training: int  # rows after them, the same number for all parts

    @property
    def held(self) -> int:
        """How many rows are left out."""
        return self.folds[-1][1]


def parts_of(folds: list[Folds], count: int) -> list[Part]:
    """Folds dealt into parts: fold j leaves out the j-th block of every task that has one.

    Args:
        folds: of each task, among its own draws.
        count: of parts.
    """
    starts = np.cumsum([0, *(own[-1][1] for own in folds)])
    blocks = [
        np.concatenate(
            [
                start + np.arange(*own[j])
                for own, start in zip(folds, starts[:-1], strict=True)
                if j < len(own)
            ]
        )
        for j in range(max(map(len, folds)))
    ]
    cut = []
    for mine in np.array_split(np.arange(len(blocks)), min(count, len(blocks))):
        held = np.concatenate([blocks[j] for j in mine])
        rest = np.setdiff1d(np.arange(starts[-1]), held)
        edges = np.cumsum([0, *(len(blocks[j]) for j in mine)]).tolist()
        cut.append((np.concatenate([held, rest]), tuple(pairwise(edges)), len(rest)))
    fewest = min(size for _, _, size in cut)
    return [Part(order, edges, fewest) for order, edges, _ in cut]
