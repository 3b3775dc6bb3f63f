"""The estimate with nothing given: coordinates, candidates and their choice."""

from collections.abc import Iterator
from dataclasses import replace

import jax.numpy as jnp
import numpy as np

from .._types import AnyArray
from ..chains import chain_statistics, linearised
from ..data import Integrands, Sample
from ..fitting import spread_of, standardised
from ..kernels import MedianHeuristic
from ..solvers import Folds
from ..solvers._linear_map import DualMap
from ..solvers._rows import root_of
from ._along import along_directions
from ._arena import WHOLE, Arena, straightened
from ._choice import Choice
from ._directions import bent, directional
from ._question import ask
from ._quick import polynomials, quick_arena
from ._recipes import GRIDS, SPREAD, SPREAD_OF_PAIRS, WIDER_SPREAD, Recipe, polynomial_size
from ._search import search
from ._trials import Trial, for_those, shortlist

PILOT = 240  # draws on which every kernel is tried first, where there are too many for all pairs
FEW = 480  # draws up to which every kernel is tried on all
COLUMNS = 120  # of a polynomial that is tried alone
MANY_COLUMNS = 500  # the same, where draws are many
MANY = 30_000  # draws beyond which only polynomials are tried
DIMENSIONS = 30  # from which on a kernel of all coordinates is too coarse
FEW_DIMENSIONS = 5  # below it many kernels are tried, from it on functions of pairs of coordinates
LONGEST = 1500  # draws for which many are
NOTHING = 1e-10  # of the variance: what leaves less is perfect for an integrand
WORST = 1.5  # times the plain variance: the most that weights may leave of an integrand


def automatic(
    wanted: Integrands, sample: Sample, ess: AnyArray, quick: bool = False
) -> tuple[Choice[Recipe], Arena]:
    """Try the candidates on the draws, and choose for each integrand.

    Args:
        wanted: the integrands.
        sample: the draws and scores.
        ess: the effective sample sizes of the integrands, (k,).
        quick: whether only polynomials are tried, without a program to compile.
    """
    question = ask(wanted, sample, ess)
    make, try_all = (quick_arena, _quick_trials) if quick else (_arena, _trials)
    arena = make(sample, question.f / question.scale, question.folds)
    choice = question.settle(try_all(arena))
    straight = ", a funnel straightened" if arena.straightened else ""
    return replace(choice, note=choice.note + straight), arena


def for_all(wanted: Integrands, sample: Sample) -> tuple[DualMap, str, str]:
    """The one candidate that serves all integrands best, its name, and how it was chosen.

    Among those that make no integrand much worse it leaves the least variance, in the geometric mean
    over integrands of parts of the plain one. What interpolates smooth integrands perfectly can
    multiply the variance of others by thousands.
    """
    if sample.size > WHOLE:
        raise ValueError(
            f"{sample.size} draws: weights are chosen without a family for up to {WHOLE}. Give one, such "
            "as weigh(sample, Polynomial(2)), or thin the draws."
        )
    plain = chain_statistics(linearised(wanted.values, sample.weights))
    choice, arena = automatic(wanted, sample, plain.ess)
    own = np.array([recipe.of_each_integrand for recipe in choice.recipes])
    score = np.log(np.maximum(choice.left, NOTHING)).mean(axis=1)
    serves = (choice.left.max(axis=1) <= WORST) & ~own
    recipe = choice.recipes[int(np.argmin(np.where(serves, score, np.inf)))]
    return arena.linear_map(recipe), str(recipe), choice.note


def _arena(sample: Sample, f: np.ndarray, folds: Folds) -> Arena:
    """The draws in coordinates without funnels, of unit covariance."""
    x, score, straight = straightened(sample)
    whiten, weights = spread_of(sample)
    middle = x.mean(axis=0) if weights is None else np.average(x, axis=0, weights=weights)
    spread = np.sqrt(np.average((x - middle) ** 2, axis=0, weights=weights))
    scale = np.where(np.ptp(x, axis=0) > 0, spread, 1.0)
    scaled = (jnp.asarray(x / scale), jnp.asarray(score * scale))
    x, score, _ = standardised(x, score, whiten, weights)
    median, root = MedianHeuristic()(x), root_of(sample.weights)
    root = None if root is None else jnp.asarray(root)
    return Arena(x, score, jnp.asarray(f), folds, median, scaled, straight, root)


def _quick_trials(arena: Arena) -> Iterator[Trial]:
    """Plain Monte Carlo and polynomials; where dimensions are many, those along directions too."""
    yield from polynomials(arena)
    n, dim = arena.x.shape
    if dim >= DIMENSIONS and n <= WHOLE and arena.root is None:
        yield from along_directions(arena)


def _trials(arena: Arena) -> Iterator[Trial]:
    """Plain Monte Carlo, polynomials and kernels: all of a grid, or what a search finds."""
    n, dim = arena.x.shape
    columns = COLUMNS if n <= WHOLE else MANY_COLUMNS
    degrees = [degree for degree in (0, 1, 2, 3) if polynomial_size(degree, dim) <= columns]
    trials = list(filter(None, map(arena.trial, map(Recipe, filter(arena.affords, degrees)))))
    yield from trials
    if n < 2 * len(arena.folds) or n > MANY:
        return
    if dim >= DIMENSIONS and n <= WHOLE:
        yield from _in_many_dimensions(arena)
    elif n <= FEW:
        yield from arena.survey(GRIDS, widen=True)
    elif n <= WHOLE and dim < FEW_DIMENSIONS:
        yield from search(arena, trials, SPREAD, WIDER_SPREAD if n <= LONGEST else ())
    elif n <= WHOLE:
        yield from search(arena, trials, SPREAD + SPREAD_OF_PAIRS)
    else:
        yield from _from_pilot(arena)


def _in_many_dimensions(arena: Arena) -> Iterator[Trial]:
    """Where a kernel of all coordinates is too coarse: directions, and a quadratic with a penalty.

    Draws with weights get the quadratic alone.
    """
    yield from arena.penalised(2)
    if arena.root is None:
        along = along_directions(arena)
        yield from along
        some = bent(along)
        if some.any() and arena.affords(1):
            yield directional(arena, some)


def _from_pilot(arena: Arena) -> Iterator[Trial]:
    """What serves each integrand best on a few draws, on all of them."""
    pilot = arena.thinned(PILOT)
    asked: dict[Recipe, np.ndarray] = {}
    for recipe, mine in shortlist(pilot.survey(GRIDS, widen=False)):
        grown = _grown(arena, pilot, recipe)
        asked[grown] = mine | asked.get(grown, False)
    for recipe, mine in asked.items():
        yield from for_those(filter(None, [arena.trial(recipe)]), mine)


def _grown(arena: Arena, pilot: Arena, recipe: Recipe) -> Recipe:
    """A pilot's recipe for all draws, where they are many: they bear finer detail."""
    if recipe.factor > 1:
        finer = max(recipe.factor / 2, arena.least_factor(recipe.kernel))
        recipe = replace(recipe, factor=finer)
    if recipe.degree == 1 and arena.affords(2) and not pilot.affords(2):
        recipe = replace(recipe, degree=2)
    return recipe
