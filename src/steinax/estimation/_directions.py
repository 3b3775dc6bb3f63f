"""In many dimensions: functions of single coordinates, or along one direction, which a ridge finds."""

import numpy as np

from ..data._coordinates import DRAWS_PER_DIM
from ..kernels._directional import Directional
from ..solvers import CrossFitted, Folds, HeldOut, Regression
from ..solvers._moments import fits_without_each, moments
from ._candidates import DIRECTIONAL, Candidate, polynomial
from ._draws import LANGEVIN, RealDraws, Trial, side_by_side

STRENGTHS = 10.0 ** np.arange(-3.0, 1.5, 0.5)  # of the ridge, over the median size of a score
POWERS = (0, 1, 2, 3)  # of what is along the direction
FLOOR = 1e-12  # of the variances of coordinates, which are 1 on all draws
TOGETHER = 64  # integrands whose columns are taken at a time
# Draws for a kernel along a direction, at most: each integrand has a factorisation of its own.
DRAWS = 500
BENT = 0.9  # of the variance that a linear function leaves, where powers of it leave less
FACTOR = 2.0  # of its length-scale, over the median distance
ALONG = Candidate(polynomial(1), DIRECTIONAL, FACTOR, 1.0, own=True)


def of_each_dimension(draws: RealDraws, degree: int) -> Trial | None:
    r"""Polynomials of single dimensions; None where their columns depend on each other.

    The features are $\operatorname{div} \varphi + \varphi \cdot s$ of $\varphi = x_j^m \Sigma e_j$, m below
    the degree. With $\Sigma$ the covariance, they hold all polynomials of that degree of one dimension
    of a Gaussian, whatever its correlations. It is that of the draws that are fitted to: one that had seen
    the held-out draws would bias what is averaged over them, by as much as there are dimensions per draw.
    """
    x, score = draws.scaled
    x = x - x.mean(axis=0)
    made = []
    for start, stop in draws.folds:
        others = np.r_[:start, stop : draws.size]
        order = np.r_[start:stop, others]
        spread = _covariance(x[others], None if draws.root is None else draws.root[others])
        columns = _powers(x[order], score[order] @ spread, np.diag(spread), degree)
        weights = None if draws.weights is None else draws.weights[order]
        made.append(Regression(columns, weights=weights))
    if not all(one.sound for one in made):
        return None
    held = CrossFitted(tuple(made), draws.folds).leave_out(draws.f)
    return draws.tried(Candidate(f"{polynomial(degree)} of each dimension"), held)


def _covariance(x: np.ndarray, root: np.ndarray | None) -> np.ndarray:
    """That of centred draws; the identity where there are too few of them to know it."""
    n, dim = x.shape
    if n < DRAWS_PER_DIM * dim:
        return np.eye(dim)
    return (x if root is None else root[:, None] / root.mean() * x).T @ x / n


def _powers(x: np.ndarray, along: np.ndarray, spread: np.ndarray, degree: int) -> np.ndarray:
    """The features of the powers of single dimensions, (n, degree * dim)."""
    powers = [x ** (m - 1) * (m * spread + x * along) for m in range(1, degree)]
    return np.concatenate([along, *powers], axis=1)


def along_directions(draws: RealDraws) -> list[Trial]:
    r"""Powers of what lies along each integrand's own direction, the least first.

    A ridge on all folds but one gives $b$, and the control variates on that one are
    $\operatorname{div} u + u \cdot s$ of $u = (a^\top x)^j\, b$ for $j = 0, 1, \ldots$, with $a =
    \Sigma^{-1} b$ and $\Sigma$ the covariance of all folds but that one: for a Gaussian, functions of one
    combination of the coordinates. There are few coefficients, and no draw has a say in the
    directions that it is used with, which would bias what is averaged over it.
    """
    (x, score), f, folds = draws.scaled, draws.f, draws.folds
    x = x - x.mean(axis=0)
    size = float(np.median((score**2).sum(axis=1)))
    slopes = _slopes(score, f, STRENGTHS * size, folds)
    features = _features(x, score, slopes, folds)
    return [_tried(draws, power, features[..., : power + 1]) for power in POWERS]


def _slopes(score: np.ndarray, f: np.ndarray, strengths: np.ndarray, folds: Folds) -> np.ndarray:
    """Of ridge regressions on scores without each fold, each integrand's best, (fold, d, k)."""
    best = np.full(f.shape[1], np.inf)
    slopes = np.zeros((len(folds), score.shape[1], f.shape[1]))
    few = score.shape[1] <= score.shape[0]
    parts = [moments(score[i:j], f[i:j]) for i, j in folds] if few else []
    for strength in strengths:
        if few:
            intercepts, found = fits_without_each(parts, strength * np.eye(score.shape[1]))
            fits = [score[i:j] @ found[k] + intercepts[k] for k, (i, j) in enumerate(folds)]
            residual = f - np.concatenate(fits)
        else:
            made = Regression(kernel=score @ score.T, penalty=strength)
            residual = made.leave_out(f, folds, expected=False).residual
            found = np.stack([score.T @ one.kernel for one in made.without_each(f, folds)])
        variance = residual.var(axis=0)
        better = variance < best
        best = np.where(better, variance, best)
        slopes[..., better] = found[..., better]
    return slopes


def _tried(draws: RealDraws, power: int, features: np.ndarray) -> Trial:
    """Each integrand on columns of its own, (n, k, p)."""
    name = f"{polynomial(power + 1)} along its direction"
    candidate, f, trials = Candidate(name, own=True), draws.f, []
    for start in range(0, f.shape[1], TOGETHER):
        some = slice(start, start + TOGETHER)
        made = Regression(features[:, some].swapaxes(0, 1))
        held = made.leave_out(f.T[some, :, None], draws.folds)
        parts = zip(held.residual, held.intercepts, held.variance, made.sound, strict=True)  # type: ignore
        for residual, intercepts, expected, sound in parts:
            variance = expected if sound else np.full(len(f), np.nan)
            one = HeldOut(residual, "", intercepts, variance, draws.folds)
            trials.append(draws.tried(candidate, one))
    return side_by_side(trials)


def _features(x: np.ndarray, score: np.ndarray, slopes: np.ndarray, folds: Folds) -> np.ndarray:
    """The control variates of all powers on every draw, with its fold's directions, (n, k, p)."""
    n, dim = x.shape
    least = min(n - (stop - start) for start, stop in folds)
    moments = x.T @ x if least >= DRAWS_PER_DIM * dim else None
    columns = np.empty((n, slopes.shape[2], len(POWERS)))
    for (start, stop), push in zip(folds, slopes, strict=True):
        inside, train = x[start:stop], n - (stop - start)
        along = push
        if moments is not None:
            spread = (moments - inside.T @ inside) / train + FLOOR * np.eye(dim)
            along = np.linalg.solve(spread, push)
        length = np.sqrt(np.maximum((along * push).sum(axis=0), np.finfo(float).tiny))
        place, pushed = inside @ along / length, score[start:stop] @ push / length
        for j in POWERS:
            slope = j * place ** (j - 1) if j else 0.0
            columns[start:stop, :, j] = place**j * pushed + slope
    return columns


def bent(along: list[Trial]) -> np.ndarray:
    """The integrands that are far from linear along their directions, (k,), by powers along them.

    None where draws are too many.
    """
    if len(along[0].held.residual) > DRAWS:
        return np.zeros(len(along[0].variance), bool)
    linear, *powers = (trial.open_variance for trial in along)
    return np.min(powers, axis=0) < BENT * linear


def directional(draws: RealDraws, some: np.ndarray) -> Trial:
    r"""A linear polynomial and a kernel along each integrand's own direction.

    The direction is that of the coefficients of the best linear control variate, $f \approx c +
    b^\top s$: for a Gaussian the gradient of the smoothed integrand.

    Args:
        draws: all of them.
        some: the integrands that have it, (k,).
    """
    columns, points = draws.columns(ALONG.columns), (draws.x, draws.score)
    slopes = Regression(columns).solve(draws.f).columns
    directions = slopes / np.maximum(np.linalg.norm(slopes, axis=0), np.finfo(float).tiny)
    n, folds, found = draws.size, draws.folds, []
    for i, direction in enumerate(directions.T):
        own = draws.f[:, i : i + 1]
        if not some[i]:
            none = HeldOut(own, "", np.zeros((len(folds), 1)), np.full(n, np.nan), folds)
            found.append(draws.tried(ALONG, none))
            continue
        kernel = Directional(direction, 2.0, FACTOR * draws.median)
        matrix = kernel.stein_matrix(LANGEVIN, *points, *points)
        penalty = ALONG.penalty * float(np.median(np.diagonal(matrix)))
        made = Regression(columns, matrix, penalty=penalty)
        found.append(draws.tried(ALONG, made.leave_out(own, folds)))
    return side_by_side(found)
