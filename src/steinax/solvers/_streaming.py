"""Passes over a stream: compute its coordinates, the moments of its features and sums of residuals."""

import abc
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np

from .._numerics import precision, to_numpy
from .._show import progress
from .._types import AnyArray, Points
from ..chains import (
    Adding,
    ChainStatistics,
    ChainSums,
    Sums,
    streamed_controlled,
    streamed_statistics,
)
from ..data import AffineMap, Integrands, IntegrandSpec, LazySample, Sample, Stream, integrands
from ..working import fingerprint, gather
from ._base import Problem
from ._exact import Term, TermColumns, linear_terms, term_columns
from ._moments import Moments, gathered_moments, moments
from ._regression import Folds, moves_of_means

RUN = 2**28  # bytes of draws, scores, features or integrands in one run: 256 MB
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
    """The client or threads that do the work, and the folder where results of runs are kept."""

    client: Any = None
    keep: str | os.PathLike[str] | None = None
    threads: int | None = None

    def label(self, *things: object) -> str:
        """A fingerprint that identifies a pass by its inputs; empty if no results are kept."""
        return "" if self.keep is None else fingerprint(*things)


class AbstractPass[R](abc.ABC):
    """Base class of passes: a computation on each run of draws, which reads the draws where it runs."""

    source: LazySample | None

    @abc.abstractmethod
    def over(self, run: Run, blocks: Iterator[Sample]) -> R:
        """Compute the result for a run, whose draws are in `blocks`."""

    def __call__(self, run: Run) -> R:
        assert self.source is not None
        source = self.source
        cuts = source.cuts(run.start, run.stop)
        return self.over(run, (source.read(run.chain, *cut) for cut in cuts))


def runs(folds: Folds, chains: int, length: int, rows: int) -> list[Run]:
    """Cut all draws into runs: where chains and folds end, and at every multiple of `rows` in a chain.

    The cut does not depend on the workers, so neither does the result.

    >>> [tuple(run) for run in runs(((0, 150), (150, 200)), chains=2, length=100, rows=80)]
    [(0, 0, 80, 0), (0, 80, 100, 0), (1, 0, 50, 0), (1, 50, 80, 1), (1, 80, 100, 1)]
    """
    cuts = []
    for fold, (start, stop) in enumerate(folds):
        for chain in range(start // length, -(-stop // length)):
            low, high = max(start - chain * length, 0), min(stop - chain * length, length)
            edges = [low, *range((low // rows + 1) * rows, high, rows), high]
            cuts += [Run(chain, a, b, fold) for a, b in pairwise(edges)]
    return cuts


def rows_in_run(source: LazySample | None, *columns: int) -> int:
    """The number of draws in a run, a multiple of the block size of the source.

    Args:
        source: the lazy sample that is read in blocks; None if there is none.
        columns: how many numbers there are for each draw, of several kinds: the largest counts.
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
    """Iterate over the runs of a stream, in order, with the result of the pass on each."""
    if stream.source is not None:
        yield from zip(cut, gathered(task, cut, working, label, what), strict=True)
        return
    with progress(what):
        for run, block in _as_read(stream, cut, length):
            yield run, task.over(run, iter((block,)))


def gathered[R](
    work: Callable[[Run], R], cut: Sequence[Run], working: Working, label: str, what: str
) -> Iterator[R]:
    """Iterate over the results of `work` on each run, in order, computed by the workers."""
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
    """Iterate over the blocks of a stream with a single reader, cut where chains and folds end."""
    ends = np.array([run.chain * length + run.stop for run in cut])
    offset = 0
    for block in stream:
        begin = 0
        while begin < block.size:
            index = int(np.searchsorted(ends, offset + begin, side="right"))
            if index == len(ends):
                raise ValueError(REREAD)
            stop = min(block.size, int(ends[index]) - offset)
            start = offset + begin - cut[index].chain * length
            yield (
                Run(cut[index].chain, start, start + stop - begin, cut[index].fold),
                _slice_block(block, begin, stop),
            )
            begin = stop
        offset += block.size
    if offset != ends[-1]:
        raise ValueError(REREAD)


def _slice_block(block: Sample, start: int, stop: int) -> Sample:
    if stop - start == block.size:
        return block
    variables = None if block.variables is None else block.variables.isel(draw=slice(start, stop))
    return Sample(
        block.x[start:stop],
        block.score[start:stop],
        block.names,
        variables=variables,
        verified=block.verified,
    )


KEPT_DRAWS = 1000  # draws, evenly spaced, for length-scales, landmarks and the audit
BLOCKS = 32  # blocks that these draws come from, but at least two of each chain
OF_CHAIN = 20  # the least number of these draws per chain, however many chains there are
DRAW_TILE = 2**20  # numbers in a tile of draws: 8 MB
WHAT = "finding coordinates"


@dataclass(frozen=True)
class _DrawMoments:
    """Compute the moments of the draws of a run."""

    source: LazySample

    def __call__(self, run: Run) -> Moments:
        rows = max(DRAW_TILE // self.source.dim, 1)
        tiles = self.source.draw_tiles(run.chain, run.start, run.stop, rows)
        with np.errstate(invalid="ignore", over="ignore"):
            total = gathered_moments((x, np.zeros((len(x), 0))) for x in tiles)
        if not np.isfinite(total.mean).all():  # read again with checks, to report the number
            for cut in self.source.cuts(run.start, run.stop):
                self.source.read_draws(run.chain, slice(*cut))
        return total


def first_pass(stream: Stream, working: Working) -> tuple[AffineMap, int, Sample]:
    """Find coordinates that standardise the draws; also return their number, and some of the draws."""
    source = stream.source
    total, kept = _from_reader(stream) if source is None else _from_source(source, working)
    _check(total, stream.chains)
    scale = np.sqrt(np.diag(total.gram) / (total.n - 1))
    factor = np.linalg.cholesky(total.gram / np.outer(scale, scale) / (total.n - 1))
    return AffineMap(total.mean, scale[:, None] * factor), int(total.n), kept


def _from_source(source: LazySample, working: Working) -> tuple[Moments, Sample]:
    kept = some_draws(source)
    folds = ((0, source.chains * source.length),)
    cut = runs(folds, source.chains, source.length, rows_in_run(source, 2 * source.dim))
    label = working.label(WHAT, kept.draws, kept.scores, np.array(cut))
    return reduce(Moments.merge, gathered(_DrawMoments(source), cut, working, label, WHAT)), kept


def some_rows(source: LazySample) -> list[slice]:
    """The draws to keep of each chain, the same for all chains: all, or evenly spaced in some blocks.

    Reading single draws means reading their blocks, so they come from few blocks: about 32 in all.
    """
    cuts = list(source.cuts(0, source.length))
    step = 1
    if source.chains * source.length > KEPT_DRAWS:
        blocks = min(len(cuts), max(BLOCKS // source.chains, 2))
        places = np.linspace(0, len(cuts) - 1, blocks).round().astype(int)
        cuts = [cuts[place] for place in np.unique(places)]
        step = _step(sum(stop - start for start, stop in cuts), source.chains)
    return [slice(start, stop, step) for start, stop in cuts]


def _step(length: int, chains: int) -> int:
    """The spacing of draws in chains of some length that keeps about 1,000 of them in all."""
    return -(-length // max(KEPT_DRAWS // chains, OF_CHAIN))


def some_draws(source: LazySample) -> Sample:
    """Read some draws of every chain, about 1,000 in all but at least 20 of each, as chains."""
    rows = some_rows(source)
    x, score = (
        np.stack(
            [np.concatenate([read(chain, kept) for kept in rows]) for chain in range(source.chains)]
        )
        for read in (source.read_draws, source.read_scores)
    )
    return Sample(x, score, source.names, verified=source.verified)


def _from_reader(stream: Stream) -> tuple[Moments, Sample]:
    """Compute the moments of a stream with a single reader, and thin its draws as they are read."""
    total, kept, stride, count, verified = None, [], 1, 0, True
    with progress(WHAT):
        for block in stream:
            block_moments = moments(block.x, np.zeros((block.size, 0)))
            total = block_moments if total is None else total.merge(block_moments)
            first = -count % stride
            kept.extend(zip(block.x[first::stride], block.score[first::stride], strict=True))
            count += block.size
            verified = verified and block.verified
            while len(kept) > KEPT_DRAWS:
                kept, stride = kept[::2], 2 * stride
    if total is None:
        raise ValueError(
            "the stream has no blocks: give a function that yields at least one Sample."
        )
    x, score = (np.stack(arrays) for arrays in zip(*kept, strict=True))
    return total, Sample(x, score, verified=verified)


def for_audit(stream: Stream, kept: Sample, n: int) -> Sample:
    """Return some draws of every chain, at the same evenly spaced places in each, as chains.

    Args:
        stream: the stream; with a single reader and several chains it is read once more.
        kept: some of its draws from the first pass, which did not know where its chains end.
        n: the number of draws.
    """
    if stream.source is not None or stream.chains == 1:
        return kept
    length = n // stream.chains
    step = _step(length, stream.chains)
    x, score, names, count = [], [], None, 0
    for block in stream:
        within = np.arange(count, count + block.size) % length % step == 0
        x.append(block.x[within])
        score.append(block.score[within])
        names = block.names
        count += block.size
    if count != length * stream.chains:
        raise ValueError(REREAD)
    shape = (stream.chains, -(-length // step), x[0].shape[1])
    draws, scores = (np.concatenate(arrays).reshape(shape) for arrays in (x, score))
    return Sample(draws, scores, names, verified=kept.verified)


def _check(total: Moments, chains: int) -> None:
    if total.n % chains:
        raise ValueError(
            f"the blocks hold {total.n} draws, which do not make {chains} chains of equal length: "
            "set Stream(read, chains=...), or leave out the remaining draws."
        )
    stuck = np.diag(total.gram) <= total.n * (1e-14 * total.mean) ** 2
    if stuck.any():
        raise ValueError(
            f"these dimensions never change: {np.flatnonzero(stuck)[:5].tolist()}. A constant has no "
            "posterior to average over: leave those columns out of draws and scores."
        )


TILE = 2**18  # numbers in a tile of features: 2 MB, which a core's own cache holds
STRIP = 2**20  # numbers that integrands read or fill at once: 8 MB


class Features(eqx.Module):
    """The map from draws to columns; its arrays are NumPy's, so that it can be sent to workers.

    Attributes:
        coordinates: the map from draws to standardised draws.
        terms: the family's terms, set up.
        backs: the factors that whiten each term's features by its own norm, numbers or matrices.
        size: the number of columns.
    """

    coordinates: AffineMap
    terms: tuple[Term, ...]
    backs: tuple[AnyArray, ...]
    size: int = eqx.field(static=True)

    def matrix(self, x: Points, score: Points) -> np.ndarray:
        """Compute the columns of all terms, (n, p)."""
        z, score_z = self.coordinates(x, score)
        columns = []
        for term, back in zip(self.terms, self.backs, strict=True):
            features = term.family.feature_matrix(term.state, z, score_z)
            columns.append(features * back if back.ndim == 0 else features @ back)
        return np.concatenate(columns, axis=1)

    def tiles(
        self, f: IntegrandSpec, blocks: Iterator[Sample], k: int | None
    ) -> Iterator[tuple[np.ndarray, Integrands]]:
        """Iterate over columns (n, p) and integrands of the draws of some blocks, a few thousand at a time.

        Args:
            f: the integrands.
            blocks: one-chain samples.
            k: the number of integrands, to bound the memory of their values; None if unknown.
        """
        dim = len(self.coordinates.shift)
        rows = _power_of_two(TILE // max(self.size, dim))
        for block in blocks:
            strip = rows if k is None else max(rows, _power_of_two(STRIP // max(k, dim)))
            for draws in _strips(block, strip):
                evaluated = integrands(f, draws)
                k = len(evaluated.names)
                values = evaluated.values.reshape(draws.size, -1)
                for start in range(0, draws.size, rows):
                    tile = slice(start, start + rows)
                    a = self.matrix(draws.x[tile], draws.score[tile])
                    yield a, Integrands(values[None, tile], evaluated.names)


def _power_of_two(n: int) -> int:
    """The largest power of two that is not larger than n, but at least 128."""
    return max(128, 1 << (max(n, 1).bit_length() - 1))


def _strips(block: Sample, rows: int) -> Iterator[Sample]:
    """Split a block into samples of at most `rows` draws, without checking its numbers again."""
    if block.size <= rows:
        yield block
    elif block.variables is not None:
        yield from block.blocks(rows)
    else:
        for start in range(0, block.size, rows):
            arrays = [array[:, start : start + rows] for array in (block.draws, block.scores)]
            yield eqx.tree_at(lambda sample: [sample.draws, sample.scores], block, arrays)


def features_of(
    problem: Problem, coordinates: AffineMap, count: float
) -> tuple[Features, np.ndarray]:
    """Build the features of a problem, and the penalty matrix of their coefficients (p, p).

    Args:
        problem: with the draws that the family is set up on.
        coordinates: the coordinates of these draws.
        count: the number of draws that each fit uses.
    """
    terms = linear_terms(problem, count=count)
    columns = [term_columns(term, problem.x[:1], problem.score[:1]) for term in terms]
    diagonal = np.concatenate(
        [_penalty(term, block) for term, block in zip(terms, columns, strict=True)]
    )
    backs = tuple(np.asarray(block.back) for block in columns)
    features = Features(*to_numpy((coordinates, terms, backs)), size=len(diagonal))
    return features, np.diag(diagonal)


def _penalty(term: Term, columns: TermColumns) -> np.ndarray:
    return np.full(columns.matrix.shape[1], 0.0 if term.is_free else 1.0)


class Gathered(NamedTuple):
    """Moments and summaries of some draws.

    Attributes:
        moments: the moments of columns and integrands.
        some: the columns at a few of the draws, (m, p), from which tails are judged.
        squares: the sum of the squares of each integrand about its mean, (k,).
        largest: the largest |f| of each integrand, (k,).
        names: the names of the integrands.
    """

    moments: Moments
    some: np.ndarray
    squares: np.ndarray
    largest: np.ndarray
    names: tuple[str, ...]

    def merge(self, other: "Gathered") -> "Gathered":
        """Merge with the summaries of other draws."""
        ours, theirs = self.moments, other.moments
        between = ours.n * theirs.n / (ours.n + theirs.n) * (theirs.mean_f - ours.mean_f) ** 2
        squares = self.squares + other.squares + between
        largest = np.maximum(self.largest, other.largest)
        some = np.concatenate([self.some, other.some])
        return Gathered(ours.merge(theirs), some, squares, largest, self.names)

    def left(self, coef: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The mean of f - g on these draws and the sum of squares about it, (k,), up to rounding."""
        moments = self.moments
        explained = (coef * (2 * moments.cross - moments.gram @ coef)).sum(axis=0)
        return moments.mean_f - moments.mean @ coef, np.maximum(self.squares - explained, 0.0)


@dataclass(frozen=True)
class MomentsPass(AbstractPass[Gathered]):
    """Compute the moments of columns and integrands over a run.

    Args:
        source: the lazy sample that is read; None if draws come from a single reader.
        f: the integrands.
        features: the map from draws to columns.
        k: the number of integrands; None if unknown.
        step: the spacing of the draws of a chain kept to judge the tails of the columns; None for none.
    """

    source: LazySample | None
    f: IntegrandSpec
    features: Features
    k: int | None
    step: int | None = None

    def over(self, run: Run, blocks: Iterator[Sample]) -> Gathered:
        """Compute the moments of a run, whose draws are in `blocks`."""
        largest, names, squares = np.zeros(()), (), _Squares()
        kept, place = [np.zeros((0, self.features.size))], run.start

        def tiles() -> Iterator[tuple[np.ndarray, np.ndarray]]:
            nonlocal largest, names, place
            for a, tile_f in self.features.tiles(self.f, blocks, self.k):
                names = tile_f.names
                largest = np.maximum(largest, np.abs(tile_f.values[0]).max(axis=0))
                squares.add(tile_f.values[0])
                if self.step is not None:
                    kept.append(a[-place % self.step :: self.step])
                place += len(a)
                yield a, tile_f.values[0]

        with precision(np.float64):
            total = gathered_moments(tiles())
        return Gathered(total, np.concatenate(kept), squares.squares, largest, names)


class _Squares:
    """Running sums of squares of columns about their means."""

    def __init__(self) -> None:
        self.squares = self._mean = np.zeros(())
        self._count = 0

    def add(self, values: np.ndarray) -> None:
        mean, n, before = values.mean(axis=0), len(values), self._count
        step, self._count = mean - self._mean, before + n
        between = before * n / self._count * step**2
        self.squares = self.squares + np.square(values - mean).sum(axis=0) + between
        self._mean = self._mean + n / self._count * step


class Fits(NamedTuple):
    """The fits without each fold, and the means and sizes of the integrands.

    Attributes:
        coef: the coefficients of each fit, (fold, p, k).
        intercepts: the intercepts of each fit, (fold, k).
        mean: the mean of f over all draws, (k,).
        largest: the largest |f| of each integrand, (k,).
        names: the names of the integrands.
    """

    coef: np.ndarray
    intercepts: np.ndarray
    mean: np.ndarray
    largest: np.ndarray
    names: tuple[str, ...]


class Summed(NamedTuple):
    """The sums of f and of f - g over a run."""

    plain: Sums
    residual: Sums


@dataclass(frozen=True)
class SeriesPass(AbstractPass[Summed]):
    """Sum f and f - g over a run, with g fitted to the other folds."""

    source: LazySample | None
    f: IntegrandSpec
    features: Features
    fits: Fits
    length: int
    batch: int

    @property
    def size(self) -> np.ndarray:
        """The scale of each integrand: its largest absolute value, (k,)."""
        return np.where(self.fits.largest > 0, self.fits.largest, 1.0)

    @property
    def centre(self) -> np.ndarray:
        """The mean of the fits' intercepts, which f - g is close to, (k,)."""
        return self.fits.intercepts.mean(axis=0)

    def over(self, run: Run, blocks: Iterator[Sample]) -> Summed:
        """Compute the sums of a run, whose draws are in `blocks`."""
        k, coef = len(self.size), self.fits.coef[run.fold]
        plain, residual = (
            Adding(run.start, run.stop, self.length, self.batch, k) for _ in range(2)
        )
        with precision(np.float64):
            for a, tile_f in self.features.tiles(self.f, blocks, k):
                values = tile_f.values[0]
                plain.add((values - self.fits.mean) / self.size)
                residual.add((values - a @ coef - self.centre) / self.size)
        return Summed(plain.sums(), residual.sums())

    def statistics(
        self, parts: Iterator[tuple[Run, Summed]], chains: int, folds: Folds
    ) -> tuple[ChainStatistics, ChainStatistics]:
        """Compute the statistics of f - g, including the variance between the fits, and those of f."""
        k = len(self.size)
        plain, residual = (ChainSums(chains, self.length, self.batch, k) for _ in range(2))
        by_fold = np.zeros((len(folds), k))
        for run, sums in parts:
            plain.add(run.chain, sums.plain)
            residual.add(run.chain, sums.residual)
            by_fold[run.fold] += sums.residual.powers[:, 0].sum(axis=0)
        sizes = np.diff(folds, axis=1)
        means = self.centre + self.size * by_fold / sizes
        unseen = (moves_of_means(means, self.fits.intercepts, folds) ** 2).sum(axis=0)
        controlled = streamed_controlled(residual, self.centre, self.size, unseen)
        return controlled, streamed_statistics(plain, self.fits.mean, self.size)
