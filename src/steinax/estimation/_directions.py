"""Candidates for many dimensions: functions of single coordinates, of one direction, or tied over vectors."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement

import numpy as np

from ..data import DRAWS_PER_DIM
from ..kernels import Directional
from ..solvers import (
    CrossFitted,
    Folds,
    HeldOut,
    Regression,
    fits_without_each,
    moments,
    widened,
)
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
    folds, fits = draws.folds, []
    for i, direction in enumerate(directions.T):
        column = draws.f[:, i : i + 1]
        if not selected[i]:
            fits.append(_not_fitted(draws, ALONG, column))
            continue
        kernel = Directional(direction, 2.0, FACTOR * draws.median)
        matrix = kernel.stein_matrix(LANGEVIN, *points, *points)
        penalty = ALONG.penalty * float(np.median(np.diagonal(matrix)))
        regression = Regression(columns, matrix, penalty=penalty)
        fits.append(draws.tried(ALONG, regression.leave_out(column, folds, draw=draws.draw)))
    return side_by_side(fits)


def _not_fitted(draws: RealDraws, candidate: Candidate, column: np.ndarray) -> CandidateFit:
    """Stand in for the fit of an integrand, (rows, 1), that may not use a candidate: its variance is NaN."""
    unknown, intercepts = np.full(len(column), np.nan), np.zeros((len(draws.folds), 1))
    return draws.tried(candidate, HeldOut(column, "", intercepts, unknown, draws.folds))


GLOBALS = 6  # the most coordinates outside of vectors that features depend on
ROWS_PER_COLUMN = 10  # of the features of second degree: with fewer, only those of first degree
OWN = 2  # members that an integrand has features of its own for
WORTH = 0.2  # of the least variance so far: the most that these may leave, in sample


def tied(draws: RealDraws, best: np.ndarray) -> Iterator[CandidateFit]:
    r"""Fit features whose coefficients are shared by all members of a vector.

    With $z_j$ the members of a vector such as `theta[0]`, `theta[1]`, ..., $g$ the coordinates outside of
    vectors and $w_j$ fixed weights, $\sum_j w_j [h(z_j, g) s_j + \partial h / \partial z_j]$ has mean zero
    whatever the target is. Their number does not grow with the length of the vector. The functions $h$ are
    low powers of the member and of $g$, and the weights are powers of the member's mean and of the
    logarithm of its standard deviation, so that they need nothing but the names of the columns. The same
    functions, and averages over members, multiply the scores of $g$.

    Means and standard deviations are those outside the fold: with those of all draws the averages would be
    biased. The second candidate adds features of the members that an integrand is most correlated with, if
    little of it is then left in sample.

    Args:
        draws: all draws.
        best: the least variance of each integrand with any other candidate, (k,).
    """
    vectors = [Vector(draws, columns) for columns in draws.vectors]
    size = _Shape(draws, vectors, draws.folds[0], 2).count
    degree = 2 if ROWS_PER_COLUMN * size <= draws.train else 1
    shapes = [_Shape(draws, vectors, fold, degree) for fold in draws.folds]
    if 2 * shapes[0].count > draws.train:
        return
    regressions = [Regression(shape.columns()[shape.order]) for shape in shapes]
    if not all(regression.sound for regression in regressions):
        return
    held = CrossFitted(tuple(regressions), draws.folds, draw=draws.draw).leave_out(draws.f)
    shared = draws.tried(Candidate(f"Tied({degree})"), held)
    yield shared
    best = np.minimum(best, shared.open_variance)
    members = [shape.closest(draws.f) for shape in shapes]
    left = [
        _left_by_own(draws.f[:, i], shapes[0], own, regressions[0])
        for i, own in enumerate(members[0])
    ]
    yield side_by_side(
        [
            _with_own(draws, i, shapes, members, regressions if left[i] < WORTH * best[i] else None)
            for i in range(draws.f.shape[1])
        ]
    )


def _left_by_own(
    f: np.ndarray, shape: "_Shape", members: np.ndarray, regression: Regression
) -> float:
    """The variance that shared features and those of its own members leave of an integrand, in sample."""
    basis = widened(regression, shape.own(members)[shape.order]).basis
    rows = f[shape.order]
    return float(np.mean((rows - basis @ (basis.T @ rows)) ** 2))


def _with_own(
    draws: RealDraws,
    i: int,
    shapes: list["_Shape"],
    members: list[np.ndarray],
    regressions: list[Regression] | None,
) -> CandidateFit:
    """Fit an integrand to the shared features and those of its own members.

    The integrand may not use it if columns are linearly dependent.

    Args:
        draws: all draws.
        i: the integrand.
        shapes: of each fold.
        members: the integrands' own members by fold, (k, own) each.
        regressions: on the shared features, one for each fold; None to fit nothing.
    """
    column = draws.f[:, i : i + 1]
    candidate = Candidate(f"Tied({shapes[0].degree}) and its own members", own=True)
    if regressions is None:
        return _not_fitted(draws, candidate, column)
    wide = tuple(
        widened(regression, shape.own(own[i])[shape.order])
        for regression, shape, own in zip(regressions, shapes, members, strict=True)
    )
    if not all(regression.sound for regression in wide):
        return _not_fitted(draws, candidate, column)
    held = CrossFitted(wide, draws.folds, draw=draws.draw).leave_out(column)
    return draws.tried(candidate, held)


@dataclass(frozen=True)
class Vector:
    """The members of a vector: coordinates and scores on all rows, (rows, member), and their products."""

    draws: RealDraws
    members: np.ndarray

    @cached_property
    def x(self) -> np.ndarray:
        """The coordinates, centred and of variance 1 on all rows."""
        return np.asarray(self.draws.scaled[0])[:, self.members]

    @cached_property
    def score(self) -> np.ndarray:
        """Their scores."""
        return np.asarray(self.draws.scaled[1])[:, self.members]

    @cached_property
    def products(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The coordinates times the scores, their squares times the scores, and their squares."""
        square = self.x**2
        return self.x * self.score, square * self.score, square

    def sums(self, weights: np.ndarray, mean: np.ndarray, sd: np.ndarray) -> tuple[np.ndarray, ...]:
        """Sum fields over the members, standardised by a mean and sd: (rows, weight) each.

        Returns:
            The features of the fields 1, z and z^2, and the weighted sums of z and of z^2.
        """
        once, twice, square = self.products
        narrow = weights / sd[:, None]
        shifted = mean[:, None] * narrow
        z = self.x @ narrow - shifted.sum(axis=0)
        constant = self.score @ (sd[:, None] * weights)
        linear = once @ weights - self.score @ (mean[:, None] * weights) + weights.sum(axis=0)
        quadratic = twice @ narrow - 2 * once @ shifted + self.score @ (mean[:, None] * shifted)
        narrower, rest = narrow / sd[:, None], shifted / sd[:, None]
        squares = square @ narrower - 2 * self.x @ rest + (mean[:, None] * rest).sum(axis=0)
        return constant, linear, quadratic + 2 * z, z, squares


class _Shape:
    """Features shaped by the draws outside a fold.

    Args:
        draws: all draws.
        vectors: with their members.
        fold: where the fold starts and stops.
        degree: 1 or 2, of the functions of members and other coordinates.
    """

    def __init__(self, draws: RealDraws, vectors: list[Vector], fold: tuple[int, int], degree: int):
        self.x, self.score = (np.asarray(array) for array in draws.scaled)
        self.others = np.r_[0 : fold[0], fold[1] : draws.size]
        self.order = np.r_[fold[0] : fold[1], self.others]
        outside = self.x[self.others]
        self.mean, self.sd = outside.mean(axis=0), outside.std(axis=0)
        self.vectors, self.degree = vectors, degree
        self.members = np.concatenate([vector.members for vector in vectors])
        alone = np.setdiff1d(np.arange(draws.dim), self.members)[:GLOBALS]
        self.g = (self.x[:, alone] - self.mean[alone]) / self.sd[alone]
        self.slope = self.score[:, alone] * self.sd[alone]
        self.pairs = list(combinations_with_replacement(range(len(alone)), 2))
        frame = draws.frame
        self.shift, self.scale = np.asarray(frame.shift), np.asarray(frame.scale)

    @property
    def count(self) -> int:
        """The number of columns."""
        g, pairs, v = len(self.g[0]), len(self.pairs), len(self.vectors)
        if self.degree == 1:
            return v * 6 * (2 + g) + g * (1 + g + 6 * v)
        return v * 3 * (3 + 2 * g + pairs) + g * (1 + g + pairs + 3 * v * (2 + g))

    def weights(self, members: np.ndarray) -> np.ndarray:
        """The weights of the members: powers of their means and log standard deviations, (member, q)."""
        mean = self.shift[members] + self.scale[members] * self.mean[members]
        sd = np.log(self.scale[members] * self.sd[members])
        a, b = ((each - each.mean()) / max(each.std(), 1e-12) for each in (mean, sd))
        powers = [np.ones(len(members)), a, b]
        if self.degree == 1:
            powers += [a * b, a**2 - 1, b**2 - 1]
        return np.stack(powers, axis=1) / np.sqrt(len(members))

    def columns(self) -> np.ndarray:
        """All features on all rows, (rows, count)."""
        g, slope, found = self.g, self.slope, []
        fields: list[np.ndarray] = []
        for vector in self.vectors:
            at = vector.members
            constant, linear, quadratic, z, squares = vector.sums(
                self.weights(at), self.mean[at], self.sd[at]
            )
            found += [constant, linear, *(each[:, None] * constant for each in g.T)]
            fields.append(z)
            if self.degree == 2:
                found += [quadratic, *(each[:, None] * linear for each in g.T)]
                found += [(g[:, i] * g[:, j])[:, None] * constant for i, j in self.pairs]
                fields.append(squares)
        for i, push in enumerate(slope.T):
            along = push[:, None]
            found += [along, g * along + np.eye(g.shape[1])[i]]
            found += [field * along for field in fields]
            if self.degree == 2:
                for j, k in self.pairs:
                    bend = (j == i) * g[:, k] + (k == i) * g[:, j]
                    found.append((g[:, j] * g[:, k] * push + bend)[:, None])
                for field in fields[::2]:
                    found += [
                        field * ((g[:, j] * push) + (j == i))[:, None] for j in range(g.shape[1])
                    ]
        return np.concatenate(found, axis=1)

    def closest(self, f: np.ndarray) -> np.ndarray:
        """The members that each integrand is most correlated with outside the fold, (k, own)."""
        centred = f[self.others] - f[self.others].mean(axis=0)
        strength = np.abs(centred.T @ self.x[self.others]) / self.sd
        return self.members[np.argsort(strength[:, self.members], axis=1)[:, -OWN:]]

    def own(self, members: np.ndarray) -> np.ndarray:
        """Features of single members, (rows, count)."""
        found = []
        for j in members:
            z = (self.x[:, j] - self.mean[j]) / self.sd[j]
            push = self.score[:, j] * self.sd[j]
            square = z * z
            found += [push, z * push + 1, square * push + 2 * z, z * square * push + 3 * square]
            for each, slope in zip(self.g.T, self.slope.T, strict=True):
                found += [each * push, each * (z * push + 1), z * slope]
        return np.stack(found, axis=1)
