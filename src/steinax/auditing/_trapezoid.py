"""Differences of log densities between near draws, against the work that the scores do on the way."""

from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from .._types import AnyArray, Points

POINTS = 400  # draws that are compared, evenly thinned
NEIGHBOURS = 6  # of each draw
DRAWS_PER_DIM = 5  # with fewer draws distances are not whitened
MONOMIALS = 1000  # of the potential that is taken away first
EQUATIONS = 5000  # that it is fitted to
PER_MONOMIAL = 6  # entries of the scores for each coefficient, at least
MIXED = 20  # dimensions up to which the quadratic part has every product
FULL = 6  # dimensions up to which every cubic and quartic monomial is used


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
        ranks = [np.argsort(np.argsort(one)) for one in (self.rise, self.work)]
        return float(np.corrcoef(*ranks)[0, 1])

    def between(self, field: AnyArray) -> AnyArray:
        r"""The trapezoidal rule for other fields than the scores, (pair, k).

        Args:
            field: values at the draws, (n, k, dim).
        """
        step = self.y[self.first] - self.y[self.second]
        return 0.5 * np.einsum("pkd,pd->pk", field[self.first] + field[self.second], step)


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
    from scipy.spatial import KDTree

    count = min(NEIGHBOURS, len(z) - 1)
    distance, index = KDTree(z).query(z, k=count + 1)
    pairs = np.stack([np.repeat(np.arange(len(z)), count + 1), index.ravel()], axis=1)
    pairs = np.sort(pairs[distance.ravel() > 1e-6], axis=1)
    pairs = np.unique(pairs, axis=0)
    return pairs[:, 0], pairs[:, 1]


def _smooth(z: AnyArray, t: AnyArray) -> tuple[AnyArray, AnyArray]:
    """A potential of third and fourth order fitted to the scores: its values and gradients."""
    n, dim = z.shape
    square = (z**2).sum(axis=1, keepdims=True)
    values = [square * z / dim]
    slopes = [(2 * z[:, None, :] * z[:, :, None] + square[:, :, None] * np.eye(dim)) / dim]
    powers = _exponents(dim, min(MONOMIALS, n * dim // PER_MONOMIAL))
    if len(powers):
        value, slope = _monomials(powers, z)
        values, slopes = [*values, value], [*slopes, slope]
    value, slope = np.concatenate(values, axis=1), np.concatenate(slopes, axis=1)
    lower = _quadratic(z)
    columns = np.concatenate([lower, slope], axis=1).transpose(0, 2, 1).reshape(n * dim, -1)
    weight = np.repeat(1.0 / np.sqrt(1.0 + (t**2).mean(axis=1)), dim)  # far draws count less
    rows = np.random.default_rng(0).permutation(n * dim)[:EQUATIONS]
    columns, right = columns[rows] * weight[rows, None], t.ravel()[rows] * weight[rows]
    gram = columns.T @ columns
    gram[np.diag_indices_from(gram)] *= 1.0 + 1e-6
    gram[np.diag_indices_from(gram)] += 1e-12 * np.trace(gram)
    coefficients = np.linalg.solve(gram, columns.T @ right)[lower.shape[1] :]
    return value @ coefficients, np.einsum("npd,p->nd", slope, coefficients)


def _quadratic(z: AnyArray) -> AnyArray:
    """The gradients of linear and quadratic functions, of single dimensions where there are many."""
    n, dim = z.shape
    eye = np.eye(dim)
    i, j = np.triu_indices(dim) if dim <= MIXED else (np.arange(dim), np.arange(dim))
    products = z[:, i, None] * eye[j] + z[:, j, None] * eye[i]
    return np.concatenate([np.broadcast_to(eye, (n, dim, dim)), products], axis=1)


def _exponents(dim: int, most: int) -> AnyArray:
    """The exponents of cubic and quartic monomials, (p, dim), as many kinds as there is room for."""
    own = [(k,) * power for power in (3, 4) for k in range(dim)]
    pairs = [(k, k, m) for k in range(dim) for m in range(dim) if k != m]
    every = (
        [one for power in (3, 4) for one in combinations_with_replacement(range(dim), power)]
        if dim <= FULL
        else []
    )
    for kinds in (every, own + pairs, own):
        if 0 < len(kinds) <= most:
            found = np.zeros((len(kinds), dim), dtype=int)
            for row, factors in zip(found, kinds, strict=True):
                np.add.at(row, list(factors), 1)
            return found
    return np.zeros((0, dim), dtype=int)


def _monomials(exponents: AnyArray, z: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Values, (n, p), and gradients, (n, p, dim)."""
    powers = np.stack([z**power for power in range(5)])
    dims = np.arange(z.shape[1])
    parts = powers[exponents[:, None, :], np.arange(len(z))[None, :, None], dims]  # (p, n, dim)
    lower = np.maximum(exponents - 1, 0)
    slopes = (
        exponents[:, None, :] * powers[lower[:, None, :], np.arange(len(z))[None, :, None], dims]
    )
    before = np.cumprod(np.concatenate([np.ones_like(parts[..., :1]), parts[..., :-1]], -1), -1)
    after = np.cumprod(np.concatenate([np.ones_like(parts[..., :1]), parts[..., :0:-1]], -1), -1)[
        ..., ::-1
    ]
    gradient = before * after * slopes
    return parts.prod(axis=2).T, gradient.transpose(1, 0, 2)
