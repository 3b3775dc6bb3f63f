"""The search where a few factorisations are all that is affordable: a spread of kernels, then steps."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache

import numpy as np

from ._arena import Arena
from ._recipes import DEGREES, QUIETEST, Recipe
from ._trials import Trial, for_those, noted

HARD = 1e-6  # of the plain variance: where less is left, nothing more is to be found
STEPS = 5  # to neighbours of what was tried first
MOVES = ((1.0, 0.01), (2.0, 1.0), (0.5, 1.0), (1.0, 100.0))  # of the length-scale and the noise
HELPS = 0.02  # by which a step must lower the logarithm of the variance
PATIENCE = 3  # steps that may help less, one after the other

Move = tuple[float, float]


def search(
    arena: Arena, found: list[Trial], starts: Iterable[Recipe], more: Iterable[Recipe] = ()
) -> Iterator[Trial]:
    """Candidates with a kernel, on all draws: one factorisation for each that is tried.

    A few that differ widely go first: among them is one not far from the best for most integrands.
    After that each integrand asks for neighbours of what serves it best: less noise, another
    length-scale, or more noise. Each sees only what it asked for itself, so that its estimate
    does not depend on the other integrands; what several ask for at once is tried once.

    Args:
        arena: all draws.
        found: candidates without a kernel; the first is plain Monte Carlo.
        starts: the recipes that go first; their degrees are not looked at.
        more: recipes that go next, for integrands of which the first leave much of the variance.
    """
    climb = Climb(arena, found)
    for recipe in filter(climb.allows, starts):
        yield from climb.step(recipe, np.ones(len(climb.best), bool))
    hard = climb.best - np.log(found[0].variance) > np.log(HARD)
    for recipe in filter(climb.allows, more if hard.any() else ()):
        yield from climb.step(recipe, hard)
    climb.idle[:] = 0
    for _ in range(STEPS):
        for recipe, asked in climb.next().items():
            yield from climb.step(recipe, asked)


class Climb:
    """What each integrand asked for so far, and which recipe serves it best."""

    def __init__(self, arena: Arena, found: list[Trial]):
        self.arena = arena
        self.asked: dict[Recipe, np.ndarray] = {}
        self.best = np.log([trial.open_variance for trial in found]).min(axis=0)
        self.leading: list[Recipe | None] = [None] * len(self.best)
        self.move: list[Move | None] = [None] * len(self.best)  # the last one
        self.came: list[Move | None] = [None] * len(self.best)  # the one that led to the best
        self.idle = np.zeros(len(self.best), int)  # steps in a row that did not help

    def step(self, recipe: Recipe, asked: np.ndarray) -> Iterator[Trial]:
        """Try a recipe for some integrands, with every polynomial that goes with the kernel."""
        self.asked[recipe] = asked | self.asked.get(recipe, False)
        least = np.full(len(asked), np.inf)
        yield from noted(for_those(self.arena.beside(recipe, DEGREES[recipe.kernel]), asked), least)
        with np.errstate(divide="ignore"):
            scores = np.log(least)
        for i in np.flatnonzero(scores < self.best):
            self.leading[i], self.came[i] = recipe, self.move[i]
        fall = self.best - np.minimum(self.best, scores)
        self.idle[asked] = np.where(fall > HELPS, 0, self.idle + 1)[asked]
        self.best = np.minimum(self.best, scores)

    def next(self) -> dict[Recipe, np.ndarray]:
        """The next recipes, and the integrands that ask for them, (k,)."""
        wanted: dict[Recipe, np.ndarray] = {}
        for i in np.flatnonzero(self.idle < PATIENCE):
            new = self._next(int(i))
            if new is not None:
                wanted.setdefault(new, np.zeros(len(self.best), bool))[i] = True
        return wanted

    def _next(self, i: int) -> Recipe | None:
        """The neighbour that one integrand asks for; none if its best candidate has no kernel."""
        recipe, came = self.leading[i], self.came[i]
        if recipe is None:
            return None
        for move in MOVES if came is None else (came, *MOVES):
            new = _moved(recipe, move)
            if self.allows(new) and not (new in self.asked and self.asked[new][i]):
                self.move[i] = move
                return new
        return None

    def allows(self, recipe: Recipe) -> bool:
        """Whether its functions have a variance, and its noise is neither too loud nor too quiet."""
        shortest = self.arena.least_factor(recipe.kernel)
        return recipe.factor >= shortest and QUIETEST <= recipe.noise <= 1


@cache
def _moved(recipe: Recipe, move: Move) -> Recipe:
    noise = float(f"{recipe.noise * move[1]:.0e}")  # the same number, whichever way it is reached
    return replace(recipe, factor=recipe.factor * move[0], noise=noise)
