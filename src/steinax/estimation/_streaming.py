"""Estimates from draws that come in blocks: three passes, and memory for one block at a time."""

from collections.abc import Iterator, Sequence
from functools import reduce

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .._types import AnyArray, Points, Values
from ..data import AffineMap, Integrands, Sample, Stream, integrands
from ..data._integrands import IntegrandSpec
from ..families import AbstractFamily, AbstractLinearFamily
from ..kernels import resolve
from ..objectives import (
    AbstractObjective,
    AbstractPenalty,
    LeastSquares,
    choose_penalties,
)
from ..solvers import Folds, Problem
from ..solvers._columns import Columns, columns
from ..solvers._linear_system import Term, has_mean_square, linear_terms, unknowns
from ..solvers._moments import Moments, moments
from ._splits import AbstractSplit, Controlled, CrossFit
from ._stability import instability

KEPT = 1000  # draws, evenly spaced, for length-scales and landmarks


def stream_problem(
    stream: Stream,
    family: AbstractFamily,
    penalty: AbstractPenalty | Sequence[AbstractPenalty] | None,
    objective: AbstractObjective | None,
) -> tuple[Problem, AffineMap, int, Sample]:
    """The first pass: coordinates from the moments of all draws, the rest from a few of them."""
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
    total, kept = _first_pass(stream)
    n, dim = total.n, len(total.mean)
    _check(total, stream.chains)
    scale = np.sqrt(np.diag(total.gram) / (n - 1))
    root = np.linalg.cholesky(total.gram / np.outer(scale, scale) / (n - 1))
    coordinates = AffineMap(total.mean, scale[:, None] * root)
    x, score = coordinates(*kept)
    penalties = choose_penalties(penalty, family, n, dim)
    objective = LeastSquares() if objective is None else objective
    problem = Problem(resolve(family, x), penalties, objective, x, score, jnp.zeros((len(x), 1)))
    if unknowns(problem)[0] > n / 2 or has_mean_square(problem):
        raise ValueError(
            "a stream is fitted from moments, with fewer coefficients than draws and a penalty on "
            "the coefficients: use a lower degree, Landmarks(count), NativeNorm or NoPenalty."
        )
    return problem, coordinates, n, Sample(*kept)


def _first_pass(stream: Stream) -> tuple[Moments, tuple[np.ndarray, np.ndarray]]:
    """The moments of the draws, and up to 1,000 of them, with their scores, evenly spaced."""
    total, kept, stride, seen = None, [], 1, 0
    for block in stream:
        here = moments(block.x, np.zeros((block.size, 1)))
        total = here if total is None else total.merge(here)
        start = -seen % stride
        kept.extend(zip(block.x[start::stride], block.score[start::stride], strict=True))
        seen += block.size
        while len(kept) > KEPT:
            kept, stride = kept[::2], 2 * stride
    if total is None:
        raise ValueError(
            "the stream has no blocks: give a function that yields at least one Sample."
        )
    x, score = (np.stack(part) for part in zip(*kept, strict=True))
    return total, (x, score)


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


def stream_held_out(
    f: IntegrandSpec,
    stream: Stream,
    split: AbstractSplit,
    problem: Problem,
    coordinates: AffineMap,
    n: int,
) -> tuple[Integrands, Controlled]:
    """The second pass gathers each fold's moments, the third takes g away."""
    if not isinstance(split, CrossFit):
        raise ValueError("a stream is cross-fitted: use split=CrossFit(folds).")
    folds = split.boundaries(stream.chains, n // stream.chains)
    terms = linear_terms(problem, count=n - n / len(folds))
    gathered: list[Moments | None] = [None] * len(folds)
    for fold, a, values, _ in _pieces(f, stream, folds, terms, coordinates):
        here, before = moments(a, values), gathered[fold]
        gathered[fold] = here if before is None else before.merge(here)
    parts = [part for part in gathered if part is not None]
    if sum(part.n for part in parts) != n:
        raise ValueError(
            "the blocks were not the same when read a second time: give Stream a function that "
            "starts anew on every call, not one that returns a single iterator."
        )
    total = reduce(Moments.merge, parts)
    holding = _penalty(terms, problem.x, problem.score)
    intercepts, solved = zip(*(total.without(part).solve(holding) for part in parts), strict=True)
    plain, rest, names = [], [], ()
    for fold, a, values, names in _pieces(f, stream, folds, terms, coordinates):  # noqa: B007
        plain.append(values)
        rest.append(values - a @ solved[fold])
    note = f"{len(folds)} folds, moments of {len(holding)} coefficients from blocks of {n} draws"
    shape = (stream.chains, n // stream.chains, len(names))
    left = np.concatenate(rest)
    unstable = instability(left, np.stack(intercepts), folds)
    wanted = Integrands(np.concatenate(plain).reshape(shape), names)
    return wanted, Controlled(left.reshape(shape), unstable, None, note)


def _pieces(
    f: IntegrandSpec, stream: Stream, folds: Folds, terms: tuple[Term, ...], coordinates: AffineMap
) -> Iterator[tuple[int, np.ndarray, np.ndarray, tuple[str, ...]]]:
    """Every block, cut where folds end: the fold, the columns, the integrands and their names."""
    seen = 0
    ends = np.array([stop for _, stop in folds])
    for block in stream:
        wanted = integrands(f, block)
        values = wanted.values.reshape(block.size, -1)
        a = np.asarray(_columns(terms, *coordinates(block.x, block.score)))
        here = 0
        while here < block.size:
            fold = int(np.searchsorted(ends, seen + here, side="right"))
            stop = min(block.size, int(ends[fold]) - seen)
            yield fold, a[here:stop], values[here:stop], wanted.names
            here = stop
        seen += block.size


@eqx.filter_jit
def _columns(terms: tuple[Term, ...], x: Points, score: Points) -> Values:
    return jnp.concatenate([columns(term, x, score).matrix for term in terms], axis=1)


def _penalty(terms: tuple[Term, ...], x: Points, score: Points) -> AnyArray:
    parts: list[Columns] = [columns(term, x[:1], score[:1]) for term in terms]
    diagonal = [np.diag(np.asarray(part.penalty)) for part in parts]
    return np.diag(np.concatenate(diagonal))
