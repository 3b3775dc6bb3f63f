from collections.abc import Iterator
from functools import reduce
from itertools import groupby
from operator import itemgetter

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .._types import Key
from ._base import AbstractSolver, HeldOut, Solution, linear_solution
from ._linear_system import has_mean_square, linear_terms
from ._moments import Moments, gathered_moments
from ._nystrom_columns import NystromColumns, nystrom_terms
from ._problem import Folds, Problem
from ._selection import spread_out

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

    count: int = eqx.field(static=True, default=800)

    def __check_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"Nystrom({self.count}): ask for at least one landmark.")

    def solve(self, problem: Problem, key: Key) -> Solution:
        made, index = self._columns(problem, key)
        whole = ((0, problem.x.shape[0]),)
        total = _gather(problem, made, whole)[0]
        intercept, w = total.solve(made.penalty())
        coef = made.coefficients(jnp.asarray(w))
        note = f"Nyström: {len(index)} landmarks, {problem.x.shape[0]} draws"
        return linear_solution(problem, made.states, coef, jnp.asarray(intercept), note)

    def crossfit(self, problem: Problem, folds: Folds, key: Key) -> HeldOut:
        n = problem.x.shape[0]
        made, index = self._columns(problem, key, count=n - n / len(folds))
        parts = _gather(problem, made, folds)
        total, penalty = reduce(Moments.merge, parts), made.penalty()
        centres = made.centres()
        solved, intercepts = [], []
        for part, (start, stop) in zip(parts, folds, strict=True):
            inside = (index >= start) & (index < stop)
            used = np.flatnonzero((centres < 0) | ~inside[centres])
            train = total.without(part).only(used)
            intercept, own = train.solve(penalty[np.ix_(used, used)])
            w = np.zeros_like(total.cross)
            w[used] = own
            solved.append(w)
            intercepts.append(intercept)
        rest = [f - a @ solved[fold] for fold, a, f, _ in _pieces(problem, made, folds)]
        note = f"Nyström: {len(index)} landmarks, {n} draws"
        return HeldOut(
            jnp.asarray(np.concatenate(rest)), note, intercepts=jnp.asarray(np.stack(intercepts))
        )

    def _columns(
        self, problem: Problem, key: Key, count: float | None = None
    ) -> tuple[NystromColumns, np.ndarray]:
        if has_mean_square(problem):
            raise ValueError(
                "MeanSquare is a penalty on values, and landmarks need one on the coefficients: use "
                "NativeNorm, or Stochastic()."
            )
        index = spread_out(problem.x, self.count, key)
        landmarks = (jnp.asarray(problem.x)[index], jnp.asarray(problem.score)[index])
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
            # one length for all, so that one compilation serves them
            at = np.minimum(np.arange(here, here + rows), len(f) - 1)
            a = np.asarray(made.matrix(problem.x[at], problem.score[at]))[: there - here]
            yield fold, a, f[here:there], None if squares is None else squares[here:there]
