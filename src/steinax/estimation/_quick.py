"""The choice among polynomials alone, in NumPy: nothing is compiled, so the first answer comes soon."""

import numpy as np

from ..data import Sample
from ..data._affine import DRAWS_PER_DIM
from ..families._monomials import layers
from ..fitting import spread_of
from ..solvers import Folds
from ..solvers._problem import LeftOut
from ..solvers._rows import Root, root_of, scaled
from ._arena import Arena, straightened
from ._least_squares import cross_fit
from ._recipes import Recipe, polynomial_size
from ._trials import Trial, trial_of

COLUMNS = 500  # of a polynomial of more than one degree
DEGREE = 6  # at most
SINGLE = 3  # the same of single dimensions


def quick_arena(sample: Sample, f: np.ndarray, folds: Folds) -> Arena:
    """The draws in coordinates without funnels, each of mean 0 and variance 1."""
    x, score, straight = straightened(sample)
    _, weights = spread_of(sample)
    middle = x.mean(axis=0) if weights is None else np.average(x, axis=0, weights=weights)
    scale = np.sqrt(np.average((x - middle) ** 2, axis=0, weights=weights))
    x, score = (x - middle) / scale, score * scale
    root = root_of(sample.weights)
    return Arena(x, score, f, folds, np.asarray(np.nan), (x, score), straight, root)


def polynomials(arena: Arena) -> list[Trial]:
    """Plain Monte Carlo, and the polynomials that have draws enough.

    Where those of all dimensions together have too many coefficients, those of single ones are added.
    """
    plain = arena.trial(Recipe(0))
    found = [plain, *(_fitted(arena, recipe) for recipe in _recipes(arena))]
    return [trial for trial in found if trial is not None]


def _recipes(arena: Arena) -> list[Recipe]:
    dim, train = arena.x.shape[1], len(arena.x) * (1 - 1 / len(arena.folds))
    degrees = [
        degree
        for degree in range(1, DEGREE + 1)
        if arena.affords(degree) and (degree == 1 or polynomial_size(degree, dim) <= COLUMNS)
    ]
    recipes = [Recipe(degree) for degree in degrees]
    for degree in range(max(degrees, default=1) + 1, SINGLE + 1)[::-1]:
        if degree * dim <= min(train / 2, COLUMNS):
            return [*recipes, Recipe(degree, single=True)]
    return recipes


def _fitted(arena: Arena, recipe: Recipe) -> Trial | None:
    """Cross-fit one polynomial; None where its columns depend on each other."""
    x, score, f = (np.asarray(one) for one in (arena.x, arena.score, arena.f))
    if recipe.single:
        found = single_fit(x, score, f, recipe.degree, arena.folds, arena.root)
    else:
        features = _whole(x, score, recipe.degree, arena.root)
        found = cross_fit(features, f, arena.folds, arena.root)
    return None if found is None else trial_of(recipe, found, arena.root)


def _whole(x: np.ndarray, score: np.ndarray, degree: int, root: Root = None) -> np.ndarray:
    """The features of all monomials, (n, p), in whitened coordinates.

    As `fit` with `Polynomial` has them, but for their norms.
    """
    n, dim = x.shape
    if degree > 1 and n >= DRAWS_PER_DIM * dim:
        share = None if root is None else root / root.mean()
        spread = x.T @ (x if share is None else share[:, None] * x) / n
        factor = np.linalg.cholesky(spread + 1e-12 * np.eye(dim))
        x, score = np.linalg.solve(factor, x.T).T, score @ factor
    values, stein = [np.ones((len(x), 1)), x], [score]
    for layer in layers(x.shape[1], degree):
        parent, last = values[-1][:, layer.parent], x[:, layer.last]
        slope = layer.repeats * values[-2][:, layer.grandparent]
        moved = parent * score[:, layer.last] + last * stein[-1][:, layer.parent]
        values.append(parent * last)
        stein.append(moved + 2 * slope)
    return np.concatenate(stein, axis=1)


def single_fit(
    x: np.ndarray,
    score: np.ndarray,
    f: np.ndarray,
    degree: int,
    folds: Folds,
    root: Root = None,
) -> LeftOut | None:
    r"""Cross-fit powers of single dimensions, with the covariance of the draws that are fitted to.

    The features are $\operatorname{div} \varphi + \varphi \cdot s$ of $\varphi = x_j^m \Sigma e_j$ for m
    below the degree. With $\Sigma$ the covariance, they hold all polynomials of that degree of one
    dimension of a Gaussian, whatever its correlations. A covariance that had seen the held-out draws
    would bias what is averaged over them, by as much as there are dimensions per draw.
    """
    n, dim = x.shape
    weighed = scaled(x, None if root is None else root / root.mean())
    moments = weighed.T @ x
    rest, variance, intercepts = np.empty_like(f), np.empty(n), np.empty((len(folds), f.shape[1]))
    for i, (start, stop) in enumerate(folds):
        held = slice(start, stop)
        train = n - (stop - start)
        spread = (moments - weighed[held].T @ x[held]) / train
        if train < DRAWS_PER_DIM * dim:
            spread = np.eye(dim)
        columns = _powers(x, score @ spread, np.diag(spread), degree)
        rest[held] = f[held]
        whole, right = scaled(columns, root), scaled(f, root)
        own = whole[held]
        try:
            factor = np.linalg.cholesky(whole.T @ whole - own.T @ own)
        except np.linalg.LinAlgError:
            return None
        inverse = np.linalg.inv(factor)
        w = inverse.T @ (inverse @ (whole.T @ right - own.T @ right[held]))
        intercepts[i] = w[0]
        rest[held] -= columns[held, 1:] @ w[1:]
        variance[held] = 1 + ((inverse @ own.T) ** 2).sum(axis=0)
    return LeftOut(rest, variance if root is None else variance / root**2, intercepts)


def _powers(x: np.ndarray, along: np.ndarray, spread: np.ndarray, degree: int) -> np.ndarray:
    """Ones and the features of the powers of single dimensions, (n, 1 + degree * dim)."""
    powers = [x ** (m - 1) * (m * spread + x * along) for m in range(1, degree)]
    return np.concatenate([np.ones((len(x), 1)), along, *powers], axis=1)
