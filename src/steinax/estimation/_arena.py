"""Where candidates are tried: draws, integrands and folds."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .._types import AnyArray, Points, Scalar, Values
from ..data import Sample, find_funnel
from ..data._space import on_the_reals
from ..families import KernelTranslates, Polynomial
from ..kernels import AbstractKernel, ExponentialDotProduct
from ..kernels._pairs import CoordinatePairs
from ..solvers import Folds
from ..solvers._linear_map import DualMap
from ..solvers._penalty_grid import held_out_grid, held_out_nested, linear_map_once, spectrum
from ..solvers._problem import LeftOut
from ..solvers._rows import Root, scaled
from ._large import landmark_errors
from ._least_squares import cross_fit
from ._matrices import columns_of, gram_of, median_variance, thinned
from ._recipes import NOISES, POLYNOMIAL_NOISES, Grid, Recipe, affordable, polynomial_size
from ._trials import Trial, for_those, noted, plain_trial, trial_of

WHOLE = 3000  # draws up to which kernels are centred on all of them
COLUMNS = 120  # of a cubic polynomial beside a kernel
NARROWEST, WIDEST = 0.25, 256.0  # as far as a grid may widen itself

# A length-scale, the integrands that asked for it, and the least variance that each has with it.
type Seen = tuple[float, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Arena:
    """Standardised draws with their scores, integrands, folds, and the median distance.

    `scaled` are the draws and scores with their coordinates not mixed, each of variance 1. `root` is what
    the rows of a fit are scaled by, where draws have weights.
    """

    x: Points
    score: Points
    f: Values
    folds: Folds
    median: Scalar
    scaled: tuple[Points, Points]
    straightened: bool = False  # whether a funnel was
    root: Root = None

    def thinned(self, count: int) -> "Arena":
        """The same with about so many of the draws."""
        index, cut = thinned(self.folds, count)
        x, score = self.scaled
        own = (x[index], score[index])
        root = None if self.root is None else self.root[index]
        points = (self.x[index], self.score[index], self.f[index])
        return Arena(*points, cut, self.median, own, root=root)

    def affords(self, degree: int) -> bool:
        """Whether there are draws enough for a polynomial without a penalty."""
        return affordable(degree, self.x.shape[1], len(self.x) * (1 - 1 / len(self.folds)))

    def degrees(self) -> tuple[int, ...]:
        """Those of the polynomials that a kernel may have beside it."""
        dim = self.x.shape[1]
        cheap = [degree for degree in (0, 1, 2) if self.affords(degree)]
        cubic = self.affords(3) and polynomial_size(3, dim) <= COLUMNS
        return (*cheap, 3) if cubic else tuple(cheap)

    def survey(self, grids: tuple[Grid, ...], widen: bool) -> Iterator[Trial]:
        """Every candidate of some grids.

        One eigendecomposition serves all penalties of a kernel, and all polynomials beside it. A
        length-scale beyond a grid is for the integrands that asked for it.

        Args:
            grids: of candidates.
            widen: whether length-scales go on growing while the best is the longest; they always
                go on shrinking while the best is the shortest.
        """
        everyone = np.ones(self.f.shape[1], bool)
        for grid in grids:
            seen: list[Seen] = []
            least = self.least_factor(grid.kernel)
            waiting = [(factor, everyone) for factor in grid.factors if factor >= least]
            while waiting:
                factor, asked = waiting.pop(0)
                best = np.full(len(asked), np.inf)
                yield from noted(for_those(self._penalties(grid, factor), asked), best)
                seen.append((factor, asked, best))
                if not waiting:
                    waiting = _beyond(seen, least, widen)

    def least_factor(self, kernel: type[AbstractKernel] | None) -> float:
        r"""The shortest length-scale that a kernel may have, over the median distance.

        Functions of `ExponentialDotProduct` grow as fast as $e^{|x|^2 / 2 \ell^2}$. Under a Gaussian of
        unit covariance they have a variance for $\ell^2 > 2$ only, and for $\ell^2 \le 1$ not even
        the mean zero.
        """
        if kernel is not ExponentialDotProduct:
            return NARROWEST
        return max(float(np.sqrt(2)) / float(self.median), NARROWEST)

    def _penalties(self, grid: Grid, factor: float) -> list[Trial]:
        """Every polynomial and penalty with one kernel."""
        kernel, size = self._gram(grid.kernel, factor)
        if not np.isfinite(size):
            return []
        columns, sizes = self._nested_columns
        noises = jnp.asarray(NOISES) * size
        found = held_out_grid(
            spectrum(kernel), columns, self.f, noises, self.folds, sizes, self.root
        )
        parts = [np.asarray(part) for part in found]
        return [
            self._tried(Recipe(degree, grid.kernel, factor, noise), [p[i, j] for p in parts])
            for j, degree in enumerate(self.degrees())
            if degree in grid.degrees
            for i, noise in enumerate(NOISES)
        ]

    def beside(self, recipe: Recipe, degrees: tuple[int, ...]) -> list[Trial]:
        """The kernel of a recipe with several polynomials beside it: one factorisation for all.

        None where the kernel overflows, the tails being too heavy.
        """
        assert recipe.kernel is not None
        kernel, size = self._gram(recipe.kernel, recipe.factor)
        if not np.isfinite(size):
            return []
        columns, sizes = self._nested_columns
        noise = jnp.asarray(recipe.noise * size)
        found = held_out_nested(kernel, columns, self.f, noise, self.folds, sizes, self.root)
        parts = [np.asarray(part) for part in found]
        return [
            self._tried(replace(recipe, degree=degree), [part[j] for part in parts])
            for j, degree in enumerate(self.degrees())
            if degree in degrees
        ]

    @cached_property
    def _nested_columns(self) -> tuple[AnyArray, tuple[int, ...]]:
        """The columns of the largest polynomial, and how many of them each degree has."""
        degrees, dim = self.degrees(), self.x.shape[1]
        columns = self.columns(degrees[-1])
        return columns, tuple(1 + polynomial_size(degree, dim) for degree in degrees)

    def penalised(self, degree: int) -> list[Trial]:
        """A polynomial that has more coefficients than there are draws, at several penalties."""
        kernel, size = self._polynomial_gram(degree)
        noises = jnp.asarray(POLYNOMIAL_NOISES) * size
        found = held_out_grid(
            spectrum(kernel), self.columns(0), self.f, noises, self.folds, (1,), self.root
        )
        parts = [np.asarray(part) for part in found]
        return [
            self._tried(Recipe(degree, noise=noise), [part[i, 0] for part in parts])
            for i, noise in enumerate(POLYNOMIAL_NOISES)
        ]

    def trial(self, recipe: Recipe) -> Trial | None:
        """Cross-fit one candidate; None where its columns depend on each other.

        Kernels too, where draws are many: None if they overflow, the tails being too heavy.
        """
        if recipe.kernel is None and recipe.degree == 0:
            return plain_trial(recipe, np.asarray(self.f), self.folds, self.root)
        if len(self.x) > WHOLE:
            return self._large(recipe)
        columns = np.asarray(columns_of(_polynomial(recipe.degree), self.x, self.score))
        root = None if self.root is None else np.asarray(self.root)
        found = cross_fit(columns[:, 1:], np.asarray(self.f), self.folds, root)
        return None if found is None else trial_of(recipe, found, self.root)

    def _tried(self, recipe: Recipe, parts: list[np.ndarray]) -> Trial:
        return trial_of(recipe, LeftOut(*parts), self.root)

    def columns(self, degree: int) -> AnyArray:
        """Ones and the features of a polynomial, their rows scaled where draws have weights."""
        return scaled(columns_of(_polynomial(degree), self.x, self.score), self.root)

    def _large(self, recipe: Recipe) -> Trial | None:
        """The same without a matrix of all pairs."""
        made, noise = None, recipe.noise
        if recipe.kernel is not None:
            kernel = recipe.kernel(recipe.factor * self.median)  # type: ignore[call-arg]
            made = KernelTranslates(kernel)
            noise *= float(median_variance(made, self.x, self.score))
        if not np.isfinite(noise):
            return None
        points, beside = (self.x, self.score, self.f), _polynomial(recipe.degree)
        found = landmark_errors(beside, made, noise, points, self.folds, self.root)
        return trial_of(recipe, found, self.root)

    def linear_map(self, recipe: Recipe) -> DualMap:
        """One candidate's cross-fitting, for any integrands."""
        return linear_map_once(*self._system(recipe), self.folds, self.root)

    def _system(self, recipe: Recipe) -> tuple[AnyArray | None, AnyArray, AnyArray]:
        """The kernel matrix, the columns without a penalty, and the noise in the kernel's units."""
        kernel, size, degree = None, 1.0, recipe.degree
        if recipe.kernel is not None:
            kernel, size = self._gram(recipe.kernel, recipe.factor)
        elif recipe.noise > 0:
            (kernel, size), degree = self._polynomial_gram(degree), 0
        return kernel, self.columns(degree), jnp.asarray(recipe.noise * size)

    def _gram(self, kernel: type[AbstractKernel], factor: float) -> tuple[AnyArray, float]:
        if kernel is CoordinatePairs:
            matrix, size, worst = gram_of(KernelTranslates(CoordinatePairs(factor)), *self.scaled)
        else:
            made = kernel(factor * self.median)  # type: ignore[call-arg]
            matrix, size, worst = gram_of(KernelTranslates(made), self.x, self.score)
        matrix = scaled(scaled(matrix, self.root).T, self.root)
        return matrix, float(size) if np.isfinite(worst) else np.inf

    def _polynomial_gram(self, degree: int) -> tuple[AnyArray, float]:
        matrix = _products_of(degree, self.x, self.score)
        size = float(jnp.median(jnp.diag(matrix)))
        return scaled(scaled(matrix, self.root).T, self.root), size


def straightened(sample: Sample) -> tuple[np.ndarray, np.ndarray, bool]:
    """Draws and scores in coordinates without bounds and without a funnel, and whether there was one.

    No funnel is looked for where draws have weights: they are not from the target that may have it.
    """
    free = on_the_reals(sample)
    assert free is not None, "a space without such coordinates has a family of its own"
    x, score = (np.asarray(one, np.float64).reshape(sample.size, -1) for one in free)
    funnel = find_funnel(x, score) if sample.weights is None else None
    if funnel is None:
        return x, score, False
    x, score = map(np.asarray, funnel(x, score))
    return x, score, True


def _beyond(seen: list[Seen], least: float, widen: bool) -> list[tuple[float, np.ndarray]]:
    """The next length-scales, and the integrands whose best lies on the edge of what they tried."""
    if not seen:
        return []
    factors, asked, variance = (np.array(part) for part in zip(*seen, strict=True))
    tried = np.where(asked, factors[:, None], np.nan)
    best = factors[variance.argmin(axis=0)]
    low, high = np.fmin.reduce(tried), np.fmax.reduce(tried)
    shorter = np.where((best == low) & (low / 2 >= least), low / 2, np.nan)
    longer = np.where((best == high) & (2 * high <= WIDEST) & widen, 2 * high, np.nan)
    return [
        (float(factor), edge == factor)
        for edge in (shorter, longer)
        for factor in np.unique(edge[np.isfinite(edge)])
    ]


def _polynomial(degree: int) -> Polynomial | None:
    return Polynomial(degree) if degree else None


@eqx.filter_jit
def _products_of(degree: int, x: Points, score: Points) -> AnyArray:
    """The features of a polynomial times themselves, on all pairs of draws."""
    return Polynomial(degree).cross_gram(None, x, score, x, score)
