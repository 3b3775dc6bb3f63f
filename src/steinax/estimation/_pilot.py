"""A first look at every candidate, on a part of the draws that is quick to factorise."""

from collections.abc import Iterator

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .._types import AnyArray, Points, Values
from ..families import KernelTranslates, Polynomial
from ..kernels import AbstractKernel
from ..solvers import Folds
from ..solvers._spectral import held_out_grid, spectrum
from ._recipes import (
    GRIDS,
    NARROWEST,
    NOISES,
    WIDEST,
    Grid,
    Recipe,
    affordable,
    base,
)
from ._scores import held_out_variance

DRAWS = 240  # of a pilot


class Pilot(eqx.Module):
    """Draws, scores and integrands that candidates are tried on, cut into folds."""

    x: Points
    score: Points
    f: Values
    folds: Folds = eqx.field(static=True)

    def survey(self) -> dict[Recipe, np.ndarray]:
        """The held-out variance of every candidate, (k,), over grids that widen themselves.

        One eigendecomposition serves all penalties of a kernel, and all polynomials beside it.
        """
        found: dict[Recipe, np.ndarray] = {}
        for grid in GRIDS:
            waiting = list(grid.factors)
            while waiting:
                found |= dict(self._penalties(grid, waiting.pop(0)))
                if not waiting:
                    waiting = _beyond(grid.kernel, found)
        return found

    def _penalties(self, grid: Grid, factor: float) -> Iterator[tuple[Recipe, np.ndarray]]:
        """Every polynomial and penalty with one kernel."""
        kernel = base(grid.kernel, factor, self.x)
        gram, size = _gram(kernel, self.x, self.score)
        if not np.isfinite(gram).all():
            return  # the tails are too heavy for this kernel: it overflows
        decomposed = spectrum(gram)
        dim, train = self.x.shape[1], len(self.x) * (1 - 1 / len(self.folds))
        noises = jnp.asarray(NOISES) * size
        for degree in grid.degrees:
            if degree and not affordable(degree, dim, train):
                continue
            columns = _columns(degree, self.x, self.score)
            rest, variance = held_out_grid(decomposed, columns, self.f, noises, self.folds)
            for noise, score in zip(NOISES, _scores(rest, variance), strict=True):
                yield Recipe(degree, grid.kernel, factor, noise), np.asarray(score)


def _beyond(kernel: type[AbstractKernel], found: dict[Recipe, np.ndarray]) -> list[float]:
    """The next length-scales, where the best of an integrand lies on the edge of the grid."""
    mine = {recipe: score for recipe, score in found.items() if recipe.kernel is kernel}
    if not mine:
        return []
    factors = np.array([recipe.factor for recipe in mine])
    best = factors[np.argmin(list(mine.values()), axis=0)]
    low, high = factors.min(), factors.max()
    more = [low / 2] if np.any(best == low) and low / 2 >= NARROWEST else []
    return more + ([2 * high] if np.any(best == high) and 2 * high <= WIDEST else [])


@eqx.filter_jit
def _gram(kernel: AbstractKernel, x: Points, score: Points) -> tuple[AnyArray, AnyArray]:
    """The Stein kernel of all pairs, and its median variance."""
    family = KernelTranslates(kernel)
    gram = family.feature_matrix((x, score), x, score)
    return gram, jnp.median(jnp.diag(gram))


@eqx.filter_jit
def _columns(degree: int, x: Points, score: Points) -> AnyArray:
    """Ones, and the features of a polynomial."""
    ones = jnp.ones((len(x), 1), x.dtype)
    if degree == 0:
        return ones
    features = Polynomial(degree).feature_matrix(None, x, score)
    return jnp.concatenate([ones, features], axis=1)


_scores = eqx.filter_jit(held_out_variance)


def shortlist(found: dict[Recipe, np.ndarray], length: int) -> list[Recipe]:
    """The best recipe of each kernel over all integrands, then those that help the worst served.

    They are judged by the sum over integrands of the logarithm of the best variance among them.
    """
    recipes, scores = list(found), np.log(np.array(list(found.values())))
    picked: list[int] = []
    for grid in GRIDS:
        mine = [i for i, recipe in enumerate(recipes) if recipe.kernel is grid.kernel]
        if mine:
            picked.append(min(mine, key=lambda i: scores[i].sum()))
    while len(picked) < min(length, len(recipes)):
        best = scores[picked].min(axis=0)
        picked.append(int(np.argmin(np.minimum(scores, best).sum(axis=1))))
    return list(dict.fromkeys(recipes[i] for i in picked))
