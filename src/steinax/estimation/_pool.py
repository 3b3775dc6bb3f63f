"""Candidates as they come: numbers of all, and the series of the best few for each integrand."""

import numpy as np

from .._types import AnyArray
from ..solvers import Folds
from ._stability import moves
from ._trials import Tried

MIXED = 8  # candidates at most in a mixture: only their series are held


class Pool[R]:
    """What the choice has to know of all candidates, in little memory.

    A candidate may come again, for other integrands that asked for it later.

    Attributes:
        recipes: of the candidates; the first is plain Monte Carlo.
        plain: the series of plain Monte Carlo, (n, k).
        variance: of each candidate, whoever asked for it, (trial, k).
        usable: which integrands may use it, (trial, k).
        error: the variance of its estimate, its moves included; infinite if not usable, (trial, k).
        mean: its estimate, 0 if not usable, (trial, k).
        place: the best few candidates of each integrand, (k, few).
        least: their variances, infinite where there are not so many, (k, few).
        series: their f - g, (k, few, n).
        moved: how far their fits move, (k, few, fold).
    """

    def __init__(self, plain: Tried[R], autocorrelation: AnyArray, folds: Folds):
        n, k = plain.rest.shape
        self.plain, self.folds = plain.rest, folds
        self.per_draw = np.asarray(autocorrelation) / n
        self.recipes: list[R] = []
        self.variance: list[np.ndarray] = []
        self.usable: list[np.ndarray] = []
        self.error: list[np.ndarray] = []
        self.mean: list[np.ndarray] = []
        self.rows: dict[str, int] = {}
        self.place = np.zeros((k, MIXED), int)
        self.least = np.full((k, MIXED), np.inf)
        self.series = np.zeros((k, MIXED, n))
        self.moved = np.zeros((k, MIXED, len(folds)))
        self.add(plain)

    def add(self, trial: Tried[R]) -> None:
        """One more candidate, or one that other integrands asked for before."""
        usable = trial.usable
        if self.recipes and not usable.any():
            return
        moved = moves(trial.rest, trial.intercepts, self.folds)
        if not self.recipes:
            moved[:] = 0.0  # plain averages move as averages do
        error = trial.variance * self.per_draw + (moved**2).sum(axis=0)
        row = self._row(trial, usable)
        self.error[row] = np.where(usable, error, self.error[row])
        self.mean[row] = np.where(usable, trial.rest.mean(axis=0), self.mean[row])
        slot = self.least.argmax(axis=1)
        worst = np.take_along_axis(self.least, slot[:, None], axis=1)[:, 0]
        better = np.flatnonzero(trial.open_variance < worst)
        at = (better, slot[better])
        self.place[at], self.least[at] = row, trial.variance[better]
        self.series[at], self.moved[at] = trial.rest[:, better].T, moved[:, better].T

    def _row(self, trial: Tried[R], usable: np.ndarray) -> int:
        """Where the numbers of a candidate stand."""
        name = str(trial.recipe)
        row = self.rows.get(name)
        if row is not None and not (self.usable[row] & usable).any():
            self.usable[row] = self.usable[row] | usable
            return row
        self.rows[name] = len(self.recipes)
        self.recipes.append(trial.recipe)
        self.variance.append(trial.variance)
        self.usable.append(usable)
        self.error.append(np.full(len(usable), np.inf))
        self.mean.append(np.zeros(len(usable)))
        return len(self.recipes) - 1
