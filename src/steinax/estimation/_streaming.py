"""Estimates from draws that come in blocks: three passes, and memory for a few blocks at a time."""

from collections.abc import Sequence

import jax.numpy as jnp

from .._show import describe
from ..chains import ChainStatistics
from ..chains._sums import batch_length
from ..data import AffineMap, Sample, Stream, integrands
from ..data._compiled import compiled
from ..data._integrands import IntegrandSpec
from ..families import AbstractFamily, AbstractLinearFamily
from ..kernels import resolve
from ..objectives import AbstractObjective, AbstractPenalty, LeastSquares, choose_penalties
from ..solvers import Problem
from ..solvers._linear_system import has_mean_square, unknowns
from ._splits import AbstractSplit, CrossFit
from ._stream_coordinates import first_pass
from ._stream_features import features_of
from ._stream_moments import Gathered, MomentsPass, fits_without_each
from ._stream_runs import Working, each, fingerprint, rows_in_run, runs
from ._stream_series import SeriesPass


def stream_problem(
    stream: Stream,
    family: AbstractFamily,
    penalty: AbstractPenalty | Sequence[AbstractPenalty] | None,
    objective: AbstractObjective | None,
    working: Working,
) -> tuple[Problem, AffineMap, int, Sample]:
    """The first pass: coordinates from the moments of all draws, the rest from a few of them."""
    _refuse(stream, family, working)
    coordinates, n, kept = first_pass(stream, working)
    x, score = (jnp.asarray(part) for part in coordinates(kept.x, kept.score))
    penalties = choose_penalties(penalty, family, n, kept.dim)
    objective = LeastSquares() if objective is None else objective
    problem = Problem(resolve(family, x), penalties, objective, x, score, jnp.zeros((len(x), 1)))
    if unknowns(problem)[0] > n / 2 or has_mean_square(problem):
        raise ValueError(
            "a stream is fitted from moments, with fewer coefficients than draws and a penalty on "
            "the coefficients: use a lower degree, Landmarks(count), NativeNorm or NoPenalty."
        )
    return problem, coordinates, n, kept


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
) -> tuple[ChainStatistics, ChainStatistics, tuple[str, ...], str]:
    """The second pass gathers each fold's moments, the third takes g away.

    Returns:
        The statistics of f - g and of f, the integrands' names, and a note.
    """
    if not isinstance(split, CrossFit):
        raise ValueError("a stream is cross-fitted: use split=CrossFit(folds).")
    f, length, source = compiled(f), n // stream.chains, stream.source
    folds = split.boundaries(stream.chains, length)
    features, penalty = features_of(problem, coordinates, n - n / len(folds))
    k, identity = _pilot(f, stream)
    rows = rows_in_run(source, 2 * problem.x.shape[1], features.size, k or 1)
    cut = runs(folds, stream.chains, length, rows)
    label = fingerprint(identity, describe(problem.family), features, folds, cut)
    gathered: list[Gathered | None] = [None] * len(folds)
    second = MomentsPass(source, f, features, k)
    for run, here in each(second, stream, cut, length, working, label, "gathering moments"):
        before = gathered[run.fold]
        gathered[run.fold] = here if before is None else before.merge(here)
    fits = fits_without_each([part for part in gathered if part is not None], penalty)
    batch = batch_length(stream.chains, length, len(fits.names))
    third = SeriesPass(source, f, features, fits, length, batch)
    label = fingerprint(label, fits, batch)
    parts = each(third, stream, cut, length, working, label, "finding standard errors")
    better, plain = third.statistics(parts, stream.chains, folds)
    note = f"{len(folds)} folds, moments of {features.size} coefficients from blocks of {n} draws"
    return better, plain, fits.names, note


def _pilot(f: IntegrandSpec, stream: Stream) -> tuple[int | None, object]:
    """How many integrands there are, and numbers that tell them from others: f on a few draws."""
    if stream.source is None:
        return None, None
    found = integrands(f, stream.source.read(0, 0, min(stream.source.length, 8)))
    return len(found.names), (found.values, found.names)
