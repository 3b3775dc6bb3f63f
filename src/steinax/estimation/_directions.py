"""Candidates for many dimensions: functions of single coordinates, or along one estimated direction."""

import numpy as np

from ..data import DRAWS_PER_DIM
from ..kernels import Directional
from ..solvers import CrossFitted, Folds, HeldOut, Regression, fits_without_each, moments
from ._candidates import DIRECTIONAL, Candidate, polynomial
from ._draws import LANGEVIN, CandidateFit, RealDraws, side_by_side

STRENGTHS = 10.0 ** np.arange(
    -3.0, 1.5, 0.5
)  # ridge penalties, relative to the median squared score
POWERS = (0, 1, 2, 3)  # of the coordinate along the direction
FLOOR = 1e-12  # added to the variances of coordinates, which are 1 on all draws
TOGETHER = 64  # integrands fitted at a time, each with its own columns
# The most draws for a kernel along a direction: each integrand needs its own factorisation.
DRAWS = 500
BENT = 0.9  # of the residual variance of a linear function: powers of it must get below
FACTOR = 2.0  # the length-scale of the directional kernel, over the median distance
ALONG = Candidate(polynomial(1), DIRECTIONAL, FACTOR, 1.0, own=True)


def of_each_dimension(draws: RealDraws, degree: int) -> CandidateFit | None:
    r"""Fit polynomials of single dimensions; None if their columns are linearly dependent.

    The features are $\operatorname{div} \varphi + \varphi \cdot s$ of $\varphi = x_j^m \Sigma e_j$, m below
    the degree. With $\Sigma$ the covariance, they span all polynomials of that degree in one dimension
    of a Gaussian, whatever its correlations. The covariance is that of the training draws: including the
    held-out draws would bias the averages over them, in proportion to the number of dimensions per draw.
    """
    x, score = draws.scaled
    x = x - x.mean(axis=0)
    regressions = []
    for start, stop in draws.folds:
        others = np.r_[:start, stop : draws.size]
        order = np.r_[start:stop, others]
        spread = _covariance(x[others], None if draws.weights is None else draws.weights[others])
        columns = _powers(x[order], score[order] @ spread, np.diag(spread), degree)
        weights = None if draws.weights is None else draws.weights[order]
        regressions.append(Regression(columns, weights=weights))
    if not all(regression.sound for regression in regressions):
        return None
    held = CrossFitted(tuple(regressions), draws.folds, draw=draws.draw).leave_out(draws.f)
    return draws.tried(Candidate(f"{polynomial(degree)} of each dimension"), held)


def _covariance(x: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Compute the covariance of centred draws; the identity if there are too few draws."""
    n, dim = x.shape
    if n < DRAWS_PER_DIM * dim:
        return np.eye(dim)
    return (x if weights is None else weights[:, None] / weights.mean() * x).T @ x / n


def _powers(x: np.ndarray, along: np.ndarray, spread: np.ndarray, degree: int) -> np.ndarray:
    """Compute the features of powers of single dimensions, (n, degree * dim)."""
    powers = [x ** (m - 1) * (m * spread + x * along) for m in range(1, degree)]
    return np.concatenate([along, *powers], axis=1)


def along_directions(draws: RealDraws) -> list[CandidateFit]:
    r"""Fit powers of the coordinate along each integrand's own direction, the lowest power first.

    A ridge regression on all folds but one gives $b$, and the control variates on that fold are
    $\operatorname{div} u + u \cdot s$ of $u = (a^\top x)^j\, b$ for $j = 0, 1, \ldots$, with $a =
    \Sigma^{-1} b$ and $\Sigma$ the covariance of all folds but that one: for a Gaussian, functions of one
    combination of the coordinates. There are few coefficients, and no draw influences the direction
    that it is used with, which would bias the averages.
    """
    (x, score), f, folds = draws.scaled, draws.f, draws.folds
    x = x - x.mean(axis=0)
    size = float(np.median((score**2).sum(axis=1)))
    slopes = _slopes(score, f, STRENGTHS * size, folds)
    features = _features(x, score, slopes, folds)
    return [_fit_powers(draws, power, features[..., : power + 1]) for power in POWERS]


def _slopes(score: np.ndarray, f: np.ndarray, strengths: np.ndarray, folds: Folds) -> np.ndarray:
    """Compute the slopes of the best ridge regression on scores for each integrand, (fold, d, k)."""
    best = np.full(f.shape[1], np.inf)
    slopes = np.zeros((len(folds), score.shape[1], f.shape[1]))
    few = score.shape[1] <= score.shape[0]
    fold_moments = [moments(score[i:j], f[i:j]) for i, j in folds] if few else []
    for strength in strengths:
        if few:
            intercepts, coefficients = fits_without_each(
                fold_moments, strength * np.eye(score.shape[1])
            )
            fits = [score[i:j] @ coefficients[k] + intercepts[k] for k, (i, j) in enumerate(folds)]
            residual = f - np.concatenate(fits)
        else:
            regression = Regression(kernel=score @ score.T, penalty=strength)
            residual = regression.leave_out(f, folds, expected=False).residual
            coefficients = np.stack(
                [score.T @ fit.kernel for fit in regression.without_each(f, folds)]
            )
        variance = residual.var(axis=0)
        better = variance < best
        best = np.where(better, variance, best)
        slopes[..., better] = coefficients[..., better]
    return slopes


def _fit_powers(draws: RealDraws, power: int, features: np.ndarray) -> CandidateFit:
    """Fit each integrand to its own columns, features of shape (n, k, p)."""
    name = f"{polynomial(power + 1)} along its direction"
    candidate, f, fits = Candidate(name, own=True), draws.f, []
    for start in range(0, f.shape[1], TOGETHER):
        block = slice(start, start + TOGETHER)
        fit = Regression(features[:, block].swapaxes(0, 1))
        held = fit.leave_out(f.T[block, :, None], draws.folds, draw=draws.draw)
        columns = zip(held.residual, held.intercepts, held.variance, fit.sound, strict=True)  # type: ignore
        for residual, intercepts, expected, sound in columns:
            variance = expected if sound else np.full(len(f), np.nan)
            column = HeldOut(residual, "", intercepts, variance, draws.folds)
            fits.append(draws.tried(candidate, column))
    return side_by_side(fits)


def _features(x: np.ndarray, score: np.ndarray, slopes: np.ndarray, folds: Folds) -> np.ndarray:
    """Compute the features of all powers on every draw, with the directions of its fold, (n, k, p)."""
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


def bent(draws: RealDraws, along: list[CandidateFit]) -> np.ndarray:
    """Flag the integrands that are far from linear along their directions, (k,).

    They are those that higher powers fit better; none are flagged if there are too many draws.
    """
    if draws.size > DRAWS:
        return np.zeros(len(along[0].variance), bool)
    linear, *powers = (fit.open_variance for fit in along)
    return np.min(powers, axis=0) < BENT * linear


def directional(draws: RealDraws, selected: np.ndarray) -> CandidateFit:
    r"""Fit a linear polynomial and a kernel along each integrand's own direction.

    The direction is that of the coefficients of the best linear control variate, $f \approx c +
    b^\top s$: for a Gaussian the gradient of the smoothed integrand.

    Args:
        draws: all draws.
        selected: the integrands to fit, (k,).
    """
    columns, points = draws.columns(ALONG.columns), (draws.x, draws.score)
    slopes = Regression(columns).solve(draws.f).columns
    directions = slopes / np.maximum(np.linalg.norm(slopes, axis=0), np.finfo(float).tiny)
    n, folds, fits = draws.size, draws.folds, []
    for i, direction in enumerate(directions.T):
        column = draws.f[:, i : i + 1]
        if not selected[i]:
            plain = HeldOut(column, "", np.zeros((len(folds), 1)), np.full(n, np.nan), folds)
            fits.append(draws.tried(ALONG, plain))
            continue
        kernel = Directional(direction, 2.0, FACTOR * draws.median)
        matrix = kernel.stein_matrix(LANGEVIN, *points, *points)
        penalty = ALONG.penalty * float(np.median(np.diagonal(matrix)))
        regression = Regression(columns, matrix, penalty=penalty)
        fits.append(draws.tried(ALONG, regression.leave_out(column, folds, draw=draws.draw)))
    return side_by_side(fits)
