"""The search where a few factorisations are all that is affordable: a spread of kernels, then steps."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from ._arena import Arena
from ._recipes import DEGREES, QUIETEST, Recipe
from ._trials import Trial

HARD = 1e-6  # of the plain variance: where less is left, nothing more is to be found
STEPS = 5  # to neighbours of what was tried first
MOVES = ((1.0, 0.01), (2.0, 1.0), (0.5, 1.0), (1.0, 100.0))  # of the length-scale and the noise
HELPS = 0.02  # by which a step must lower the logarithm of the variance, in the mean
PATIENCE = 3  # steps that may help less, one after the other

Move = tuple[float, float]


def search(
    arena: Arena, found: list[Trial], starts: Iterable[Recipe], more: Iterable[Recipe] = ()
) -> list[Trial]:
    """Candidates with a kernel, on all draws: one factorisation for each that is tried.

    A few that differ widely go first: among them is one not far from the best for most integrands.
    After that a neighbour is tried of those that serve many integrands best: less noise, another
    length-scale, or more noise.

    Args:
        arena: all draws.
        found: candidates without a kernel; the first is plain Monte Carlo.
        starts: the recipes that go first; their degrees are not looked at.
        more: recipes that go next, where the first leave much of the variance.
    """
    climb = Climb(arena, found)
    for recipe in filter(climb.allows, starts):
        climb.step(recipe)
    hard = np.mean(climb.best - np.log(found[0].variance)) > np.log(HARD)
    for recipe in filter(climb.allows, more if hard else ()):
        climb.step(recipe)
    idle = 0
    for _ in range(STEPS):
        step = climb.next()
        if step is None or idle == PATIENCE:
            break
        idle = 0 if climb.step(*step) > HELPS else idle + 1
    return climb.trials


class Climb:
    """What was tried so far, and which recipe serves each integrand best."""

    def __init__(self, arena: Arena, found: list[Trial]):
        self.arena = arena
        self.trials: list[Trial] = []
        self.tried: dict[Recipe, Move | None] = {}  # and the move that led there
        self.failed: Counter[Recipe] = Counter()
        self.best = np.log([trial.variance for trial in found]).min(axis=0)
        self.leading: list[Recipe | None] = [None] * len(self.best)

    def step(self, recipe: Recipe, move: Move | None = None) -> float:
        """Try a recipe, or where a move leads from it; the fall of the mean logarithm of the variance.

        Every polynomial that goes with the kernel is tried.
        """
        new = recipe if move is None else _moved(recipe, move)
        self.tried[new] = move
        trials = self.arena.beside(new, DEGREES[new.kernel])
        trials = [trial for trial in trials if np.isfinite(trial.variance).all()]
        self.trials += trials
        scores = np.log([trial.variance for trial in trials] or [np.exp(self.best)]).min(axis=0)
        for i in np.flatnonzero(scores < self.best):
            self.leading[i] = new
        before, self.best = self.best, np.minimum(self.best, scores)
        fall = float((before - self.best).mean())
        self.failed[recipe] += fall <= HELPS
        return fall

    def next(self) -> tuple[Recipe, Move] | None:
        """The next step, from a recipe that serves many integrands and has not often failed."""
        serves = Counter(recipe for recipe in self.leading if recipe is not None)
        for recipe in sorted(serves, key=lambda one: -serves[one] / (1 + self.failed[one])):
            came = self.tried[recipe]
            for move in MOVES if came is None else (came, *MOVES):
                new = _moved(recipe, move)
                if new not in self.tried and self.allows(new):
                    return recipe, move
        return None

    def allows(self, recipe: Recipe) -> bool:
        """Whether its functions have a variance, and its noise is neither too loud nor too quiet."""
        shortest = self.arena.least_factor(recipe.kernel)
        return recipe.factor >= shortest and QUIETEST <= recipe.noise <= 1


def _moved(recipe: Recipe, move: Move) -> Recipe:
    noise = float(f"{recipe.noise * move[1]:.0e}")  # the same number, whichever way it is reached
    return replace(recipe, factor=recipe.factor * move[0], noise=noise)
