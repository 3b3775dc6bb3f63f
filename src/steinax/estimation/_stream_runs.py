"""How the draws of a stream are dealt out: runs of one chain and one fold, each a piece of work."""

import abc
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._progress import progress
from ..data import Sample, Stream
from ..data._lazy import LazySample
from ..solvers import Folds
from ..working import gather
from ..working._fingerprint import fingerprint

RUN = 2**28  # bytes of draws, scores, features or integrands in a piece of work: 256 MB
REREAD = (
    "the blocks were not the same when read a second time: give Stream a function that starts anew on "
    "every call, not one that returns a single iterator."
)


class Run(NamedTuple):
    """Consecutive draws of one chain, all in one fold."""

    chain: int
    start: int
    stop: int
    fold: int


@dataclass(frozen=True)
class Working:
    """Who does the work, and where finished pieces of it are kept."""

    client: Any = None
    keep: str | os.PathLike[str] | None = None
    threads: int | None = None

    def label(self, *things: object) -> str:
        """What tells a pass over these from others; nothing where no pieces are kept."""
        return "" if self.keep is None else fingerprint(*things)


class AbstractPass[R](abc.ABC):
    """What is done with each run of draws; it reads them itself, wherever it was sent."""

    source: LazySample | None

    @abc.abstractmethod
    def over(self, run: Run, blocks: Iterator[Sample]) -> R:
        """The result for a run whose draws are these."""

    def __call__(self, run: Run) -> R:
        assert self.source is not None
        source = self.source
        cuts = source.cuts(run.start, run.stop)
        return self.over(run, (source.read(run.chain, *cut) for cut in cuts))


def runs(folds: Folds, chains: int, length: int, rows: int) -> list[Run]:
    """All draws, cut where chains and folds end, and at every multiple of so many draws of a chain.

    The cut does not depend on who does the work, and so neither does the result.

    >>> [tuple(run) for run in runs(((0, 150), (150, 200)), chains=2, length=100, rows=80)]
    [(0, 0, 80, 0), (0, 80, 100, 0), (1, 0, 50, 0), (1, 50, 80, 1), (1, 80, 100, 1)]
    """
    found = []
    for fold, (start, stop) in enumerate(folds):
        for chain in range(start // length, -(-stop // length)):
            low, high = max(start - chain * length, 0), min(stop - chain * length, length)
            edges = [low, *range((low // rows + 1) * rows, high, rows), high]
            found += [Run(chain, a, b, fold) for a, b in pairwise(edges)]
    return found


def rows_in_run(source: LazySample | None, *columns: int) -> int:
    """How many draws make a piece of work, whole blocks of them.

    Args:
        source: that is read in blocks.
        columns: how many numbers of one kind or another there are for each draw.
    """
    rows = max(1, RUN // (8 * max(columns)))
    return rows if source is None else max(rows // source.block, 1) * source.block


def each[R](
    task: AbstractPass[R],
    stream: Stream,
    cut: Sequence[Run],
    length: int,
    working: Working,
    label: str,
    what: str,
) -> Iterator[tuple[Run, R]]:
    """The runs of a stream, in order, and what the pass makes of each."""
    if stream.source is not None:
        yield from zip(cut, gathered(task, cut, working, label, what), strict=True)
        return
    with progress(what):
        for run, block in _as_read(stream, cut, length):
            yield run, task.over(run, iter((block,)))


def gathered[R](
    work: Callable[[Run], R], cut: Sequence[Run], working: Working, label: str, what: str
) -> Iterator[R]:
    """The results of `work` on each run, in order, by whoever does the work."""
    folder = None if working.keep is None else Path(working.keep, what.replace(" ", "-"))
    return gather(
        work,
        cut,
        client=working.client,
        threads=working.threads,
        keep=folder,
        label=label,
        what=what,
    )


def _as_read(stream: Stream, cut: Sequence[Run], length: int) -> Iterator[tuple[Run, Sample]]:
    """The blocks of a stream that has one reader, cut where chains and folds end."""
    ends = np.array([run.chain * length + run.stop for run in cut])
    seen = 0
    for block in stream:
        here = 0
        while here < block.size:
            at = int(np.searchsorted(ends, seen + here, side="right"))
            if at == len(ends):
                raise ValueError(REREAD)
            stop = min(block.size, int(ends[at]) - seen)
            start = seen + here - cut[at].chain * length
            yield (
                Run(cut[at].chain, start, start + stop - here, cut[at].fold),
                _part(block, here, stop),
            )
            here = stop
        seen += block.size
    if seen != ends[-1]:
        raise ValueError(REREAD)


def _part(block: Sample, start: int, stop: int) -> Sample:
    if stop - start == block.size:
        return block
    also = None if block.variables is None else block.variables.part(0, slice(start, stop))
    return Sample(block.x[start:stop], block.score[start:stop], block.names, variables=also)
