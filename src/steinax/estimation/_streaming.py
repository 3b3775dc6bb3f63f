"""Estimates from draws that come in blocks: three passes, and memory for a few blocks at a time."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from ..chains import ChainStatistics
from ..chains._sums import batch_length
from ..data import AffineMap, Integrands, Sample, Stream, integrands
from ..data._compiled import compiled
from ..data._integrands import IntegrandSpec, variables_asked
from ..data._lazy import LazySample
from ..families import AbstractFamily, AbstractLinearFamily
from ..kernels import resolve
from ..objectives import AbstractObjective, AbstractPenalty, LeastSquares, choose_penalties
from ..solvers import AbstractSolver, Auto, Exact, Problem
from ..solvers._linear_system import has_mean_square, unknowns
from ._splits import AbstractSplit, CrossFit
from ._stream_coordinates import KEPT, first_pass, some_rows
from ._stream_features import features_of
from ._stream_moments import Gathered, MomentsPass, fits_without_heavy, judging_step
from ._stream_runs import Working, each, rows_in_run, runs
from ._stream_series import SeriesPass

UNUSED = {
    "quick": "quick is for the choice of a family, and a stream has Polynomial(2) unless another is "
    "given: leave quick out.",
    "memory": "memory is for draws in memory, and a stream holds a few blocks at a time: leave memory "
    "out. Stream.from_arrays(..., block=) makes the blocks smaller.",
    "key": "key is for solvers that draw random numbers, and a stream is fitted exactly: leave key out.",
}


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
    some = np.linspace(0, kept.size - 1, min(kept.size, KEPT)).round().astype(int)
    x, score = (jnp.asarray(part) for part in coordinates(kept.x[some], kept.score[some]))
    penalties = choose_penalties(penalty, family, n, kept.dim)
    objective = LeastSquares() if objective is None else objective
    problem = Problem(resolve(family, x), penalties, objective, x, score, jnp.zeros((len(x), 1)))
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
    fits, tails = fits_without_heavy(known, penalty, folds)
    batch = batch_length(stream.chains, length, len(fits.names))
    third = SeriesPass(source, f, features, fits, length, batch)
    label = working.label(label, fits, batch)
    parts = each(third, stream, cut, length, working, label, "finding standard errors")
    better, plain = third.statistics(parts, stream.chains, folds)
    note = f"{len(folds)} folds, moments of {features.size} coefficients from blocks of {n} draws"
    return better, plain, fits.names, note + tails


def _count(f: IntegrandSpec, source: LazySample) -> int:
    """How many integrands there are: f on a few draws tells."""
    return len(integrands(f, source.read(0, 0, min(source.length, 8))).names)


def _given(f: IntegrandSpec, stream: Stream, working: Working) -> object:
    """What f is given beside draws, which the first pass knows by their values: names and variables."""
    source = stream.source
    if source is None or source.variables is None or working.keep is None:
        return source and source.names
    held, rows = source.variables, some_rows(source)
    parts = (held.part(chain, some) for chain in range(source.chains) for some in rows)
    return source.names, [variables_asked(f, part) for part in parts]
