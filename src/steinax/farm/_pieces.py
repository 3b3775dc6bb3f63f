"""The work of a farm in pieces that are read one at a time."""

from collections.abc import Mapping, Sequence
from math import ceil, prod
from typing import Any, NamedTuple

import numpy as np

from ..data._integrands import IntegrandSpec
from ._batch import Batch

POSTERIORS = 256  # of a batch, at most
BYTES = 64e6  # of their draws and scores
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
        each = 16 * prod(batch.draws.shape[1:])
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


def _cut(f: Any, start: int, stop: int, shape: tuple[int, ...]) -> Any:
    """The integrands of some posteriors: arrays that begin (posterior, chain, draw) are cut."""
    if isinstance(f, Mapping):
        return {name: _cut(one, start, stop, shape) for name, one in f.items()}
    if tuple(getattr(f, "shape", ()))[:3] == tuple(shape[:3]):
        return np.asarray(f[start:stop])
    return f
