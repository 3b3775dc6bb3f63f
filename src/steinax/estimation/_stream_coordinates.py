"""The first pass over a stream: coordinates from all draws, the rest from a few of them."""

from dataclasses import dataclass
from functools import reduce

import numpy as np

from .._progress import progress
from ..data import AffineMap, Sample, Stream
from ..data._lazy import LazySample
from ..solvers._moments import Moments, gathered_moments, moments
from ._stream_runs import Run, Working, fingerprint, gathered, rows_in_run, runs

KEPT = 1000  # draws, evenly spaced, for length-scales, landmarks and the audit
BLOCKS = 32  # at most, that they come from
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
    """Coordinates in which the draws are standardised, how many draws, and up to 1,000 of them."""
    source = stream.source
    total, kept = _as_read(stream) if source is None else _from_source(source, working)
    _check(total, stream.chains)
    scale = np.sqrt(np.diag(total.gram) / (total.n - 1))
    root = np.linalg.cholesky(total.gram / np.outer(scale, scale) / (total.n - 1))
    return AffineMap(total.mean, scale[:, None] * root), int(total.n), kept


def _from_source(source: LazySample, working: Working) -> tuple[Moments, Sample]:
    kept = some_draws(source)
    folds = ((0, source.chains * source.length),)
    cut = runs(folds, source.chains, source.length, rows_in_run(source, 2 * source.dim))
    label = f"{WHAT} {fingerprint(kept.x, kept.score, cut)}"
    return reduce(Moments.merge, gathered(_DrawMoments(source), cut, working, label, WHAT)), kept


def some_draws(source: LazySample) -> Sample:
    """Up to 1,000 draws, evenly spaced in up to 32 blocks: to read single draws is to read their blocks."""
    blocks = [
        (chain, *cut) for chain in range(source.chains) for cut in source.cuts(0, source.length)
    ]
    total, each = source.chains * source.length, 1
    if total > KEPT:
        places = np.linspace(0, len(blocks) - 1, min(len(blocks), BLOCKS)).round().astype(int)
        blocks = [blocks[place] for place in np.unique(places)]
        each = -(-sum(stop - start for _, start, stop in blocks) // KEPT)
    rows = [(chain, slice(start, stop, each)) for chain, start, stop in blocks]
    x = np.concatenate([source.read_draws(*some) for some in rows])
    score = np.concatenate([source.read_scores(*some) for some in rows])
    return Sample(x, score, source.names)


def _as_read(stream: Stream) -> tuple[Moments, Sample]:
    """The same from a stream with one reader, whose draws are thinned as they come."""
    total, kept, stride, seen = None, [], 1, 0
    with progress(WHAT):
        for block in stream:
            here = moments(block.x, np.zeros((block.size, 0)))
            total = here if total is None else total.merge(here)
            first = -seen % stride
            kept.extend(zip(block.x[first::stride], block.score[first::stride], strict=True))
            seen += block.size
            while len(kept) > KEPT:
                kept, stride = kept[::2], 2 * stride
    if total is None:
        raise ValueError(
            "the stream has no blocks: give a function that yields at least one Sample."
        )
    x, score = (np.stack(part) for part in zip(*kept, strict=True))
    return total, Sample(x, score)


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
