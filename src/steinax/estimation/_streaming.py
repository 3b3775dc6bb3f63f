"""Estimates from draws that are read in blocks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import equinox as eqx
import numpy as np

from .._precision import precision, to_numpy
from .._show import describe
from .._types import AnyArray, Points
from ..auditing import heavy
from ..chains import ChainStatistics
from ..chains._streamed import (
    Adding,
    ChainSums,
    Sums,
    batch_length,
    streamed_controlled,
    streamed_statistics,
)
from ..data import AffineMap, Integrands, Sample, Stream, integrands
from ..data._integrands import IntegrandSpec, compiled, variables_asked
from ..data._stream import LazySample
from ..families import AbstractFamily, AbstractLinearFamily, Polynomial
from ..kernels import resolve
from ..objectives import AbstractObjective, AbstractPenalty, LeastSquares, choose_penalties
from ..solvers import AbstractSolver, Auto, Exact, Folds, Problem
from ..solvers._exact import Columns, Term, columns, has_mean_square, linear_terms, unknowns
from ..solvers._moments import Moments, fits_without_each, gathered_moments
from ._blocks import BETTER, left_out, may_be_heavy
from ._candidates import polynomial, polynomial_size
from ._splits import AbstractSplit, CrossFit, moves_of_means
from ._stream_runs import (
    KEPT,
    AbstractPass,
    Run,
    Working,
    each,
    first_pass,
    rows_in_run,
    runs,
    some_rows,
)

TILE = 2**18  # numbers in a tile of features: 2 MB, which a core's own cache holds
STRIP = 2**20  # numbers that integrands read or fill at once: 8 MB


class Features(eqx.Module):
    """Everything that turns draws into columns; its arrays are NumPy's, so that it can be sent away.

    Attributes:
        coordinates: from draws to standardised draws.
        terms: the family's terms, set up.
        backs: what whitens each term's features by its own norm, a number or a matrix.
        size: how many columns there are.
    """

    coordinates: AffineMap
    terms: tuple[Term, ...]
    backs: tuple[AnyArray, ...]
    size: int = eqx.field(static=True)

    def matrix(self, x: Points, score: Points) -> np.ndarray:
        """All columns, (n, p)."""
        z, score_z = self.coordinates(x, score)
        parts = []
        for term, back in zip(self.terms, self.backs, strict=True):
            features = term.family.feature_matrix(term.state, z, score_z)
            parts.append(features * back if back.ndim == 0 else features @ back)
        return np.concatenate(parts, axis=1)

    def tiles(
        self, f: IntegrandSpec, blocks: Iterator[Sample], k: int | None
    ) -> Iterator[tuple[np.ndarray, Integrands]]:
        """Columns (n, p) and integrands of the draws of some blocks, a few thousand at a time.

        Args:
            f: the integrands.
            blocks: one-chain samples.
            k: how many integrands there are, to bound the memory of their values; None if unknown.
        """
        dim = len(self.coordinates.shift)
        rows = _power(TILE // max(self.size, dim))
        for block in blocks:
            strip = rows if k is None else max(rows, _power(STRIP // max(k, dim)))
            for some in _strips(block, strip):
                wanted = integrands(f, some)
                k = len(wanted.names)
                values = wanted.values.reshape(some.size, -1)
                for start in range(0, some.size, rows):
                    part = slice(start, start + rows)
                    a = self.matrix(some.x[part], some.score[part])
                    yield a, Integrands(values[None, part], wanted.names)


def _power(n: int) -> int:
    """The largest power of two that is not larger, but at least 128."""
    return max(128, 1 << (max(n, 1).bit_length() - 1))


def _strips(block: Sample, rows: int) -> Iterator[Sample]:
    """A block, some draws at a time; its numbers are not checked again."""
    if block.size <= rows:
        yield block
    elif block.variables is not None:
        yield from block.blocks(rows)
    else:
        for start in range(0, block.size, rows):
            part = [one[:, start : start + rows] for one in (block.draws, block.scores)]
            yield eqx.tree_at(lambda some: [some.draws, some.scores], block, part)


def features_of(
    problem: Problem, coordinates: AffineMap, count: float
) -> tuple[Features, np.ndarray]:
    """The features of a problem, and the penalty matrix of their coefficients (p, p).

    Args:
        problem: with the draws that the family is set up on.
        coordinates: in which these are.
        count: how many draws each fit sees.
    """
    terms = linear_terms(problem, count=count)
    parts = [columns(term, problem.x[:1], problem.score[:1]) for term in terms]
    diagonal = np.concatenate(
        [_penalty(term, part) for term, part in zip(terms, parts, strict=True)]
    )
    backs = tuple(np.asarray(part.back) for part in parts)
    made = Features(*to_numpy((coordinates, terms, backs)), size=len(diagonal))
    return made, np.diag(diagonal)


def _penalty(term: Term, part: Columns) -> np.ndarray:
    return np.full(part.matrix.shape[1], 0.0 if term.is_free else 1.0)


JUDGED, LEAST = 10_000, 1000  # draws by which tails are judged, at most and at least
JUDGED_NUMBERS = 2**23  # in their columns: 64 MB


class Gathered(NamedTuple):
    """What is known of some draws.

    Attributes:
        moments: of columns and integrands.
        some: the columns of a few of the draws, (m, p), by which tails are judged.
        squares: the sum of the squares of each integrand about its mean, (k,).
        largest: |f|, (k,).
        names: of the integrands.
    """

    moments: Moments
    some: np.ndarray
    squares: np.ndarray
    largest: np.ndarray
    names: tuple[str, ...]

    def merge(self, other: "Gathered") -> "Gathered":
        """Those of both sets of draws together."""
        here, there = self.moments, other.moments
        between = here.n * there.n / (here.n + there.n) * (there.mean_f - here.mean_f) ** 2
        squares = self.squares + other.squares + between
        largest = np.maximum(self.largest, other.largest)
        some = np.concatenate([self.some, other.some])
        return Gathered(here.merge(there), some, squares, largest, self.names)

    def left(self, coef: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of f - g on these draws the mean and the sum of squares about it, (k,), to rounding."""
        one = self.moments
        explained = (coef * (2 * one.cross - one.gram @ coef)).sum(axis=0)
        return one.mean_f - one.mean @ coef, np.maximum(self.squares - explained, 0.0)


@dataclass(frozen=True)
class MomentsPass(AbstractPass[Gathered]):
    """Gathers the moments of columns and integrands over a run.

    Args:
        source: of the draws.
        f: the integrands.
        features: that make the columns.
        k: how many integrands there are, if that is known.
        step: of how many draws of a chain one is kept to judge the tails of the columns; None for none.
    """

    source: LazySample | None
    f: IntegrandSpec
    features: Features
    k: int | None
    step: int | None = None

    def over(self, run: Run, blocks: Iterator[Sample]) -> Gathered:
        """The moments of a run whose draws are these."""
        largest, names, seen = np.zeros(()), (), _Squares()
        some, place = [np.zeros((0, self.features.size))], run.start

        def tiles() -> Iterator[tuple[np.ndarray, np.ndarray]]:
            nonlocal largest, names, place
            for a, wanted in self.features.tiles(self.f, blocks, self.k):
                names = wanted.names
                largest = np.maximum(largest, np.abs(wanted.values[0]).max(axis=0))
                seen.add(wanted.values[0])
                if self.step is not None:
                    some.append(a[-place % self.step :: self.step])
                place += len(a)
                yield a, wanted.values[0]

        with precision(np.float64):
            found = gathered_moments(tiles())
        return Gathered(found, np.concatenate(some), seen.squares, largest, names)


def judging_step(family: AbstractFamily, p: int, chains: int, length: int) -> int | None:
    """Of how many draws of a chain one is kept to judge the tails of p columns; None for none.

    It depends on nothing else, and so neither does what is left out.
    """
    if not may_be_heavy(family):
        return None
    return -(-chains * length // min(max(JUDGED_NUMBERS // p, LEAST), JUDGED))


class _Squares:
    """The sums of the squares of columns about their means, as their rows come."""

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
    """Fits to all folds but one, for each fold, and what is known of f by now.

    Attributes:
        coef: (fold, p, k).
        intercepts: (fold, k).
        mean: of f over all draws, (k,).
        largest: |f|, (k,).
        names: of the integrands.
    """

    coef: np.ndarray
    intercepts: np.ndarray
    mean: np.ndarray
    largest: np.ndarray
    names: tuple[str, ...]


def of_best_degree(
    parts: list[Gathered], penalty: np.ndarray, folds: Folds, dim: int, degree: int
) -> tuple[Fits, tuple[str, ...], str]:
    """For each integrand the polynomial of least held-out variance, of all degrees up to a highest.

    Args:
        parts: of each fold, with the columns of the highest degree.
        penalty: (p, p).
        folds: where each starts and stops.
        dim: the number of dimensions.
        degree: the highest.

    Returns:
        The fits, the name of each integrand's polynomial, and a note.
    """
    fits, note = fits_without_heavy(parts, penalty, folds)
    least, best = _variance(parts, fits, folds), np.full(fits.coef.shape[-1], degree)
    for lower in range(degree - 1, 0, -1):
        used = np.arange(len(penalty)) < polynomial_size(lower, dim)
        other = _fits(parts, penalty, used)
        variance = _variance(parts, other, folds)
        better = variance < least
        fits = _mixed(better, other, fits)
        least, best = np.minimum(least, variance), np.where(better, lower, best)
    return fits, tuple(polynomial(int(one)) for one in best), note


def _mixed(first: np.ndarray, one: Fits, other: Fits) -> Fits:
    """The first fits for some integrands, (k,), and the others for the rest."""
    return other._replace(
        coef=np.where(first, one.coef, other.coef),
        intercepts=np.where(first, one.intercepts, other.intercepts),
    )


def fits_without_heavy(
    parts: list[Gathered], penalty: np.ndarray, folds: Folds
) -> tuple[Fits, str]:
    """The same without columns of heavy tails, unless the fit with them is far better (`without_heavy`).

    Args:
        parts: of each fold.
        penalty: (p, p).
        folds: where each starts and stops.

    Returns:
        The fits, and a note that says how many columns were left out.
    """
    whole = _fits(parts, penalty, np.ones(len(penalty), bool))
    some = np.concatenate([one.some for one in parts])
    bad = heavy(some, errors=0.0) if len(some) else np.zeros(len(penalty), bool)
    if not bad.any():
        return whole, ""
    light = _fits(parts, penalty, ~bad)
    keep = _variance(parts, whole, folds) < BETTER * _variance(parts, light, folds)
    if keep.all():
        return whole, ""
    return _mixed(keep, whole, light), left_out(bad, keep)


def _fits(parts: list[Gathered], penalty: np.ndarray, used: np.ndarray) -> Fits:
    """Fits of some of the columns; the coefficients of the others are zero."""
    total, columns = reduce(Gathered.merge, parts), [np.flatnonzero(used)] * len(parts)
    intercepts, coef = fits_without_each([one.moments for one in parts], penalty, columns)
    return Fits(coef, intercepts, total.moments.mean_f, total.largest, total.names)


def _variance(parts: list[Gathered], fits: Fits, folds: Folds) -> np.ndarray:
    """Of the estimates, autocorrelation left aside, (k,)."""
    each = [one.left(coef) for one, coef in zip(parts, fits.coef, strict=True)]
    means, squares = (np.stack(one) for one in zip(*each, strict=True))
    sizes = np.diff(folds, axis=1)
    n = sizes.sum()
    between = sizes * (means - (sizes * means).sum(axis=0) / n) ** 2
    moved = (moves_of_means(means, fits.intercepts, folds) ** 2).sum(axis=0)
    return (squares + between).sum(axis=0) / n**2 + moved


class Summed(NamedTuple):
    """The sums of f and of f - g over a run."""

    plain: Sums
    rest: Sums


@dataclass(frozen=True)
class SeriesPass(AbstractPass[Summed]):
    """Adds up f and f - g over a run, with g fitted to the other folds."""

    source: LazySample | None
    f: IntegrandSpec
    features: Features
    fits: Fits
    length: int
    batch: int

    @property
    def size(self) -> np.ndarray:
        """The units of each integrand: its largest entry."""
        return np.where(self.fits.largest > 0, self.fits.largest, 1.0)

    @property
    def centre(self) -> np.ndarray:
        """What f - g is near to, (k,)."""
        return self.fits.intercepts.mean(axis=0)

    def over(self, run: Run, blocks: Iterator[Sample]) -> Summed:
        """The sums of a run whose draws are these."""
        k, coef = len(self.size), self.fits.coef[run.fold]
        plain, rest = (Adding(run.start, run.stop, self.length, self.batch, k) for _ in range(2))
        with precision(np.float64):
            for a, wanted in self.features.tiles(self.f, blocks, k):
                values = wanted.values[0]
                plain.add((values - self.fits.mean) / self.size)
                rest.add((values - a @ coef - self.centre) / self.size)
        return Summed(plain.sums(), rest.sums())

    def statistics(
        self, parts: Iterator[tuple[Run, Summed]], chains: int, folds: Folds
    ) -> tuple[ChainStatistics, ChainStatistics]:
        """Of f - g, with the variance that the fits' moves add, and of f."""
        k = len(self.size)
        plain, rest = (ChainSums(chains, self.length, self.batch, k) for _ in range(2))
        by_fold = np.zeros((len(folds), k))
        for run, part in parts:
            plain.add(run.chain, part.plain)
            rest.add(run.chain, part.rest)
            by_fold[run.fold] += part.rest.powers[:, 0].sum(axis=0)
        sizes = np.diff(folds, axis=1)
        means = self.centre + self.size * by_fold / sizes
        unseen = (moves_of_means(means, self.fits.intercepts, folds) ** 2).sum(axis=0)
        better = streamed_controlled(rest, self.centre, self.size, unseen)
        return better, streamed_statistics(plain, self.fits.mean, self.size)


UNUSED = {
    "memory": "memory is for draws in memory, and a stream holds a few blocks at a time: leave memory "
    "out. Stream.from_arrays(..., block=) makes the blocks smaller.",
    "key": "key is for solvers that draw random numbers, and a stream is fitted exactly: leave key out.",
}


OPERATIONS = 2e12  # of a stream's moments that a third degree may take: a minute or two
COLUMNS = 1000  # that it may have
DRAWS = 20  # for each of its columns, at least


def stream_degree(n: int, dim: int) -> int:
    """The highest degree of the polynomials that are tried on a stream of n draws."""
    size = polynomial_size(3, dim)
    if size <= min(n / DRAWS, COLUMNS) and n * float(size) ** 2 <= OPERATIONS:
        return 3
    return 2 if polynomial_size(2, dim) <= n / 4 else 1


def stream_problem(
    stream: Stream,
    family: AbstractFamily | None,
    penalty: AbstractPenalty | Sequence[AbstractPenalty] | None,
    objective: AbstractObjective | None,
    working: Working,
) -> tuple[Problem, AffineMap, int, Sample]:
    """The first pass: coordinates from the moments of all draws, the rest from a few of them.

    Without a family there are polynomials, of which the second pass chooses.
    """
    _refuse(stream, family or Polynomial(1), working)
    coordinates, n, kept = first_pass(stream, working)
    family = family or Polynomial(stream_degree(n, kept.dim))
    some = np.linspace(0, kept.size - 1, min(kept.size, KEPT)).round().astype(int)
    x, score = coordinates(kept.x[some], kept.score[some])
    penalties = choose_penalties(penalty, family, n, kept.dim)
    objective = LeastSquares() if objective is None else objective
    problem = Problem(resolve(family, x), penalties, objective, x, score, np.zeros((len(x), 1)))
    if unknowns(problem)[0] > n / 2 or has_mean_square(problem):
        raise ValueError(
            "a stream is fitted from moments, with fewer coefficients than draws and a penalty on "
            "the coefficients: use a lower degree, Landmarks(count), NativeNorm or NoPenalty."
        )
    return problem, coordinates, n, kept


def stream_integrands(
    f: IntegrandSpec | Integrands, solver: AbstractSolver | None, working: Working, **unused: object
) -> IntegrandSpec:
    """The integrands, unless a stream would ignore what is given or, with `keep`, not know them again.

    Args:
        f: the integrands.
        solver: what was given.
        working: with the folder for what is kept.
        unused: arguments that are for draws in memory.
    """
    if isinstance(f, Integrands) or not (solver is None or isinstance(solver, Auto | Exact)):
        raise ValueError(
            "a stream is fitted exactly, from moments, block by block: give integrands by name or as "
            "functions of the draw, and no solver."
        )
    if isinstance(solver, Exact) and solver.dual:
        raise ValueError(
            "Exact(dual=True) has an unknown for each draw, and a stream is fitted from moments, in "
            "primal form: use Exact(), or give no solver."
        )
    for name, value in unused.items():
        if value is not None and value is not False:
            raise ValueError(UNUSED[name])
    working.label(f)  # refused now, and not after a pass over all draws
    return f


def _refuse(stream: Stream, family: AbstractFamily, working: Working) -> None:
    if not isinstance(family, AbstractLinearFamily):
        raise ValueError(
            "a stream is fitted from moments, which need a family that is linear in its parameters: "
            "use Polynomial, RandomFeatures or KernelTranslates, or a Sample in memory."
        )
    if any(isinstance(term, AbstractLinearFamily) and term.is_whole_space for term in family.terms):
        raise ValueError(
            "AllDraws() centres a kernel on every draw, and a stream keeps 1,000 of them: say how many "
            "centres it should have, by KernelTranslates(kernel, Landmarks(count))."
        )
    if family.keeps_coordinates:
        raise ValueError(
            "a stream's coordinates are whitened, and Subset speaks of the draws' own: give a Sample."
        )
    if stream.source is None and (working.client, working.keep) != (None, None):
        raise ValueError(
            "the blocks of this stream come from a function, which has one reader and no places to go back "
            "to: leave out client and keep, or use Stream.from_arrays or from_zarr."
        )


def stream_held_out(
    f: IntegrandSpec,
    stream: Stream,
    split: AbstractSplit,
    problem: Problem,
    coordinates: AffineMap,
    n: int,
    working: Working,
    choose: bool = False,
) -> tuple[ChainStatistics, ChainStatistics, tuple[str, ...], tuple[str, ...], str]:
    """The second pass gathers each fold's moments, the third takes g away.

    Returns:
        The statistics of f - g and of f, the integrands' names, what each was given, and a note. The degree
        of a polynomial is chosen for each integrand if asked for.
    """
    if not isinstance(split, CrossFit):
        raise ValueError("a stream is cross-fitted: use split=CrossFit(folds).")
    f, length, source = compiled(f), n // stream.chains, stream.source
    folds = split.boundaries(stream.chains, length)
    features, penalty = features_of(problem, coordinates, n - n / len(folds))
    k = None if source is None else _count(f, source)
    rows = rows_in_run(source, 2 * problem.x.shape[1], features.size, k or 1)
    cut = runs(folds, stream.chains, length, rows)
    label = working.label(f, features, folds, np.array(cut), _given(f, stream, working))
    gathered: list[Gathered | None] = [None] * len(folds)
    step = judging_step(problem.family, features.size, stream.chains, length)
    second = MomentsPass(source, f, features, k, step)
    for run, here in each(second, stream, cut, length, working, label, "gathering moments"):
        before = gathered[run.fold]
        gathered[run.fold] = here if before is None else before.merge(here)
    known = [part for part in gathered if part is not None]
    if choose and isinstance(problem.family, Polynomial):
        dim, degree = problem.x.shape[1], problem.family.degree
        fits, chosen, tails = of_best_degree(known, penalty, folds, dim, degree)
    else:
        fits, tails = fits_without_heavy(known, penalty, folds)
        chosen = (describe(problem.family),) * len(fits.names)
    batch = batch_length(stream.chains, length, len(fits.names))
    third = SeriesPass(source, f, features, fits, length, batch)
    label = working.label(label, fits, batch)
    parts = each(third, stream, cut, length, working, label, "finding standard errors")
    better, plain = third.statistics(parts, stream.chains, folds)
    note = f"{len(folds)} folds, moments of {features.size} coefficients from blocks of {n} draws"
    return better, plain, fits.names, chosen, note + tails


def _count(f: IntegrandSpec, source: LazySample) -> int:
    """How many integrands there are: f on a few draws tells."""
    return len(integrands(f, source.read(0, 0, min(source.length, 8))).names)


def _given(f: IntegrandSpec, stream: Stream, working: Working) -> object:
    """What f is given beside draws, which the first pass knows by their values: names and variables."""
    source = stream.source
    if source is None or source.variables is None or working.keep is None:
        return source and source.names
    held, rows = source.variables, some_rows(source)
    parts = (
        held.isel(slice(chain, chain + 1), some) for chain in range(source.chains) for some in rows
    )
    return source.names, [variables_asked(f, part) for part in parts]
