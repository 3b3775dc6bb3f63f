"""The work of a farm in pieces that are read one at a time."""

from collections.abc import Mapping, Sequence
from math import ceil, prod
from typing import Any, NamedTuple

import numpy as np

from ..data import Sample
from ..data._integrands import IntegrandSpec, columns
from ._batch import Batch

POSTERIORS = 256  # of a batch, at most
BYTES = 64e6  # of their draws, scores and integrands
SOURCES = 32  # files or samples


class Part(NamedTuple):
    """Some posteriors of a batch, and their integrands."""

    f: Any
    batch: Batch
    start: int
    stop: int

    def __repr__(self) -> str:
        return f"posteriors {self.start} to {self.stop - 1}"


class BatchPieces(Sequence[Part]):
    """The parts of a batch. Arrays in memory are cut; others are read by whoever does the work."""

    def __init__(self, f: IntegrandSpec, batch: Batch):
        self._f, self._batch = f, batch
        each = 8 * prod(batch.draws.shape[1:3]) * (2 * batch.draws.shape[3] + _width(f, batch))
        self._size = int(min(max(BYTES // each, 1), POSTERIORS))

    def __len__(self) -> int:
        return ceil(len(self._batch) / self._size)

    def __getitem__(self, index: Any) -> Any:
        start = range(len(self))[index] * self._size
        stop = min(start + self._size, len(self._batch))
        f = _cut(self._f, start, stop, self._batch.draws.shape)
        if isinstance(self._batch.draws, np.ndarray):
            part = self._batch.part(start, stop)
            return Part(f, part, 0, len(part))
        return Part(f, self._batch, start, stop)


class SourcePieces(Sequence[Sequence[Any]]):
    """Sources, some at a time."""

    def __init__(self, sources: Sequence[Any]):
        self._sources = sources

    def __len__(self) -> int:
        return ceil(len(self._sources) / SOURCES)

    def __getitem__(self, index: Any) -> Any:
        start = range(len(self))[index] * SOURCES
        return [self._sources[i] for i in range(start, min(start + SOURCES, len(self._sources)))]


def one_posterior(f: IntegrandSpec, batch: Batch, i: int) -> tuple[Any, Sample]:
    """The integrands and the sample of one posterior of a batch."""
    part, shape = batch.part(i, i + 1), tuple(batch.draws.shape)
    one = _without_axis(_cut(f, i, i + 1, shape), (1, *shape[1:3]))
    return one, Sample(part.draws[0], part.scores[0], batch.names)


def _width(f: IntegrandSpec, batch: Batch) -> int:
    """How many integrands there are, found on the first posterior, and not a value of them."""
    try:
        return len(columns(*one_posterior(f, batch, 0)).names)
    except Exception:  # whatever is wrong is said when they are evaluated
        return 1


def _without_axis(f: Any, shape: tuple[int, ...]) -> Any:
    if isinstance(f, Mapping):
        return {name: _without_axis(one, shape) for name, one in f.items()}
    return f[0] if tuple(getattr(f, "shape", ()))[:3] == shape else f


def _cut(f: Any, start: int, stop: int, shape: tuple[int, ...]) -> Any:
    """The integrands of some posteriors: arrays that begin (posterior, chain, draw) are cut."""
    if isinstance(f, Mapping):
        return {name: _cut(one, start, stop, shape) for name, one in f.items()}
    if tuple(getattr(f, "shape", ()))[:3] == tuple(shape[:3]):
        return np.asarray(f[start:stop])
    return f
