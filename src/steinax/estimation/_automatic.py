"""The estimate with nothing given: coordinates, candidates and their choice."""

from collections.abc import Iterator
from dataclasses import replace

import jax.numpy as jnp
import numpy as np

from ..chains import chain_statistics
from ..data import Integrands, Sample, find_funnel
from ..data._affine import check_moves
from ..fitting import standardised
from ..kernels import MedianHeuristic
from ._arena import Arena, Trial, shortlist
from ._choice import Choice, choose
from ._recipes import QUIETEST, Recipe, polynomial_size
from ._splits import CrossFit

FOLDS = 24  # or a few more, so that each chain has as many
SEPARATION = 4  # autocorrelation times that a fold should last
PILOT = 240  # draws on which every candidate is tried first
COLUMNS = 120  # of a polynomial that is tried alone
STEPS = 2  # towards less noise, beyond what a pilot chose
HELPS = 0.02  # of the variance, by which a step must lower it


def automatic(wanted: Integrands, sample: Sample) -> Choice:
    """Try the candidates on the draws, and choose for each integrand."""
    check_moves(sample)
    f = wanted.values.reshape(sample.size, -1)
    scale = np.where(np.ptp(f, axis=0) > 0, f.std(axis=0), 1.0)
    autocorrelation = np.maximum(sample.size / chain_statistics(wanted.values).ess, 1.0)
    arena = _arena(sample, f / scale, float(np.median(autocorrelation)))
    trials = [trial for trial in _trials(arena) if np.isfinite(trial.variance).all()]
    trials = [Trial(t.recipe, t.rest * scale, t.variance * scale**2) for t in trials]
    choice = choose(trials, autocorrelation)
    return replace(choice, note=_note(arena, len(trials)))


def _note(arena: Arena, tried: int) -> str:
    straight = ", a funnel straightened" if arena.straightened else ""
    return f"the best of {tried} on all draws, {len(arena.folds)} folds{straight}"


def _arena(sample: Sample, f: np.ndarray, autocorrelation: float) -> Arena:
    """The draws in coordinates without funnels, of unit covariance."""
    funnel = find_funnel(sample.x, sample.score)
    x, score = (sample.x, sample.score) if funnel is None else funnel(sample.x, sample.score)
    x, score, _ = standardised(x, score)
    length = sample.size // sample.chains
    folds = blocks(sample.chains, length, autocorrelation).boundaries(sample.chains, length)
    return Arena(x, score, jnp.asarray(f), folds, MedianHeuristic()(x), funnel is not None)


def blocks(chains: int, length: int, autocorrelation: float) -> CrossFit:
    """Many folds, so that each fit has nearly all draws, but none shorter than draws depend."""
    longest = int(length / (SEPARATION * autocorrelation))
    folds = chains * min(-(-FOLDS // chains), max(longest, 1))
    return CrossFit(folds) if folds > 8 else CrossFit()


def _trials(arena: Arena) -> Iterator[Trial]:
    """Plain Monte Carlo, polynomials, and the kernels that do best in a pilot."""
    n, dim = arena.x.shape
    for degree in (0, 1, 2, 3):
        if arena.affords(degree) and polynomial_size(degree, dim) <= COLUMNS:
            yield from _tried(arena, Recipe(degree))
    if n < 2 * len(arena.folds):
        return
    whole = n <= 2 * PILOT
    pilot = arena if whole else arena.thinned(PILOT)
    for recipe in shortlist(pilot.survey(widen=whole), 24 if whole else 4):
        if whole:
            yield from _tried(arena, recipe)
        else:
            yield from _grown(arena, pilot, recipe)


def _tried(arena: Arena, recipe: Recipe) -> Iterator[Trial]:
    trial = arena.trial(recipe)
    if trial is not None:
        yield trial


def _grown(arena: Arena, pilot: Arena, recipe: Recipe) -> Iterator[Trial]:
    """A pilot's recipe for all draws: more of them bear finer detail and less penalty."""
    if recipe.factor > 1:
        recipe = replace(recipe, factor=recipe.factor / 2)
    if recipe.degree == 1 and arena.affords(2) and not pilot.affords(2):
        recipe = replace(recipe, degree=2)
    best = np.inf
    for _ in range(1 + STEPS):
        trial = arena.trial(recipe)
        if trial is None:
            return
        yield trial
        now = np.log(trial.variance).mean()
        if now > best - HELPS or recipe.noise < QUIETEST:
            return
        best, recipe = now, replace(recipe, noise=recipe.noise / 100)
