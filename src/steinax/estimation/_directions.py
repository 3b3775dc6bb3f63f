"""Candidates for many dimensions: functions of single coordinates, of one direction, or tied over vectors."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.polynomial.hermite_e import hermevander

from ..data import DRAWS_PER_DIM, DRAWS_PER_SCORE, covariance_of
from ..families import Tied, outside
from ..kernels import Directional
from ..solvers import (
    CrossFitted,
    Folds,
    HeldOut,
    Regression,
    Widened,
    fits_without_each,
    moments,
)
from ._candidates import DIRECTIONAL, OPERATIONS, Candidate, polynomial
from ._draws import LANGEVIN, CandidateFit, RealDraws, side_by_side
from ._splits import GROUPS, groups_of

STRENGTHS = 10.0 ** np.arange(
    -3.0, 1.5, 0.5
)  # ridge penalties, relative to the median squared score
POWERS = (0, 1, 2, 3)  # of the coordinate along the direction
LINK = 5  # the degree of the polynomial of one coordinate that an integrand is compared with
EXACT = 1e-6  # share of the variance left by it: the integrand is such a polynomial
SINGLE = 0.1  # the most that it may leave for Gauss-Newton steps to be used
CLEARLY = (
    0.8  # times what the linear guess, or the step before, leaves: other directions must get below
)
STEPPED = 120  # the most dimensions for Gauss-Newton steps, which cost MOST_STEPS regressions an integrand
MOST_STEPS, ROWS_PER_STEP = 8, 4
LINKED = 1000  # draws by which guesses of directions are compared
RIDGE = 1e-12  # of least squares for directions, relative to the mean square
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


def along_directions(draws: RealDraws, shapes: Sequence["Shape"]) -> list[CandidateFit]:
    r"""Fit powers of the coordinate along each integrand's own direction, the lowest power first.

    With $a$ a direction, the control variates are $\operatorname{div} u + u \cdot s$ of $u =
    (a^\top x)^j\, b$ for $j = 0, 1, \ldots$, with $b = S a$ and $S$ the covariance: for a Gaussian, functions
    of one combination of the coordinates. There are few coefficients, and no draw influences the direction
    and the covariance that it is used with, which would bias the averages.
    """
    features = np.concatenate([shape.powers for shape in shapes])
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
        arrays = (held.residual, held.intercepts, held.without, held.variance, fit.sound)
        columns = zip(*(np.asarray(array) for array in arrays), strict=True)
        for residual, intercepts, without, expected, sound in columns:
            variance = expected if sound else np.full(len(f), np.nan)
            column = HeldOut(residual, "", intercepts, variance, draws.folds, without=without)
            fits.append(draws.tried(candidate, column))
    return side_by_side(fits)


def directions_of(x: np.ndarray, f: np.ndarray) -> np.ndarray:
    r"""Find directions $a$ such that each integrand is nearly a function of $a^\top x$, (d, k).

    The first guesses are the coefficients of a linear regression, and the single coordinates that the
    integrand, or its spread, depends on most. Gauss-Newton steps improve the best of these, if the integrand
    is then nearly a polynomial of it: a prediction, or the square of a combination of coordinates.

    Args:
        x: coordinates of variance 1, (n, d).
        f: integrands, (n, k).
    """
    x, f = x - x.mean(axis=0), f - f.mean(axis=0)
    linear = _least_squares(x, f)
    single = (np.abs((x**p - (x**p).mean(axis=0)).T @ f).argmax(axis=0) for p in (1, 2))
    guesses = [linear, *(np.eye(x.shape[1])[:, at] for at in single)]
    part = slice(None, None, max(len(x) // LINKED, 1))
    left = np.array([_link(x[part] @ guess, f[part])[0] for guess in guesses])
    best = np.where(left.min(axis=0) < CLEARLY * left[0], left.argmin(axis=0), 0)
    along = np.take_along_axis(np.stack(guesses), best[None, None], axis=0)[0]
    if x.shape[1] > STEPPED:
        return along
    part = slice(None, None, max(len(x) // (ROWS_PER_STEP * x.shape[1] + 50), 1))
    for i in np.flatnonzero(left.min(axis=0) > EXACT):
        along[:, i] = _stepped(x[part], f[part, i : i + 1], along[:, i])
    return along


def _least_squares(x: np.ndarray, f: np.ndarray) -> np.ndarray:
    """Solve normal equations, with a ridge as small as rounding errors of each column's size."""
    size = np.linalg.norm(x, axis=-2, keepdims=True)
    x = x / np.where(size > 0, size, 1.0)
    gram = x.mT @ x + RIDGE * np.eye(x.shape[-1])
    return np.linalg.solve(gram, x.mT @ f) / np.where(size > 0, size, 1.0).mT


def _stepped(x: np.ndarray, f: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Improve the direction of one integrand by Gauss-Newton steps; the start if they do not get far."""
    along, best, least = start, start, np.inf
    for _ in range(MOST_STEPS):
        left, residual, slope = _link((x @ along)[:, None], f)
        if not left[0] < CLEARLY * least:
            break
        best, least = along, left[0]
        step = _least_squares(slope * x, residual)[:, 0]
        along = along / (x @ along).std() + step
    return best if least < SINGLE else start


def _link(u: np.ndarray, f: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fit a polynomial of one coordinate, (n, k), to each integrand.

    Returns:
        The share of the variance that is left (k,), residuals and slopes by the standardised coordinate.
    """
    size = u.std(axis=0)
    powers = hermevander(u / np.where(size > 0, size, 1.0), LINK).swapaxes(0, 1)
    fit = _least_squares(powers, f.T[..., None])
    residual = f - (powers @ fit)[..., 0].T
    slope = (powers[..., :-1] @ (np.arange(1, LINK + 1)[:, None] * fit[:, 1:]))[..., 0].T
    spread = f.var(axis=0)
    return residual.var(axis=0) / np.where(spread > 0, spread, 1.0), residual, slope


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
    unknown, folds = np.full(len(column), np.nan), draws.folds
    none = np.full((len(folds), 1), np.nan)
    return draws.tried(candidate, HeldOut(column, "", none, unknown, folds, without=none))


ROWS_PER_COLUMN = 10  # of the features of second degree: with fewer, only those of first degree
OWN = 2  # members that an integrand has features of its own for
STRONG, DEVIATIONS = 0.2, 4.0  # the least correlation with these, also in standard deviations
PARTNERS = 2  # the most members of other vectors, of the same index, beside each


def shapes_of(draws: RealDraws) -> list["Shape"]:
    """Compute what shapes features, outside of each of at most `GROUPS` groups of folds."""
    groups = groups_of(draws.folds)
    widest = max(stop - start for start, stop in groups)
    full = draws.size - widest >= DRAWS_PER_SCORE * draws.dim
    if full and GROUPS * 20.0 * draws.dim**3 <= OPERATIONS:
        return [Shape(draws, group) for group in groups]
    size = float(np.median((draws.scaled[1] ** 2).sum(axis=1)))
    slopes = _slopes(draws.scaled[1], draws.f, STRENGTHS * size, tuple(groups))
    return [Shape(draws, group, slope) for group, slope in zip(groups, slopes, strict=True)]


def tied(draws: RealDraws, shapes: list["Shape"], best: np.ndarray) -> Iterator[CandidateFit]:
    """Fit features whose coefficients are shared by all members of a vector, those of `families.Tied`.

    Further candidates add a linear polynomial of all coordinates, and features of the coordinates that an
    integrand depends on most. What shapes the features of a draw is computed without it and its
    neighbours: with means and standard deviations of all draws the averages would be biased.

    Args:
        draws: all draws.
        shapes: of all groups of folds.
        best: the least variance of each integrand with any other candidate, (k,).
    """
    name, degree = "", 1
    if draws.vectors:
        size = family_of(draws, 2).size(None, draws.dim)
        degree = 2 if ROWS_PER_COLUMN * size <= draws.train else 1
        name = f"Tied({degree})"
    shared: list[Shared] = []
    for linear in (False, True):
        columns = np.concatenate([shape.tied(degree, linear) for shape in shapes])
        if 2 * columns.shape[1] > draws.train:
            break
        regression = Regression(columns)
        title = " + ".join(filter(None, [polynomial(1) if linear else "", name]))
        if not regression.sound:
            continue
        shared.append(Shared(title, regression, linear))
        if name:  # a linear polynomial by itself is a candidate already
            fit = draws.tried(Candidate(title), draws.leave_out(regression))
            best = np.minimum(best, fit.open_variance)
            yield fit
    if shared:
        yield from _with_own(draws, shapes, shared, best)


def family_of(draws: RealDraws, degree: int = 1) -> Tied:
    """Create the family of features that are summed over the members of the vectors."""
    columns = tuple(tuple(map(int, members)) for members in draws.vectors)
    return Tied(degree, columns, shift=draws.frame.shift, scale=draws.frame.scale)


def globals_of(draws: RealDraws) -> np.ndarray:
    """Find the first coordinates outside of vectors; none without vectors."""
    return outside(draws.vectors, draws.dim) if draws.vectors else np.zeros(0, int)


def own_coordinates(draws: RealDraws, f: np.ndarray) -> np.ndarray:
    """Find coordinates outside of vectors, the members that an integrand depends on, and their partners.

    Members of other vectors with the same index are partners: a slope and an intercept of one group.
    """
    x, alone = draws.scaled[0], globals_of(draws)
    strength = np.abs((f - f.mean()) @ x) / len(x)
    strength[alone] = 0.0
    first = np.argsort(-strength, kind="stable")[:OWN]
    found = [*alone]
    for member in first[strength[first] > max(STRONG, DEVIATIONS / np.sqrt(len(x)))]:
        found.append(member)
        own = next((each for each in draws.vectors if member in each), np.array([member]))
        at = int(np.flatnonzero(own == member)[0])
        others = [each for each in draws.vectors if len(each) == len(own) and each is not own]
        found += [each[at] for each in others[:PARTNERS]]
    return np.array(list(dict.fromkeys(found)), int)


class Shared(NamedTuple):
    """A regression on features that all integrands share."""

    title: str
    regression: Regression
    linear: bool  # whether the scores of all coordinates are among them


def _with_own(
    draws: RealDraws, shapes: list["Shape"], shared: list[Shared], best: np.ndarray
) -> Iterator[CandidateFit]:
    """Fit each integrand to shared features and those of its own coordinates.

    Of all combinations, the one that is expected to leave least is fitted, if that is less than any other
    candidate leaves and its columns are independent.

    Args:
        draws: all draws.
        shapes: of all groups of folds.
        shared: regressions on shared features.
        best: the least variance of each integrand with any other candidate, (k,).
    """
    names = [f"{title} and its own coordinates".removeprefix(" and ") for title, *_ in shared]
    candidates = [Candidate(name, own=True) for name in names]
    fits: list[list[CandidateFit]] = [[] for _ in shared]
    bases = [each.regression.basis for each in shared]
    residuals = [draws.f - basis @ (basis.T @ draws.f) for basis in bases]
    for i, column in enumerate(draws.f.T[..., None]):
        at, tried = own_coordinates(draws, column[:, 0]), []
        for kind in (Shape.mixed, Shape.members):
            parts = zip(*(kind(shape, i, at) for shape in shapes), strict=True)
            sums, others = (np.concatenate(part) for part in parts)
            for j, each in enumerate(shared):
                own = others if each.linear else np.concatenate([sums, others], axis=1)
                if own.shape[1]:
                    left = _left_by(each.regression, own, residuals[j][:, i])
                    tried.append((left, j, own))
        left, first, own = min(tried, key=lambda each: each[0])
        wide = Widened(shared[first].regression, own) if left < best[i] else None
        for j, candidate in enumerate(candidates):
            if j == first and wide is not None and wide.sound:
                held = wide.leave_out(column, draws.folds, draw=draws.draw)
                fits[j].append(draws.tried(candidate, held))
            else:
                fits[j].append(_not_fitted(draws, candidate, column))
    yield from map(side_by_side, fits)


def _left_by(shared: Regression, own: np.ndarray, residual: np.ndarray) -> float:
    """Predict, in sample, the mean square of a residual after further columns are fitted."""
    n, p = len(residual), shared.basis.shape[1] + own.shape[1]
    own = own / np.maximum(np.linalg.norm(own, axis=0), np.finfo(float).tiny)
    part, along = shared.basis.T @ own, own.T @ residual
    gram = own.T @ own - part.T @ part + RIDGE * np.eye(own.shape[1])
    left = residual @ residual - along @ np.linalg.solve(gram, along)
    return left / n / max(1 - p / n, 0.1) ** 2


class Shape:
    """The quantities that shape the features in a group of folds, computed from all other rows.

    Coordinates are scaled by all draws, as if they had other units. Linear combinations of features do not
    depend on units and origins, except of those that are summed over members: these are standardised by the
    other rows.

    Args:
        draws: all draws.
        group: where the group starts and stops.
        slopes: the directions of all integrands, if there are too few rows for a covariance, (d, k).
    """

    def __init__(self, draws: RealDraws, group: tuple[int, int], slopes: np.ndarray | None = None):
        (x, score), rows = draws.scaled, slice(*group)
        others = np.r_[0 : group[0], group[1] : draws.size]
        self.x, self.score, outside = x[rows], score[rows], x[others]
        self.draws, self.alone = draws, globals_of(draws)
        self.state = family_of(draws).setup(outside, score[others]) if draws.vectors else None
        self.covariance: np.ndarray | None = None
        if slopes is None:
            self.covariance = covariance_of(outside, score[others])[1]
        self.along = directions_of(outside, draws.f[others]) if slopes is None else slopes

    def times(self, along: np.ndarray) -> np.ndarray:
        """Multiply directions, (d, count), by the covariance, or by 1 if it is not known."""
        return along if self.covariance is None else self.covariance @ along

    @cached_property
    def powers(self) -> np.ndarray:
        """The features of powers along the direction of each integrand, (rows, k, power)."""
        push = self.times(self.along)
        length = np.sqrt(np.maximum((self.along * push).sum(axis=0), np.finfo(float).tiny))
        place, pushed = self.x @ self.along / length, self.score @ push / length
        powers = [place**j * pushed + (j * place ** (j - 1) if j else 0.0) for j in POWERS]
        return np.stack(powers, axis=-1)

    def tied(self, degree: int, linear: bool = False) -> np.ndarray:
        """Compute the features of `Tied`, (rows, count); with `linear` the scores of all coordinates too."""
        first = self.score if linear else self.score[:, :0]
        if self.state is None:
            return first
        family = family_of(self.draws, degree)
        found = family.columns(self.state, self.x, self.score, scores=not linear)
        return np.concatenate([first, found], axis=1)

    def mixed(self, i: int, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Features of products of some coordinates, along covariances, and of an integrand's direction.

        Args:
            i: the integrand.
            at: the coordinates.

        Returns:
            Those that are sums of scores, and all others, (rows, count) each.
        """
        along = self.times(1.0 * (np.arange(self.x.shape[1])[:, None] == at))
        place, push = self.x[:, at], self.score @ along
        products = place[:, :, None] * push[:, None] + along[at]
        sums, powers = np.split(self.powers[:, i], [1], axis=1)
        others = [products.reshape(len(place), -1), powers]
        return np.concatenate([push, sums], axis=1), np.concatenate(others, axis=1)

    def members(self, i: int, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Features of single members, and of their products with the coordinates outside of vectors."""
        of, others = np.setdiff1d(at, self.alone), [self.score[:, :0]]
        for j in of:
            z, push = self.x[:, [j]], self.score[:, [j]]
            others += [z * push + 1, z**2 * push + 2 * z, z**3 * push + 3 * z**2]
            for each in self.alone:
                g, slope = self.x[:, [each]], self.score[:, [each]]
                others += [g * push, g * (z * push + 1), z * slope]
        return self.score[:, of], np.concatenate(others, axis=1)
