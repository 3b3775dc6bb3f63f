"""The estimate with nothing given, where draws live in a space that has families of its own."""

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import cast

import equinox as eqx
import numpy as np

from .._show import describe
from .._types import AnyArray
from ..data import Integrands, Sample
from ..families import AbstractFamily, AbstractLinearFamily, KernelTranslates
from ..fitting import prepare
from ..kernels import AbstractKernel
from ..solvers import Folds, Problem
from ..solvers._penalty_grid import held_out_nested
from ..solvers._problem import LeftOut
from ..solvers._rows import root_of, scaled
from ._choice import Choice
from ._large import landmark_errors
from ._least_squares import cross_fit
from ._matrices import columns_of, gram_of, median_variance, thinned
from ._question import ask
from ._trials import Tried, plain_trial, shortlist, trial_of

NOISES = (1e-1, 1e-3, 1e-5, 1e-7)  # in units of the kernel's median variance
NOISES_OF_STATES = NOISES[:2]  # with less, states that were seen say nothing of others
PAIRS = 1000  # draws up to which kernels are centred on all of them, and that choose among more


@dataclass(frozen=True)
class Candidate:
    """A family of a space without a penalty, and a kernel with one; neither is plain Monte Carlo."""

    beside: AbstractLinearFamily | None = None
    translates: KernelTranslates | None = None
    noise: float = 0.0

    @property
    def kernel(self) -> type[AbstractKernel] | None:
        """The kind of kernel, if there is one."""
        return None if self.translates is None else type(self.translates.kernel)

    def __str__(self) -> str:
        terms = [] if self.beside is None else [describe(self.beside)]
        if self.translates is not None:
            terms.append(f"{describe(self.translates)}, noise {self.noise:.0e}")
        return " + ".join(terms) or "plain Monte Carlo"


def on_space(
    wanted: Integrands,
    sample: Sample,
    families: Sequence[AbstractLinearFamily],
    ess: AnyArray,
    quick: bool = False,
) -> Choice[Candidate]:
    """Try the families of a space on the draws, and choose for each integrand.

    Args:
        wanted: the integrands.
        sample: the draws and scores.
        families: of the space, with one kernel each at most.
        ess: the effective sample sizes of the integrands, (k,).
        quick: whether kernels are left out.
    """
    question, sample = ask(wanted, sample, ess), _in_double(sample)
    f, folds = question.f / question.scale, question.folds
    unit = Integrands(f.reshape(wanted.values.shape), wanted.names)
    discrete = sample.space is not None and sample.space.is_discrete
    noises = NOISES_OF_STATES if discrete else NOISES

    def trials() -> Iterator[Tried[Candidate]]:
        yield plain_trial(Candidate(), f, folds, root_of(sample.weights))
        for family in families:
            problem, _ = prepare(unit, sample, family, None, None)
            candidate = Candidate(*_parts(problem.family))
            if candidate.translates is None:
                yield _without_kernel(candidate, problem, folds)
            elif not quick:
                yield from _with_kernel(candidate, problem, noises, folds)

    return question.settle(trials())


def _parts(
    family: AbstractFamily,
) -> tuple[AbstractLinearFamily | None, KernelTranslates | None]:
    """A family's kernel, if it has one, and the rest of it."""
    kernels = [one for one in family.terms if isinstance(one, KernelTranslates)]
    others = [one for one in family.terms if not isinstance(one, KernelTranslates)]
    rest = reduce(operator.add, others) if others else None
    return cast(AbstractLinearFamily | None, rest), kernels[0] if kernels else None


def _without_kernel(candidate: Candidate, problem: Problem, folds: Folds) -> Tried[Candidate]:
    """A family by least squares in NumPy, with little to compile, unless its columns depend on each other."""
    columns = np.asarray(columns_of(candidate.beside, problem.x, problem.score))
    root = None if problem.root is None else np.asarray(problem.root)
    found = cross_fit(columns[:, 1:], np.asarray(problem.f), folds, root)
    if found is None:
        return _fitted(candidate, problem, 0.0, folds)
    return trial_of(candidate, found, root)


def _with_kernel(
    candidate: Candidate, problem: Problem, noises: tuple[float, ...], folds: Folds
) -> Iterator[Tried[Candidate]]:
    """A kernel at each noise: on all draws, or the best of a pilot where they are many."""
    if len(problem.x) <= PAIRS:
        yield from _at_each_noise(candidate, problem, noises, folds)
        return
    index, cut = thinned(folds, PAIRS)
    best = shortlist(_at_each_noise(candidate, problem.take(index), noises, cut))
    assert candidate.translates is not None
    size = float(median_variance(candidate.translates, problem.x, problem.score))
    for one, asked in best:
        yield replace(_fitted(one, problem, one.noise * size, folds), asked=asked)


def _at_each_noise(
    candidate: Candidate, problem: Problem, noises: tuple[float, ...], folds: Folds
) -> Iterator[Tried[Candidate]]:
    """A kernel on all pairs of draws, by itself and beside the other family, if there is one."""
    x, score, root = problem.x, problem.score, problem.root
    assert candidate.translates is not None
    matrix, size, worst = gram_of(candidate.translates, x, score)
    if not np.isfinite(worst):
        return
    matrix = scaled(scaled(matrix, root).T, root)
    columns = scaled(columns_of(candidate.beside, x, score), root)
    alone = replace(candidate, beside=None)
    each = [alone] if candidate.beside is None else [alone, candidate]
    sizes = (1, columns.shape[1])[: len(each)]
    for noise in noises:
        errors = held_out_nested(matrix, columns, problem.f, noise * size, folds, sizes, root)
        for i, one in enumerate(each):
            own = LeftOut(*(np.asarray(part)[i] for part in errors))
            yield trial_of(replace(one, noise=noise), own, root)


def _fitted(candidate: Candidate, problem: Problem, noise: float, folds: Folds) -> Tried[Candidate]:
    """A candidate without a matrix of all pairs."""
    points, root = (problem.x, problem.score, problem.f), problem.root
    parts = (candidate.beside, candidate.translates)
    return trial_of(candidate, landmark_errors(*parts, noise, points, folds, root), root)


def _in_double(sample: Sample) -> Sample:
    arrays = (np.asarray(one, np.float64) for one in (sample.draws, sample.scores))
    return eqx.tree_at(lambda one: (one.draws, one.scores), sample, tuple(arrays))
