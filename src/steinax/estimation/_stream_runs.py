"""Runs of draws of a stream, worked on one by one, and the coordinates found from them."""

import abc
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._progress import progress
from ..data import AffineMap, Sample, Stream
from ..data._stream import LazySample
from ..solvers import Folds
from ..solvers._moments import Moments, gathered_moments, moments
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
    also = None if block.variables is None else block.variables.isel(draw=slice(start, stop))
    return Sample(
        block.x[start:stop],
        block.score[start:stop],
        block.names,
        variables=also,
        verified=block.verified,
    )


KEPT = 1000  # draws, evenly spaced, for length-scales, landmarks and the audit
BLOCKS = 32  # that they come from, if that makes two of each chain
OF_CHAIN = 20  # draws of each chain at least, however many chains there are
TILE = 2**20  # numbers in a tile of draws: 8 MB
WHAT = "finding coordinates"


@dataclass(frozen=True)
class _DrawMoments:
    """The moments of the draws of a run."""

    source: LazySample

    def __call__(self, run: Run) -> Moments:
        rows = max(TILE // self.source.dim, 1)
        tiles = self.source.draw_tiles(run.chain, run.start, run.stop, rows)
        with np.errstate(invalid="ignore", over="ignore"):
            found = gathered_moments((x, np.zeros((len(x), 0))) for x in tiles)
        if not np.isfinite(found.mean).all():  # a single number would make it so
            for cut in self.source.cuts(run.start, run.stop):
                self.source.read_draws(run.chain, slice(*cut))
        return found


def first_pass(stream: Stream, working: Working) -> tuple[AffineMap, int, Sample]:
    """Coordinates in which the draws are standardised, how many draws, and some of them."""
    source = stream.source
    total, kept = _from_reader(stream) if source is None else _from_source(source, working)
    _check(total, stream.chains)
    scale = np.sqrt(np.diag(total.gram) / (total.n - 1))
    root = np.linalg.cholesky(total.gram / np.outer(scale, scale) / (total.n - 1))
    return AffineMap(total.mean, scale[:, None] * root), int(total.n), kept


def _from_source(source: LazySample, working: Working) -> tuple[Moments, Sample]:
    kept = some_draws(source)
    folds = ((0, source.chains * source.length),)
    cut = runs(folds, source.chains, source.length, rows_in_run(source, 2 * source.dim))
    label = working.label(WHAT, kept.draws, kept.scores, np.array(cut))
    return reduce(Moments.merge, gathered(_DrawMoments(source), cut, working, label, WHAT)), kept


def some_rows(source: LazySample) -> list[slice]:
    """The draws that are kept of each chain, the same of every one: all, or evenly spaced in some blocks.

    To read single draws is to read their blocks, so there are few of these: about 32 of all chains.
    """
    cuts = list(source.cuts(0, source.length))
    step = 1
    if source.chains * source.length > KEPT:
        blocks = min(len(cuts), max(BLOCKS // source.chains, 2))
        places = np.linspace(0, len(cuts) - 1, blocks).round().astype(int)
        cuts = [cuts[place] for place in np.unique(places)]
        step = _step(sum(stop - start for start, stop in cuts), source.chains)
    return [slice(start, stop, step) for start, stop in cuts]


def _step(length: int, chains: int) -> int:
    """How far apart draws are, if those that are kept of so many are about 1,000 in all."""
    return -(-length // max(KEPT // chains, OF_CHAIN))


def some_draws(source: LazySample) -> Sample:
    """Some draws of every chain, 1,000 in all or 20 of each, with the chains as they are."""
    rows = some_rows(source)
    x, score = (
        np.stack(
            [np.concatenate([read(chain, some) for some in rows]) for chain in range(source.chains)]
        )
        for read in (source.read_draws, source.read_scores)
    )
    return Sample(x, score, source.names, verified=source.verified)


def _from_reader(stream: Stream) -> tuple[Moments, Sample]:
    """The same from a stream with one reader, whose draws are thinned as they come."""
    total, kept, stride, seen, verified = None, [], 1, 0, True
    with progress(WHAT):
        for block in stream:
            here = moments(block.x, np.zeros((block.size, 0)))
            total = here if total is None else total.merge(here)
            first = -seen % stride
            kept.extend(zip(block.x[first::stride], block.score[first::stride], strict=True))
            seen += block.size
            verified = verified and block.verified
            while len(kept) > KEPT:
                kept, stride = kept[::2], 2 * stride
    if total is None:
        raise ValueError(
            "the stream has no blocks: give a function that yields at least one Sample."
        )
    x, score = (np.stack(part) for part in zip(*kept, strict=True))
    return total, Sample(x, score, verified=verified)


def for_audit(stream: Stream, kept: Sample, n: int) -> Sample:
    """Some draws of every chain, evenly spaced and the same of each, as chains.

    Args:
        stream: if it has one reader and several chains, it is read once more.
        kept: some draws of it, from the first pass, which did not know where its chains end.
        n: how many draws there are.
    """
    if stream.source is not None or stream.chains == 1:
        return kept
    length = n // stream.chains
    step = _step(length, stream.chains)
    x, score, names, seen = [], [], None, 0
    for block in stream:
        within = np.arange(seen, seen + block.size) % length % step == 0
        x.append(block.x[within])
        score.append(block.score[within])
        names = block.names
        seen += block.size
    if seen != length * stream.chains:
        raise ValueError(REREAD)
    shape = (stream.chains, -(-length // step), x[0].shape[1])
    draws, scores = (np.concatenate(part).reshape(shape) for part in (x, score))
    return Sample(draws, scores, names, verified=kept.verified)


def _check(total: Moments, chains: int) -> None:
    if total.n % chains:
        raise ValueError(
            f"the blocks hold {total.n} draws, which do not make {chains} chains of equal length: "
            "set Stream(read, chains=...), or leave out what is left over."
        )
    stuck = np.diag(total.gram) <= total.n * (1e-14 * total.mean) ** 2
    if stuck.any():
        raise ValueError(
            f"these dimensions never change: {np.flatnonzero(stuck)[:5].tolist()}. A constant has no "
            "posterior to average over: leave those columns out of draws and scores."
        )
