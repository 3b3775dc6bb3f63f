"""In many dimensions: each integrand as a function along one direction, which a ridge finds."""

from dataclasses import dataclass

import numpy as np

from ..data._affine import DRAWS_PER_DIM
from ..solvers import Folds
from ..solvers._problem import LeftOut
from ._arena import Arena
from ._least_squares import cross_fit
from ._recipes import Recipe
from ._trials import Trial, no_trial, side_by_side, trial_of

STRENGTHS = 10.0 ** np.arange(-3.0, 1.5, 0.5)  # of the ridge, over the median size of a score
POWERS = (0, 1, 2, 3)  # of what is along the direction
FLOOR = 1e-12  # of the variances of coordinates, which are 1 on all draws
TOGETHER = 64  # integrands whose columns are taken at a time


@dataclass(frozen=True)
class Ridge:
    r"""The ridge regression of integrands on scores, $\min_b \|f - c - S b\|^2 + \lambda \|b\|^2$.

    Everything comes from the singular value decomposition $S = U \Sigma V^\top$: with
    $Q = (S S^\top + \lambda)^{-1}$, leaving out a fold needs the blocks $Q_{BB}$ alone.
    """

    left: np.ndarray  # U, (n, r)
    values: np.ndarray  # (r,)
    right: np.ndarray  # V, (d, r)
    strength: float
    f: np.ndarray  # (n, k)
    folds: Folds

    def held_out(self) -> tuple[np.ndarray, np.ndarray]:
        """f - g on draws that were left out, (n, k), and the coefficients b, (fold, d, k)."""
        inverse = 1 / (self.values**2 + self.strength)
        shrink, gain = inverse - 1 / self.strength, self.values * inverse
        ones, along = self.left.sum(axis=0), self.left.T @ self.f
        q = self.left @ (shrink * ones) + 1 / self.strength
        qf = self.left @ (shrink[:, None] * along) + self.f / self.strength
        rest, slopes = np.empty_like(self.f), []
        for start, stop in self.folds:
            fold = slice(start, stop)
            own = self.left[fold]
            block = (own * shrink) @ own.T + np.eye(stop - start) / self.strength
            solved = np.linalg.solve(block, np.column_stack([q[fold], qf[fold]]))
            one, each = solved[:, 0], solved[:, 1:]
            centre = (q @ self.f - q[fold] @ each) / (q.sum() - q[fold] @ one)
            error = each - np.outer(one, centre)
            rest[fold] = centre + error
            pull = along - np.outer(ones, centre) - own.T @ error
            slopes.append(self.right @ (gain[:, None] * pull))
        return rest, np.array(slopes)


def along_directions(arena: Arena) -> list[Trial]:
    r"""Powers of what lies along each integrand's own direction, the least first.

    A ridge on all folds but one gives $b$, and the control variates on that one are
    $\operatorname{div} u + u \cdot s$ of $u = (a^\top x)^j\, b$ for $j = 0, 1, \ldots$, with $a =
    \Sigma^{-1} b$ and $\Sigma$ the covariance of all folds but that one: for a Gaussian, functions of one
    combination of the coordinates. There are few coefficients, and no draw has a say in the
    directions that it is used with, which would bias what is averaged over it.
    """
    (x, score), f = map(np.asarray, arena.scaled), np.asarray(arena.f)
    x = x - x.mean(axis=0)
    left, values, right = _decomposed(score)
    size = float(np.median((score**2).sum(axis=1)))
    best = np.full(f.shape[1], np.inf)
    slopes = np.zeros((len(arena.folds), x.shape[1], f.shape[1]))
    for strength in STRENGTHS * size:
        rest, found = Ridge(left, values, right, strength, f, arena.folds).held_out()
        better = rest.var(axis=0) < best
        best = np.where(better, rest.var(axis=0), best)
        slopes[..., better] = found[..., better]
    features = _features(x, score, slopes, arena.folds)
    return [
        _tried(Recipe(power + 1, along=True), features[..., : power + 1], f, arena.folds)
        for power in POWERS
    ]


def _tried(recipe: Recipe, features: np.ndarray, f: np.ndarray, folds: Folds) -> Trial:
    """Each integrand on columns of its own, (n, k, p)."""
    trials = []
    for start in range(0, f.shape[1], TOGETHER):
        some = slice(start, start + TOGETHER)
        trials += _some_tried(recipe, features[:, some].swapaxes(0, 1), f.T[some, :, None], folds)
    return side_by_side(trials)


def _some_tried(recipe: Recipe, features: np.ndarray, f: np.ndarray, folds: Folds) -> list[Trial]:
    """A trial for each of some integrands, (k, n, p); none for one whose columns are dependent."""
    found = cross_fit(features, f, folds)
    if found is not None:
        return [trial_of(recipe, LeftOut(*one)) for one in zip(*found, strict=True)]
    if len(f) == 1:
        return [no_trial(recipe, f.shape[1], folds)]
    parts = zip(features, f, strict=True)
    return [one for x, y in parts for one in _some_tried(recipe, x[None], y[None], folds)]


def _decomposed(score: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The singular values and vectors, by the smaller of two moment matrices."""
    n, dim = score.shape
    if dim <= n:
        square, right = np.linalg.eigh(score.T @ score)
        values = np.sqrt(np.maximum(square, square[-1] * 1e-14))
        return score @ right / values, values, right
    square, left = np.linalg.eigh(score @ score.T)
    values = np.sqrt(np.maximum(square, square[-1] * 1e-14))
    return left, values, score.T @ left / values


def _features(x: np.ndarray, score: np.ndarray, slopes: np.ndarray, folds: Folds) -> np.ndarray:
    """The control variates of all powers on every draw, with its fold's directions, (n, k, p)."""
    n, dim = x.shape
    least = min(n - (stop - start) for start, stop in folds)
    moments = x.T @ x if least >= DRAWS_PER_DIM * dim else None
    columns = np.empty((n, slopes.shape[2], len(POWERS)))
    for (start, stop), push in zip(folds, slopes, strict=True):
        own, train = x[start:stop], n - (stop - start)
        along = push
        if moments is not None:
            spread = (moments - own.T @ own) / train + FLOOR * np.eye(dim)
            along = np.linalg.solve(spread, push)
        length = np.sqrt(np.maximum((along * push).sum(axis=0), np.finfo(float).tiny))
        place, pushed = own @ along / length, score[start:stop] @ push / length
        for j in POWERS:
            slope = j * place ** (j - 1) if j else 0.0
            columns[start:stop, :, j] = place**j * pushed + slope
    return columns
