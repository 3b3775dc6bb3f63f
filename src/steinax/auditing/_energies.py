"""Comparison of the scores with values of the log density at the draws."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from .._numerics import solve_triangular
from .._types import AnyArray, Chains, Points
from ..data import Sample
from ._identities import (
    MATERIAL,
    Names,
    Repair,
    covariance_factor,
    effective_sizes,
)

LEAST = 40  # least number of draws; with fewer nothing is compared
PER_DIM = 10  # least number of draws for each dimension
ERRORS = 1.5  # bias that matters, in standard errors of the plain average
SHARE = 0.3  # of the least bias that matters: a smaller misfit needs no explanation
APART = 1.5  # times the misfit of the other chains: a chain with more is examined alone
REPAIRED = 0.2  # fraction of the misfit that may remain after a repair
OPPOSED = -0.3  # rank correlation of energies and work, below which the energies are potential ones

EXPLAINED = 0.1  # fraction of the squared misfit that may remain on held-out pairs
REMAINING = 0.2  # misfit that may remain, as a fraction of the work
STEADY = 0.3  # relative change of an error allowed when distances are extrapolated to zero
SIMPLER = 3.0  # times the least unexplained misfit: what a simpler error may leave unexplained
PAIRS = 4  # least number of pairs for each coefficient
TIED = 3  # least number of draws whose scores share the largest size
ROBUST_STEPS, RIDGE = 5, 1e-10

POINTS = 400  # draws that are compared, evenly thinned
NEIGHBOURS = 6  # nearest neighbours of each draw that are paired with it
REPEATED = 1e-12  # squared distance, relative to the size of a draw, below which draws are equal
EQUATIONS, PER_COEFFICIENT = 2000, 10  # entries of the scores that a potential is fitted to
HELPS = 0.9  # a potential is used if it reduces the prediction error of scores below this fraction
FULL = 6  # dimensions up to which the potential has every monomial of degrees 3 and 4
QUADRATIC = 30  # dimensions up to which the potential has every product of two

OTHERWISE = (
    "If `log_density` itself is not that of the density that was sampled, leave it out: "
    "Sample(..., log_density=None)."
)


@dataclass(frozen=True)
class Misfit:
    r"""Residuals of the trapezoidal rule for differences of log densities between near draws.

    For two draws with $\Delta = x_i - x_j$ the rule is $\log\pi(x_i) - \log\pi(x_j) \approx
    \tfrac12 (s_i + s_j) \cdot \Delta$, exact for a quadratic log density. Its error for correct scores is of
    third order in $\Delta$; an error of the scores appears in first order.

    Attributes:
        y: standardised draws, (n, dim).
        score: scores in those units, (n, dim).
        raw: scores in the original units, (n, dim).
        factor: the Cholesky factor of the covariance of `y`, or the identity.
        z: whitened draws, (n, dim).
        first: the index of the first draw of each pair.
        second: the index of the second draw of each pair.
        square: the squared distance of each pair, after whitening.
        rise: the difference of the log densities of each pair.
        work: the value of the trapezoidal rule for each pair.
        residual: `rise - work`, after subtracting a smooth potential from both.
    """

    y: AnyArray
    score: AnyArray
    raw: AnyArray
    factor: AnyArray
    z: AnyArray
    first: AnyArray
    second: AnyArray
    square: AnyArray
    rise: AnyArray
    work: AnyArray
    residual: AnyArray

    @property
    def size(self) -> float:
        """The median misfit in units of the squared distance."""
        return float(np.median(np.abs(self.residual) / self.square))

    @property
    def share(self) -> float:
        """The median misfit in units of the median work."""
        return float(np.median(np.abs(self.residual)) / max(np.median(np.abs(self.work)), 1e-300))

    @property
    def agreement(self) -> float:
        """The rank correlation of the differences of log densities and the trapezoidal rule."""
        rise, work = (np.argsort(np.argsort(values)) for values in (self.rise, self.work))
        return float(np.corrcoef(rise, work)[0, 1])

    def steps(self) -> tuple[AnyArray, AnyArray]:
        """Compute the step from second to first draw of each pair, and the midpoint: both (pair, dim)."""
        first, second = self.y[self.first], self.y[self.second]
        return first - second, 0.5 * (first + second)


def misfit_of(x: Points, score: Points, log_density: AnyArray) -> Misfit:
    """Compare the log densities of near draws with their scores.

    The trapezoidal rule is linear in the log density, so any smooth potential may be subtracted from both
    sides. A quartic one, fitted to the scores, removes most of the rule's own error.

    Args:
        x: draws, (n, dim), which are thinned evenly.
        score: their scores.
        log_density: their log densities, (n,), up to a constant.
    """
    step = -(-len(x) // POINTS)
    x, score, density = x[::step], score[::step], log_density[::step] - log_density.mean()
    scale = np.maximum(x.std(axis=0), np.finfo(np.float64).tiny)
    y, raw, score = (x - x.mean(axis=0)) / scale, score, score * scale
    factor = covariance_factor(y, float(len(y)))
    factor = np.eye(y.shape[1]) if factor is None else factor
    z, t = solve_triangular(factor, y.T).T, score @ factor
    first, second = _near(z)
    value, gradient = _smooth(z, t)
    step_z = z[first] - z[second]
    work, smooth_work = (
        0.5 * ((field[first] + field[second]) * step_z).sum(axis=1) for field in (t, gradient)
    )
    rise, smooth_rise = (values[first] - values[second] for values in (density, value))
    residual = (rise - smooth_rise) - (work - smooth_work)
    square = (step_z**2).sum(axis=1)
    return Misfit(y, score, raw, factor, z, first, second, square, rise, work, residual)


def _near(z: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Pair each draw with its nearest neighbours, excluding repeated draws."""
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
    """Fit a potential of third and fourth order to the scores: its values and gradients.

    Zero unless it predicts held-out scores better than a quadratic potential does.
    """
    n, dim = z.shape
    value, slope = _monomials(z) if dim <= FULL else _powers(z)
    lower = _quadratic(z)
    rows = np.random.default_rng(0).permutation(n * dim)
    rows = rows[: max(PER_COEFFICIENT * (lower.shape[1] + slope.shape[1]), EQUATIONS)]
    point, along = np.divmod(rows, dim)
    columns = np.concatenate([lower[point, :, along], slope[point, :, along]], axis=1)
    weight = 1.0 / np.sqrt(1.0 + (t[point] ** 2).mean(axis=1))  # far draws count less
    columns, target = columns * weight[:, None], t[point, along] * weight
    fitted, held_out = np.arange(len(rows)) % 3 > 0, np.arange(len(rows)) % 3 == 0
    errors = [
        np.abs(target - design @ _solved(design[fitted], target[fitted]))[held_out]
        for design in (columns[:, : lower.shape[1]], columns)
    ]
    if np.median(errors[1]) >= HELPS * np.median(errors[0]):
        return np.zeros(n), np.zeros_like(z)
    coefficients = _solved(columns, target)[lower.shape[1] :]
    return value @ coefficients, np.einsum("npd,p->nd", slope, coefficients)


def _solved(columns: AnyArray, target: AnyArray) -> AnyArray:
    """Solve a least-squares problem with a small ridge penalty."""
    gram = columns.T @ columns
    gram[np.diag_indices_from(gram)] *= 1.0 + 1e-6
    gram[np.diag_indices_from(gram)] += 1e-12 * np.trace(gram)
    return np.linalg.solve(gram, columns.T @ target)


def _quadratic(z: AnyArray) -> AnyArray:
    """Compute the gradients of linear and quadratic functions; in many dimensions without products."""
    n, dim = z.shape
    eye = np.eye(dim)
    i, j = np.triu_indices(dim) if dim <= QUADRATIC else (np.arange(dim), np.arange(dim))
    products = z[:, i, None] * eye[j] + z[:, j, None] * eye[i]
    return np.concatenate([np.broadcast_to(eye, (n, dim, dim)), products], axis=1)


def _powers(z: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Compute z^3, z^4 and z |z|^2 of each dimension: values, (n, p), and gradients, (n, p, dim)."""
    eye, square = np.eye(z.shape[1]), (z**2).mean(axis=1, keepdims=True)
    radial = 2.0 * z[:, None, :] * z[:, :, None] / len(eye) + square[:, :, None] * eye
    slopes = [radial, 3.0 * z[:, :, None] ** 2 * eye, 4.0 * z[:, :, None] ** 3 * eye]
    return np.concatenate([square * z, z**3, z**4], axis=1), np.concatenate(slopes, axis=1)


def _monomials(z: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Compute all monomials of degrees 3 and 4: values, (n, p), and gradients, (n, p, dim)."""
    dim = z.shape[1]
    terms = [term for k in (3, 4) for term in combinations_with_replacement(range(dim), k)]
    exponents = np.array([np.bincount(term, minlength=dim) for term in terms])
    powers = np.stack([z**power for power in range(5)])  # (power, n, dim)
    factors = [powers[exponents[:, k], :, k].T for k in range(dim)]  # each (n, p)
    slopes = []
    for k in range(dim):
        derivative = exponents[:, k] * powers[np.maximum(exponents[:, k] - 1, 0), :, k].T
        slopes.append(np.prod([*factors[:k], derivative, *factors[k + 1 :]], axis=0))
    return np.prod(factors, axis=0), np.stack(slopes, axis=2)


@dataclass(frozen=True)
class Suspect:
    """An error of the scores that explains the misfit.

    Attributes:
        kind: `constant`, `tempered`, `clipped` or `smooth`.
        bias: the bias of the estimated means that it causes, in standard deviations, (dim,).
        size: the root mean square of the error in each column, in the same units, (dim,).
        explained: the fraction of the squared misfit that the error does not explain.
    """

    kind: str
    bias: AnyArray
    size: AnyArray
    explained: float


@dataclass(frozen=True)
class Form:
    """A parametric form that an error of the scores may have.

    Attributes:
        kind: its name.
        columns: the trapezoidal rule for each of its terms, (pair, k).
        error: maps coefficients, (k,), to the error at the draws, (n, dim).
    """

    kind: str
    columns: AnyArray
    error: Callable[[AnyArray], AnyArray]


def suspect(misfit: Misfit, least: float) -> Suspect | None:
    """Find the simplest error of the scores that explains the misfit and matters.

    Args:
        misfit: the misfit of log densities and scores.
        least: the smallest bias that matters, in standard deviations.
    """
    fits = [fit for form in _forms(misfit) if (fit := _explains(misfit, form, least)) is not None]
    best = min((fit.explained for fit in fits), default=0.0)
    return next((fit for fit in fits if fit.explained <= max(SIMPLER * best, 0.05)), None)


def _forms(misfit: Misfit) -> Iterator[Form]:
    """Yield the forms to try, the simplest first: a constant, a factor, clipping, and lines with both."""
    y, score, dim = misfit.y, misfit.score, misfit.y.shape[1]
    step, middle = misfit.steps()
    work = misfit.work[:, None]
    yield Form("constant", step, lambda c: np.broadcast_to(c, y.shape))
    yield Form("tempered", work, lambda c: c * score)
    clipped = _tied(misfit.raw)[:, None]
    if clipped.any():
        clipped_scores = clipped * score
        clipped_work = 0.5 * (
            (clipped_scores[misfit.first] + clipped_scores[misfit.second]) * step
        ).sum(1, keepdims=True)
        yield Form("clipped", clipped_work, lambda c: c * clipped_scores)
    columns = np.concatenate([step, middle * step, work], axis=1)
    yield Form("smooth", columns, lambda c: c[:dim] + c[dim:-1] * y + c[-1] * score)


def _tied(scores: AnyArray) -> AnyArray:
    """Mark the draws whose scores share the largest norm or the largest entry, as after clipping."""
    largest = [np.linalg.norm(scores, axis=1), np.abs(scores).max(axis=1)]
    tied = [np.isclose(sizes, sizes.max(), rtol=1e-6, atol=0.0) for sizes in largest]
    distinct = [len(np.unique(scores[mask], axis=0)) for mask in tied]
    masks = [
        mask for mask, count in zip(tied, distinct, strict=True) if TIED <= count < len(scores)
    ]
    return masks[0] if masks else np.zeros(len(scores), dtype=bool)


def _explains(misfit: Misfit, form: Form, least: float) -> Suspect | None:
    """Fit an error of one form; None unless it matters, is stable and explains the misfit."""
    bends = _bends(misfit)
    if len(bends) < PAIRS * (form.columns.shape[1] + bends.shape[1]):
        return None
    error, bias, effects = _effects(misfit, form, form.columns)
    worst = int(np.abs(effects).argmax())
    if abs(effects[worst]) < least:
        return None
    at_zero = _effects(misfit, form, np.concatenate([form.columns, bends], axis=1))[2]
    if abs(at_zero[worst] - effects[worst]) > STEADY * abs(effects[worst]):
        return None
    unexplained = _unexplained(
        form.columns, misfit.residual, 1.0 / misfit.square, misfit.first % 2 == 0
    )
    if unexplained > EXPLAINED or np.sqrt(unexplained) * misfit.share > REMAINING:
        return None
    return Suspect(form.kind, bias, np.sqrt((error**2).mean(axis=0)), unexplained)


def _bends(misfit: Misfit) -> AnyArray:
    """Compute columns that span the trapezoidal rule's own third-order error: (pair, 3 dim).

    Fitted together with these columns, an error of the scores is extrapolated to distance zero, where the
    rule is exact.
    """
    step, middle = misfit.steps()
    parts = [step**3, middle * step**3, misfit.square[:, None] * step]
    return np.concatenate(parts, axis=1)


def _effects(misfit: Misfit, form: Form, columns: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Fit an error of the scores to all pairs, and compute the bias of estimates that it causes.

    Args:
        misfit: the misfit of log densities and scores.
        form: the form of the error.
        columns: the columns of the form, optionally followed by further ones.

    Returns:
        The error, (n, dim), the bias of each mean, and the biases of means and squares in whitened
        coordinates. Biases are in standard deviations, so all plain averages have the same standard error.
    """
    coefficients = _robust(columns, misfit.residual, 1.0 / misfit.square)
    error = form.error(-coefficients[: form.columns.shape[1]])
    white = error @ misfit.factor
    means, squares = white.mean(axis=0), (misfit.z * white).mean(axis=0) / np.sqrt(2.0)
    return error, misfit.factor @ means, np.concatenate([means, squares])


def _unexplained(columns: AnyArray, residual: AnyArray, weight: AnyArray, half: AnyArray) -> float:
    """Compute the unexplained fraction of the squared misfit on held-out pairs, the worse of two halves."""
    cap = 6.0 * np.median(np.abs(residual) * weight) + np.finfo(np.float64).tiny
    fractions = []
    for fitted in (half, ~half):
        coefficients = _robust(columns[fitted], residual[fitted], weight[fitted])
        after, before = (
            np.mean(np.minimum(np.abs(weight * values)[~fitted], cap) ** 2)
            for values in (residual - columns @ coefficients, residual)
        )
        fractions.append(after / max(before, np.finfo(np.float64).tiny))
    return max(fractions)


def _robust(columns: AnyArray, target: AnyArray, weight: AnyArray) -> AnyArray:
    """Solve a weighted least-squares problem with Huber's weights for outliers."""
    tiny = np.finfo(np.float64).tiny
    size = np.sqrt(((weight[:, None] * columns) ** 2).mean(axis=0)) + tiny
    current, coefficients = weight, np.zeros(columns.shape[1])
    for _ in range(ROBUST_STEPS):
        scaled = columns * (current[:, None] / size)
        gram = scaled.T @ scaled
        gram[np.diag_indices_from(gram)] += RIDGE * np.trace(gram) + tiny
        coefficients = np.linalg.solve(gram, scaled.T @ (target * current)) / size
        error = weight * np.abs(target - columns @ coefficients)
        typical = 1.5 * 1.4826 * np.median(error) + tiny
        current = weight * np.sqrt(np.minimum(1.0, typical / np.maximum(error, tiny)))
    return coefficients


@dataclass(frozen=True)
class Densities:
    """Draws of some chains with their scores and log densities."""

    draws: Chains
    scores: Chains
    density: AnyArray
    names: Names

    @property
    def enough(self) -> bool:
        """Whether there are enough moving draws to compare."""
        chains, length, dim = self.draws.shape
        moves = np.ptp(self.draws, axis=(0, 1)) > 0
        return length >= 8 and chains * length >= max(LEAST, PER_DIM * dim) and bool(moves.all())

    @property
    def misfit(self) -> Misfit:
        """The misfit of log densities and scores."""
        dim = self.draws.shape[2]
        x, score = self.draws.reshape(-1, dim), self.scores.reshape(-1, dim)
        return misfit_of(x, score, self.density.ravel())

    @property
    def least(self) -> float:
        """The least bias that matters, in standard deviations: 1.5 standard errors of the plain average."""
        sizes, _ = effective_sizes(np.moveaxis(self.draws, -1, 0))
        most = self.draws.shape[0] * self.draws.shape[1]
        return float(max(ERRORS / np.sqrt(min(np.median(sizes), most)), MATERIAL))

    def repaired(self, repair: Repair) -> "Densities":
        """Replace the draws and scores by those of a repair."""
        return Densities(repair.draws, repair.scores, self.density[:, repair.kept], self.names)


def densities(sample: Sample) -> Densities | None:
    """Collect the log densities of a sample; None if it has none or too few draws to compare them."""
    if sample.space is not None or sample.log_density is None:
        return None
    draws, scores = (np.asarray(values, np.float64) for values in (sample.draws, sample.scores))
    whole = Densities(draws, scores, sample.log_density, sample.names)
    return whole if whole.enough else None
