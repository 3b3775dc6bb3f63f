"""Least squares with kernels on landmark draws, from moments in one pass over the draws."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import ClassVar

import equinox as eqx
import numpy as np
from scipy.linalg import block_diag

from .._numerics import namespace
from .._types import AnyArray, Coefficients, Key, Points
from ..families import Landmarks
from ._base import AbstractSolver, Problem, Solution, linear_solution
from ._exact import Term, gather_coefficients, has_mean_square, kernel_of, linear_terms
from ._moments import Moments, fits_without_each, gathered_moments, mean_residuals
from ._regression import Folds, HeldOut, on_draws

CANDIDATES = 10  # candidate draws for every landmark


def spread_out(x: AnyArray, count: int, key: Key | None = None) -> np.ndarray:
    r"""Choose `count` landmarks among the draws by k-means++ seeding, and return their indices.

    Each is drawn with a probability proportional to its squared distance to the landmarks before it (Arthur
    and Vassilvitskii, 2007). The candidates are up to ten evenly spaced draws per landmark, so that the
    cost, $O(10\, M^2 d)$, does not depend on $n$.
    """
    n = len(x)
    if n <= count:
        return np.arange(n)
    candidates = Landmarks(CANDIDATES * count).choose(n)
    chosen = _seeds(np.asarray(x)[candidates], count, _generator(key))
    return np.sort(candidates[chosen])


def _generator(key: Key | None) -> np.random.Generator:
    if key is None:
        return np.random.default_rng(0)
    import jax

    return np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel().astype(np.uint32))


def _seeds(x: np.ndarray, count: int, rng: np.random.Generator) -> list[int]:
    chosen, size = [0], (x**2).sum(axis=1)

    def squared(index: int) -> np.ndarray:
        return np.maximum(size + size[index] - 2 * (x @ x[index]), 0.0)

    distance = squared(0)
    for u in rng.uniform(size=count - 1):
        sums = np.cumsum(distance)
        index = int(np.searchsorted(sums, u * sums[-1], side="right").clip(0, len(x) - 1))
        distance = np.minimum(distance, squared(index))
        chosen.append(index)
    return chosen


class NystromColumns(eqx.Module):
    r"""The columns of a Nyström fit: features of narrow terms, then the kernel of wide terms at landmarks."""

    terms: tuple[Term, ...]
    wide: tuple[bool, ...] = eqx.field(static=True)
    landmarks: tuple[Points, Points]

    @property
    def states(self) -> tuple:
        """The state of every term."""
        return tuple(term.state for term in self.terms)

    @property
    def width(self) -> int:
        """The number of columns of the wide terms."""
        return len(self.landmarks[0]) if any(self.wide) else 0

    def centres(self) -> np.ndarray:
        """The index of the landmark that each column is centred on, -1 if there is none."""
        dim, index = self.landmarks[0].shape[1], np.arange(len(self.landmarks[0]))
        blocks = [
            index if term.family.is_whole_space else np.full(term.size(dim), -1)
            for term in self._terms(False)
        ]
        return np.concatenate([*blocks, index[: self.width]])

    def matrix(self, x: Points, score: Points) -> AnyArray:
        """Compute the columns at some draws, narrow terms first."""
        blocks = [t.family.feature_matrix(t.state, x, score) for t in self._terms(False)]
        if any(self.wide):
            blocks.append(kernel_of(self._terms(True), x, score, *self.landmarks))
        return namespace(*blocks).concat(blocks, axis=1)

    def penalty(self) -> np.ndarray:
        """The matrix of the penalty on the coefficients of the columns."""
        dim = self.landmarks[0].shape[1]
        blocks = [term.form(dim) for term in self._terms(False)]
        if any(self.wide):
            points = (*self.landmarks, *self.landmarks)
            blocks.append(np.asarray(kernel_of(self._terms(True), *points)))
        return np.asarray(block_diag(*blocks))

    def coefficients(self, w: Coefficients) -> AnyArray:
        """Map the coefficients of the columns to those of all terms, in the order of the terms."""
        cut = len(w) - self.width
        return gather_coefficients(self.terms, *self.landmarks, w[:cut], w[cut:], by_dual=self.wide)

    def _terms(self, wide: bool) -> tuple[Term, ...]:
        pairs = zip(self.terms, self.wide, strict=True)
        return tuple(term for term, is_wide in pairs if is_wide is wide)


def nystrom_terms(
    terms: tuple[Term, ...], count: int, landmarks: tuple[Points, Points]
) -> NystromColumns:
    """Build the columns of all terms, using the kernel for wide terms.

    A control functional is set up on the landmarks alone, so that only they add to its cost. Any other
    term with more than `count` coefficients is used through its kernel, if it has one.
    """
    dim = landmarks[0].shape[1]
    wide = tuple(
        term.has_kernel and not term.family.is_whole_space and term.size(dim) > count
        for term in terms
    )
    placed = tuple(
        replace(term, state=term.family.setup(*landmarks)) if term.family.is_whole_space else term
        for term in terms
    )
    return NystromColumns(placed, wide, landmarks)


NYSTROM_ROWS = 4096  # draws whose columns are held in memory at once


class Nystrom(AbstractSolver):
    r"""Fit kernels on a few landmark draws $S$, exactly within the span of their translates.

    Of a control functional $g = \sum_i \theta_i k_0(\cdot, x_i)$ only the translates to $M$ landmarks
    are kept,

    $$ \min_{c, \theta}\; \|f - c - K_{XS}\, \theta\|^2 + m \lambda\, \theta^\top K_{SS}\, \theta, $$

    in $O(n M^2)$ operations and memory for one block of rows of $K_{XS}$. Terms with fewer
    coefficients than landmarks are used unchanged. Cross-fitting subtracts the moments of a
    fold, and drops the landmarks in it.

    Args:
        count: the number of landmarks; with as many as draws the fit is that of `Exact`.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> sample, f = sx.Sample(x, -x), lambda x: x[0] ** 2
    >>> g = sx.fit(f, sample, sx.KernelTranslates(), solver=Nystrom(100))
    >>> g.state[0].shape, bool(abs(g.intercept[0] - 1) < 0.01)
    ((100, 2), True)
    """

    references: ClassVar[tuple[str, ...]] = ("williams2001using",)
    count: int = eqx.field(static=True, default=800)

    def __check_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"Nystrom({self.count}): ask for at least one landmark.")

    def solve(self, problem: Problem, key: Key | None = None) -> Solution:
        columns, index = self._columns(problem, key)
        whole = ((0, problem.x.shape[0]),)
        total = _gather(problem, columns, whole)[0]
        intercept, w = total.solve(columns.penalty())
        coef = columns.coefficients(w)
        note = f"Nyström: {len(index)} landmarks, {problem.x.shape[0]} draws"
        return linear_solution(problem, columns.states, coef, intercept, note)

    def crossfit(self, problem: Problem, folds: Folds, key: Key | None = None) -> HeldOut:
        n = problem.x.shape[0]
        columns, index = self._columns(problem, key, count=n - n / len(folds))
        fold_moments = _gather(problem, columns, folds)
        centres, used = columns.centres(), []
        for start, stop in folds:
            inside = (index >= start) & (index < stop)
            used.append(np.flatnonzero((centres < 0) | ~inside[centres]))
        intercepts, coef = fits_without_each(fold_moments, columns.penalty(), used)
        if problem.draw is not None:
            draws, folds_of_draws = problem.take(problem.draws), on_draws(folds, problem.draw)
            intercepts = mean_residuals(_gather(draws, columns, folds_of_draws), coef)
        residuals = [f - a @ coef[fold] for fold, a, f, _ in _pieces(problem, columns, folds)]
        note = f"Nyström: {len(index)} landmarks, {n} draws"
        return HeldOut(np.concatenate(residuals), note, intercepts, folds=folds)

    def _columns(
        self, problem: Problem, key: Key | None, count: float | None = None
    ) -> tuple[NystromColumns, np.ndarray]:
        if has_mean_square(problem):
            raise ValueError(
                "MeanSquare is a penalty on values, and landmarks need one on the coefficients: use "
                "NativeNorm, or Stochastic()."
            )
        index = spread_out(problem.x, self.count, key)
        landmarks = (np.asarray(problem.x)[index], np.asarray(problem.score)[index])
        return nystrom_terms(linear_terms(problem, count), self.count, landmarks), index


def _gather(problem: Problem, columns: NystromColumns, folds: Folds) -> list[Moments]:
    """Compute the moments of every fold."""
    groups = groupby(_pieces(problem, columns, folds), key=itemgetter(0))
    return [gathered_moments(piece[1:] for piece in pieces) for _, pieces in groups]


def _pieces(
    problem: Problem, columns: NystromColumns, folds: Folds
) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray | None]]:
    """Iterate over blocks of draws: their fold, columns, integrands and squared weights."""
    f = np.asarray(problem.f)
    squares = None if problem.weights is None else np.asarray(problem.weights, np.float64) ** 2
    rows = min(NYSTROM_ROWS, max(stop - start for start, stop in folds))
    for fold, (start, stop) in enumerate(folds):
        for low in range(start, stop, rows):
            high = min(low + rows, stop)
            a = np.asarray(columns.matrix(problem.x[low:high], problem.score[low:high]))
            yield fold, a, f[low:high], None if squares is None else squares[low:high]
