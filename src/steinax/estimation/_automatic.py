"""The estimate with nothing given: coordinates, candidates and their choice."""

import numpy as np

from .._types import AnyArray
from ..chains import chain_statistics
from ..data import Integrands, Sample, find_funnel
from ..data._affine import check_moves
from ..fitting import random_key, standardised
from ..objectives import LeastSquares
from ..solvers import Exact, Folds, Problem
from ._choice import Choice, Trial, choose
from ._pilot import DRAWS, Pilot, shortlist
from ._recipes import Recipe, affordable, polynomial_size
from ._scores import held_out_variance
from ._splits import CrossFit

FOLDS = 24  # or a few more, so that each chain has as many
SEPARATION = 4  # autocorrelation times that a fold should last
WHOLE = 3000  # draws up to which a kernel is centred on all of them
LANDMARKS = 500  # on which it is centred otherwise
COLUMNS = 120  # of a polynomial that is tried without a kernel beside one


def automatic(wanted: Integrands, sample: Sample) -> tuple[Choice, Folds]:
    """Try the candidates on the draws, and choose for each integrand."""
    check_moves(sample)
    funnel = find_funnel(sample.x, sample.score)
    x, score = (sample.x, sample.score) if funnel is None else funnel(sample.x, sample.score)
    x, score, _ = standardised(x, score)
    f = wanted.values.reshape(sample.size, -1)
    scale = np.maximum(f.std(axis=0), np.finfo(float).tiny)
    plain = chain_statistics(wanted.values)
    autocorrelation = np.maximum(sample.size / plain.ess, 1.0)
    split = blocks(sample.chains, sample.size // sample.chains, float(np.median(autocorrelation)))
    folds = split.boundaries(sample.chains, sample.size // sample.chains)
    problem = Problem(None, (), LeastSquares(), x, score, f / scale)  # type: ignore[arg-type]
    trials = [_trial(recipe, problem, folds) for recipe in _first(problem, folds)]
    for recipe in _shortlist(problem, folds):
        trials += _quieter_and_quieter(recipe, problem, folds)
    trials = [Trial(t.recipe, t.rest * scale, t.variance * scale**2) for t in trials]
    return choose(trials, autocorrelation), folds


def blocks(chains: int, length: int, autocorrelation: float) -> CrossFit:
    """Many folds, so that each fit has nearly all draws, but none shorter than draws depend."""
    per_chain = -(-FOLDS // chains)
    longest = int(length / (SEPARATION * autocorrelation))
    per_chain = min(per_chain, max(longest, 1))
    if per_chain * chains <= (CrossFit().folds or 8):
        return CrossFit()
    return CrossFit(per_chain * chains)


def _first(problem: Problem, folds: Folds) -> list[Recipe]:
    """Plain Monte Carlo and the polynomials."""
    n, dim = problem.x.shape
    train = n * (1 - 1 / len(folds))
    columns = COLUMNS if n <= WHOLE else 1000
    return [
        Recipe(degree)
        for degree in (0, 1, 2, 3)
        if affordable(degree, dim, train) and polynomial_size(degree, dim) <= columns
    ]


def _shortlist(problem: Problem, folds: Folds) -> list[Recipe]:
    """The most promising kernels, by a pilot on some of the draws."""
    n, dim = problem.x.shape
    count = min(DRAWS, n)
    if count < 2 * len(folds) or count < dim:
        return []
    some = np.linspace(0, n - 1, count).round().astype(int)
    edges = np.linspace(0, count, len(folds) + 1).round().astype(int)
    cut = tuple(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
    pilot = Pilot(problem.x[some], problem.score[some], problem.f[some], cut)
    length = 24 if n <= 2 * DRAWS else 5 if n <= 1500 else 3
    picked = shortlist(pilot.survey(), length)
    train = n * (1 - 1 / len(folds))
    richer = [
        Recipe(2, recipe.kernel, recipe.factor, recipe.noise)
        for recipe in picked
        if recipe.degree == 1 and affordable(2, dim, train) and not affordable(2, dim, count)
    ]
    return picked + richer


def _quieter_and_quieter(recipe: Recipe, problem: Problem, folds: Folds) -> list[Trial]:
    """A recipe at its noise and below, as long as that helps: more draws bear less penalty."""
    trials = [_trial(recipe, problem, folds)]
    while len(trials) < 4 and trials[-1].recipe.noise > 1e-13:
        trials.append(_trial(trials[-1].recipe.quieter(), problem, folds))
        before, after = (np.log(trial.variance).sum() for trial in trials[-2:])
        if not after < before - 0.01 * len(trials[-1].variance):
            break
    return trials


def _trial(recipe: Recipe, problem: Problem, folds: Folds) -> Trial:
    """Cross-fit one candidate."""
    n = problem.x.shape[0]
    if recipe.is_plain:
        return Trial(recipe, np.asarray(problem.f), np.var(np.asarray(problem.f), axis=0))
    landmarks = None if n <= WHOLE else LANDMARKS
    family, penalties = recipe.build(problem.x, problem.score, n * (1 - 1 / len(folds)), landmarks)
    whole = Problem(family, penalties, problem.objective, problem.x, problem.score, problem.f)
    held = Exact().crossfit(whole, folds, random_key(None))
    variance = np.ones(n) if held.variance is None else held.variance
    seen: AnyArray = held_out_variance(held.rest, variance)
    return Trial(recipe, np.asarray(held.rest), np.asarray(seen))
