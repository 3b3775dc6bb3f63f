"""Differences of log densities between near draws, against the work that the scores do on the way."""

from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from .._types import AnyArray, Points

POINTS = 400  # draws that are compared, evenly thinned
NEIGHBOURS = 6  # of each draw
DRAWS_PER_DIM = 5  # with fewer draws distances are not whitened
REPEATED = 1e-12  # of the squared size of a draw: nearer ones are the same
EQUATIONS, PER_COEFFICIENT = 2000, 10  # entries of the scores that a potential is fitted to
HELPS = 0.9  # of the error in predicting scores: a potential must leave less to be used
FULL = 6  # dimensions up to which it has every monomial of degrees 3 and 4
QUADRATIC = 30  # dimensions up to which it has every product of two


@dataclass(frozen=True)
class Misfit:
    r"""By how much the trapezoidal rule misses the differences of log densities.

    For two draws with $\Delta = x_i - x_j$ the rule is $\log\pi(x_i) - \log\pi(x_j) \approx
    \tfrac12 (s_i + s_j) \cdot \Delta$, exact for a quadratic log density. Its error for right scores is of
    third order in $\Delta$; an error of the scores shows in first order.

    Attributes:
        y: standardised draws, (n, dim).
        score: scores in those units, (n, dim).
        raw: scores as they were given.
        factor: the Cholesky factor of the covariance of `y`, or the identity.
        first: the first draw of each pair.
        second: the other one.
        square: the squared distance of each pair, after whitening.
        rise: the difference of the log densities.
        work: the trapezoidal rule.
        left: the difference of the two, a smooth potential taken away from both.
    """

    y: AnyArray
    score: AnyArray
    raw: AnyArray
    factor: AnyArray
    first: AnyArray
    second: AnyArray
    square: AnyArray
    rise: AnyArray
    work: AnyArray
    left: AnyArray

    @property
    def size(self) -> float:
        """The median misfit in units of the squared distance."""
        return float(np.median(np.abs(self.left) / self.square))

    @property
    def share(self) -> float:
        """The median misfit in units of the median work."""
        return float(np.median(np.abs(self.left)) / max(np.median(np.abs(self.work)), 1e-300))

    @property
    def agreement(self) -> float:
        """The rank correlation of the two differences."""
        rise, work = (np.argsort(np.argsort(one)) for one in (self.rise, self.work))
        return float(np.corrcoef(rise, work)[0, 1])

    def steps(self) -> tuple[AnyArray, AnyArray]:
        """From the second draw of each pair to the first, and where their middle is: (pair, dim)."""
        first, second = self.y[self.first], self.y[self.second]
        return first - second, 0.5 * (first + second)


def misfit_of(x: Points, score: Points, log_density: AnyArray) -> Misfit:
    """Compare the log densities of near draws with their scores.

    The rule is linear in the density, so any smooth potential may be taken away from both sides. A cubic
    or quartic one, fitted to the scores, takes most of the rule's own error with it.

    Args:
        x: draws, (n, dim), of which an evenly thinned part is used.
        score: their scores.
        log_density: their log densities, (n,), up to a constant.
    """
    step = -(-len(x) // POINTS)
    x, score, density = x[::step], score[::step], log_density[::step] - log_density.mean()
    scale = np.maximum(x.std(axis=0), np.finfo(np.float64).tiny)
    y, raw, score = (x - x.mean(axis=0)) / scale, score, score * scale
    factor = _factor(y)
    z, t = np.linalg.solve(factor, y.T).T, score @ factor
    first, second = _near(z)
    value, gradient = _smooth(z, t)
    step_z = z[first] - z[second]
    work, smooth_work = (
        0.5 * ((field[first] + field[second]) * step_z).sum(axis=1) for field in (t, gradient)
    )
    rise, smooth_rise = (one[first] - one[second] for one in (density, value))
    left = (rise - smooth_rise) - (work - smooth_work)
    square = (step_z**2).sum(axis=1)
    return Misfit(y, score, raw, factor, first, second, square, rise, work, left)


def _factor(y: AnyArray) -> AnyArray:
    n, dim = y.shape
    if n >= DRAWS_PER_DIM * dim and dim > 1:
        factor = np.linalg.qr(y, mode="r").T / np.sqrt(n)
        if np.abs(np.diag(factor)).min() > 1e-7:
            return factor
    return np.eye(dim)


def _near(z: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Pairs of each draw with its nearest others, repeated draws left out."""
    norm = (z**2).sum(axis=1)
    square = norm[:, None] + norm - 2.0 * z @ z.T
    square[square < REPEATED * (1.0 + norm.mean())] = np.inf
    count = min(NEIGHBOURS, len(z) - 1)
    index = np.argpartition(square, count - 1, axis=1)[:, :count]
    finite = np.isfinite(np.take_along_axis(square, index, axis=1)).ravel()
    first, second = np.repeat(np.arange(len(z)), count)[finite], index.ravel()[finite]
    low, high = np.minimum(first, second), np.maximum(first, second)
    return np.divmod(np.unique(low * len(z) + high), len(z))


def _smooth(z: AnyArray, t: AnyArray) -> tuple[AnyArray, AnyArray]:
    """A potential of third and fourth order fitted to the scores: its values and gradients.

    Zero unless it predicts scores that it was not fitted to better than a quadratic one does.
    """
    n, dim = z.shape
    value, slope = _monomials(z) if dim <= FULL else _powers(z)
    lower = _quadratic(z)
    rows = np.random.default_rng(0).permutation(n * dim)
    rows = rows[: max(PER_COEFFICIENT * (lower.shape[1] + slope.shape[1]), EQUATIONS)]
    point, along = np.divmod(rows, dim)
    columns = np.concatenate([lower[point, :, along], slope[point, :, along]], axis=1)
    weight = 1.0 / np.sqrt(1.0 + (t[point] ** 2).mean(axis=1))  # far draws count less
    columns, right = columns * weight[:, None], t[point, along] * weight
    fitted, other = np.arange(len(rows)) % 3 > 0, np.arange(len(rows)) % 3 == 0
    errors = [
        np.abs(right - some @ _solved(some[fitted], right[fitted]))[other]
        for some in (columns[:, : lower.shape[1]], columns)
    ]
    if np.median(errors[1]) >= HELPS * np.median(errors[0]):
        return np.zeros(n), np.zeros_like(z)
    coefficients = _solved(columns, right)[lower.shape[1] :]
    return value @ coefficients, np.einsum("npd,p->nd", slope, coefficients)


def _solved(columns: AnyArray, right: AnyArray) -> AnyArray:
    """Least squares with a little ridge."""
    gram = columns.T @ columns
    gram[np.diag_indices_from(gram)] *= 1.0 + 1e-6
    gram[np.diag_indices_from(gram)] += 1e-12 * np.trace(gram)
    return np.linalg.solve(gram, columns.T @ right)


def _quadratic(z: AnyArray) -> AnyArray:
    """The gradients of linear and quadratic functions, of single dimensions where there are many."""
    n, dim = z.shape
    eye = np.eye(dim)
    i, j = np.triu_indices(dim) if dim <= QUADRATIC else (np.arange(dim), np.arange(dim))
    products = z[:, i, None] * eye[j] + z[:, j, None] * eye[i]
    return np.concatenate([np.broadcast_to(eye, (n, dim, dim)), products], axis=1)


def _powers(z: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Third and fourth powers of single dimensions, and each times the square of the radius."""
    eye, square = np.eye(z.shape[1]), (z**2).mean(axis=1, keepdims=True)
    radial = 2.0 * z[:, None, :] * z[:, :, None] / len(eye) + square[:, :, None] * eye
    slopes = [radial, 3.0 * z[:, :, None] ** 2 * eye, 4.0 * z[:, :, None] ** 3 * eye]
    return np.concatenate([square * z, z**3, z**4], axis=1), np.concatenate(slopes, axis=1)


def _monomials(z: AnyArray) -> tuple[AnyArray, AnyArray]:
    """All monomials of degrees 3 and 4: values, (n, p), and gradients, (n, p, dim)."""
    dim = z.shape[1]
    factors = [one for k in (3, 4) for one in combinations_with_replacement(range(dim), k)]
    exponents = np.array([np.bincount(one, minlength=dim) for one in factors])
    powers = np.stack([z**power for power in range(5)])  # (power, n, dim)
    parts = [powers[exponents[:, k], :, k].T for k in range(dim)]  # each (n, p)
    slopes = []
    for k in range(dim):
        less = exponents[:, k] * powers[np.maximum(exponents[:, k] - 1, 0), :, k].T
        slopes.append(np.prod([*parts[:k], less, *parts[k + 1 :]], axis=0))
    return np.prod(parts, axis=0), np.stack(slopes, axis=2)
