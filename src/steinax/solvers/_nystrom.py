"""Kernels by landmarks: least squares from moments, in one pass over the draws."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import ClassVar

import equinox as eqx
import numpy as np
from scipy.linalg import block_diag

from .._linalg import namespace
from .._types import AnyArray, Coefficients, Key, Points
from ..families import Landmarks
from ._base import AbstractSolver, Problem, Solution, linear_solution
from ._exact import Term, gather, has_mean_square, kernel_of, linear_terms
from ._moments import Moments, fits_without_each, gathered_moments
from ._regression import Folds, HeldOut

CANDIDATES = 10  # draws looked at for every landmark


def spread_out(x: AnyArray, count: int, key: Key | None = None) -> np.ndarray:
    r"""The indices of `count` draws, each found with a chance that grows with its squared distance.

    The distance is that to the landmarks before it (Arthur and Vassilvitskii, 2007). Up to ten draws
    per landmark are looked at, evenly spaced, so that the cost, $O(10\, M^2 d)$, is not one of $n$.
    """
    n = len(x)
    if n <= count:
        return np.arange(n)
    looked_at = Landmarks(CANDIDATES * count).choose(n)
    chosen = _seeds(np.asarray(x)[looked_at], count, _generator(key))
    return np.sort(looked_at[chosen])


def _generator(key: Key | None) -> np.random.Generator:
    if key is None:
        return np.random.default_rng(0)
    import jax

    return np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel().astype(np.uint32))


def _seeds(x: np.ndarray, count: int, rng: np.random.Generator) -> list[int]:
    chosen, size = [0], (x**2).sum(axis=1)

    def squared(place: int) -> np.ndarray:
        return np.maximum(size + size[place] - 2 * (x @ x[place]), 0.0)

    distance = squared(0)
    for chance in rng.uniform(size=count - 1):
        below = np.cumsum(distance)
        place = int(np.searchsorted(below, chance * below[-1], side="right").clip(0, len(x) - 1))
        distance = np.minimum(distance, squared(place))
        chosen.append(place)
    return chosen


class NystromColumns(eqx.Module):
    r"""The features of narrow terms, then the kernel of the wide ones at the landmarks $S$."""

    terms: tuple[Term, ...]
    wide: tuple[bool, ...] = eqx.field(static=True)
    landmarks: tuple[Points, Points]

    @property
    def states(self) -> tuple:
        """The state of every term."""
        return tuple(term.state for term in self.terms)

    @property
    def width(self) -> int:
        """How many columns the wide terms have."""
        return len(self.landmarks[0]) if any(self.wide) else 0

    def centres(self) -> np.ndarray:
        """The landmark that each column is centred on, -1 where there is none."""
        dim, own = self.landmarks[0].shape[1], np.arange(len(self.landmarks[0]))
        parts = [
            own if term.family.is_whole_space else np.full(term.size(dim), -1)
            for term in self._terms(False)
        ]
        return np.concatenate([*parts, own[: self.width]])

    def matrix(self, x: Points, score: Points) -> AnyArray:
        """The columns of some draws: narrow terms first."""
        parts = [t.family.feature_matrix(t.state, x, score) for t in self._terms(False)]
        if any(self.wide):
            parts.append(kernel_of(self._terms(True), x, score, *self.landmarks))
        return namespace(*parts).concat(parts, axis=1)

    def penalty(self) -> np.ndarray:
        """The matrix of the penalty on their coefficients."""
        dim = self.landmarks[0].shape[1]
        parts = [term.form(dim) for term in self._terms(False)]
        if any(self.wide):
            both = (*self.landmarks, *self.landmarks)
            parts.append(np.asarray(kernel_of(self._terms(True), *both)))
        return np.asarray(block_diag(*parts))

    def coefficients(self, w: Coefficients) -> AnyArray:
        """The coefficients of all terms, in their own order, from those of the columns."""
        cut = len(w) - self.width
        return gather(self.terms, *self.landmarks, w[:cut], w[cut:], by_dual=self.wide)

    def _terms(self, wide: bool) -> tuple[Term, ...]:
        each = zip(self.terms, self.wide, strict=True)
        return tuple(term for term, is_wide in each if is_wide is wide)


def nystrom_terms(
    terms: tuple[Term, ...], count: int, landmarks: tuple[Points, Points]
) -> NystromColumns:
    """Columns for terms, the widest by their kernel.

    A control functional is set up on the landmarks alone, and so evaluated at their cost. Any other
    term with more than `count` coefficients goes by its kernel, if a penalty gives it one.
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


ROWS = 4096  # draws whose columns are in memory at once


class Nystrom(AbstractSolver):
    r"""Kernels on a few landmark draws $S$, exact for the functions that these span.

    Of a control functional $g = \sum_i \theta_i k_0(\cdot, x_i)$ only the translates to $M$ landmarks
    are kept,

    $$ \min_{c, \theta}\; \|f - c - K_{XS}\, \theta\|^2 + m \lambda\, \theta^\top K_{SS}\, \theta, $$

    in $O(n M^2)$ operations and memory for one block of rows of $K_{XS}$. Terms with fewer
    coefficients than landmarks are taken as they are. Cross-fitting subtracts the moments of a
    fold, and drops the landmarks in it.

    Args:
        count: how many landmarks; with as many as draws the fit is that of `Exact`.

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
        made, index = self._columns(problem, key)
        whole = ((0, problem.x.shape[0]),)
        total = _gather(problem, made, whole)[0]
        intercept, w = total.solve(made.penalty())
        coef = made.coefficients(w)
        note = f"Nyström: {len(index)} landmarks, {problem.x.shape[0]} draws"
        return linear_solution(problem, made.states, coef, intercept, note)

    def crossfit(self, problem: Problem, folds: Folds, key: Key | None = None) -> HeldOut:
        n = problem.x.shape[0]
        made, index = self._columns(problem, key, count=n - n / len(folds))
        parts = _gather(problem, made, folds)
        centres, used = made.centres(), []
        for start, stop in folds:
            inside = (index >= start) & (index < stop)
            used.append(np.flatnonzero((centres < 0) | ~inside[centres]))
        intercepts, coef = fits_without_each(parts, made.penalty(), used)
        residuals = [f - a @ coef[fold] for fold, a, f, _ in _pieces(problem, made, folds)]
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


def _gather(problem: Problem, made: NystromColumns, folds: Folds) -> list[Moments]:
    """The moments of every fold."""
    each = groupby(_pieces(problem, made, folds), key=itemgetter(0))
    return [gathered_moments(piece[1:] for piece in pieces) for _, pieces in each]


def _pieces(
    problem: Problem, made: NystromColumns, folds: Folds
) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray | None]]:
    """Which fold, and the columns, integrands and weights of a few draws of it at a time."""
    f = np.asarray(problem.f)
    squares = None if problem.root is None else np.asarray(problem.root, np.float64) ** 2
    rows = min(ROWS, max(stop - start for start, stop in folds))
    for fold, (start, stop) in enumerate(folds):
        for here in range(start, stop, rows):
            there = min(here + rows, stop)
            a = np.asarray(made.matrix(problem.x[here:there], problem.score[here:there]))
            yield fold, a, f[here:there], None if squares is None else squares[here:there]
