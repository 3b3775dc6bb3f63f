"""Whether scores are the gradients of the log density, by its values at the draws."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement

import numpy as np

from .._linalg import solve_triangular
from .._show import listed
from .._types import AnyArray, Chains, Points
from ..data import Sample
from ._identities import MATERIAL, covariance_factor, effective_sizes
from ._mistakes import (
    Names,
    Repair,
    are_constrained,
    jacobian_terms,
    lacks_jacobian,
    lag,
    order,
    sign,
    swapped,
    unconstrained,
)
from ._report import Finding, named

LEAST = 40  # draws; with fewer nothing is compared
PER_DIM = 10  # draws for each dimension, at least
ERRORS = 1.5  # plain standard errors by which an estimate must be moved for a mistake to matter
SHARE = 0.3  # of the least bias: a smaller misfit needs no explanation
APART = 1.5  # times the misfit of other chains: one that has more is looked at alone
MENDED = 0.2  # of the misfit: what a repair may leave
OPPOSED = -0.3  # rank correlation of energies and work, below which the energies are potential ones

EXPLAINED = 0.1  # of the squared misfit: what an error may leave on pairs it was not fitted to
REMAINING = 0.2  # of the work: the misfit that may remain
STEADY = 0.3  # the part of an error that may change when distances are extrapolated to zero
SIMPLER = 3.0  # times the least misfit: what a simpler error may leave
PAIRS = 4  # for each coefficient, at least
TIED = 3  # draws whose scores share the largest size, at least
ROBUST_STEPS, RIDGE = 5, 1e-10

POINTS = 400  # draws that are compared, evenly thinned
NEIGHBOURS = 6  # of each draw
REPEATED = 1e-12  # of the squared size of a draw: nearer ones are the same
EQUATIONS, PER_COEFFICIENT = 2000, 10  # entries of the scores that a potential is fitted to
HELPS = 0.9  # of the error in predicting scores: a potential must leave less to be used
FULL = 6  # dimensions up to which it has every monomial of degrees 3 and 4
QUADRATIC = 30  # dimensions up to which it has every product of two

OTHERWISE = (
    "If `log_density` itself is of another density than the one sampled, leave it out: "
    "Sample(..., log_density=None)."
)


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
        z: whitened draws, (n, dim).
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
    z: AnyArray
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
    factor = covariance_factor(y, float(len(y)))
    factor = np.eye(y.shape[1]) if factor is None else factor
    z, t = solve_triangular(factor, y.T).T, score @ factor
    first, second = _near(z)
    value, gradient = _smooth(z, t)
    step_z = z[first] - z[second]
    work, smooth_work = (
        0.5 * ((field[first] + field[second]) * step_z).sum(axis=1) for field in (t, gradient)
    )
    rise, smooth_rise = (one[first] - one[second] for one in (density, value))
    left = (rise - smooth_rise) - (work - smooth_work)
    square = (step_z**2).sum(axis=1)
    return Misfit(y, score, raw, factor, z, first, second, square, rise, work, left)


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


@dataclass(frozen=True)
class Suspect:
    """An error of the scores that explains the misfit.

    Attributes:
        kind: `constant`, `tempered`, `clipped` or `smooth`.
        bias: what it adds to the estimates of the means, in standard deviations, (dim,).
        size: its root mean square in each column, in the same units, (dim,).
        explained: the part of the squared misfit that it leaves.
    """

    kind: str
    bias: AnyArray
    size: AnyArray
    explained: float


@dataclass(frozen=True)
class Form:
    """A form that an error of the scores may have.

    Attributes:
        kind: its name.
        columns: the trapezoidal rule for each of its parts, (pair, k).
        error: the error at the draws, (n, dim), for coefficients, (k,).
    """

    kind: str
    columns: AnyArray
    error: Callable[[AnyArray], AnyArray]


def suspect(misfit: Misfit, least: float) -> Suspect | None:
    """The simplest error of the scores that explains the misfit and matters.

    Args:
        misfit: of log densities and scores.
        least: the bias from which on it matters, in standard deviations.
    """
    found = [one for form in _forms(misfit) if (one := _explains(misfit, form, least)) is not None]
    best = min((one.explained for one in found), default=0.0)
    return next((one for one in found if one.explained <= max(SIMPLER * best, 0.05)), None)


def _forms(misfit: Misfit) -> Iterator[Form]:
    """What is suspected, the simpler first: a constant, a factor, clipping, and lines with both."""
    y, score, dim = misfit.y, misfit.score, misfit.y.shape[1]
    step, middle = misfit.steps()
    work = misfit.work[:, None]
    yield Form("constant", step, lambda c: np.broadcast_to(c, y.shape))
    yield Form("tempered", work, lambda c: c * score)
    clipped = _tied(misfit.raw)[:, None]
    if clipped.any():
        part = clipped * score
        of_part = 0.5 * ((part[misfit.first] + part[misfit.second]) * step).sum(1, keepdims=True)
        yield Form("clipped", of_part, lambda c: c * part)
    columns = np.concatenate([step, middle * step, work], axis=1)
    yield Form("smooth", columns, lambda c: c[:dim] + c[dim:-1] * y + c[-1] * score)


def _tied(scores: AnyArray) -> AnyArray:
    """Which draws share the largest norm of their scores, or the largest entry, as clipping leaves them."""
    largest = [np.linalg.norm(scores, axis=1), np.abs(scores).max(axis=1)]
    tied = [np.isclose(one, one.max(), rtol=1e-6, atol=0.0) for one in largest]
    distinct = [len(np.unique(scores[mask], axis=0)) for mask in tied]
    masks = [m for m, count in zip(tied, distinct, strict=True) if TIED <= count < len(scores)]
    return masks[0] if masks else np.zeros(len(scores), dtype=bool)


def _explains(misfit: Misfit, form: Form, least: float) -> Suspect | None:
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
    left = _unexplained(form.columns, misfit.left, 1.0 / misfit.square, misfit.first % 2 == 0)
    if left > EXPLAINED or np.sqrt(left) * misfit.share > REMAINING:
        return None
    return Suspect(form.kind, bias, np.sqrt((error**2).mean(axis=0)), left)


def _bends(misfit: Misfit) -> AnyArray:
    """What the trapezoidal rule's own error is made of, in third order of the distance: (pair, 3 dim).

    Beside these columns an error of the scores is that at distance zero, where the rule has none.
    """
    step, middle = misfit.steps()
    parts = [step**3, middle * step**3, misfit.square[:, None] * step]
    return np.concatenate(parts, axis=1)


def _effects(misfit: Misfit, form: Form, columns: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
    """The error fitted to all pairs, and what it adds to estimates.

    Args:
        misfit: of log densities and scores.
        form: of the error.
        columns: those of the form, and perhaps further ones after them.

    Returns:
        The error, (n, dim), the bias of each mean, and the biases of means and squares in whitened
        coordinates. Biases are in standard deviations, so that all plain averages have one standard error.
    """
    coefficients = _robust(columns, misfit.left, 1.0 / misfit.square)
    error = form.error(-coefficients[: form.columns.shape[1]])
    white = error @ misfit.factor
    means, squares = white.mean(axis=0), (misfit.z * white).mean(axis=0) / np.sqrt(2.0)
    return error, misfit.factor @ means, np.concatenate([means, squares])


def _unexplained(columns: AnyArray, left: AnyArray, weight: AnyArray, half: AnyArray) -> float:
    """The part of the squared misfit left on pairs that were not fitted to, the worse of two halves."""
    cap = 6.0 * np.median(np.abs(left) * weight) + np.finfo(np.float64).tiny
    parts = []
    for fitted in (half, ~half):
        coefficients = _robust(columns[fitted], left[fitted], weight[fitted])
        after, before = (
            np.mean(np.minimum(np.abs(weight * one)[~fitted], cap) ** 2)
            for one in (left - columns @ coefficients, left)
        )
        parts.append(after / max(before, np.finfo(np.float64).tiny))
    return max(parts)


def _robust(columns: AnyArray, right: AnyArray, weight: AnyArray) -> AnyArray:
    """Weighted least squares in which outliers count little (Huber's weights)."""
    tiny = np.finfo(np.float64).tiny
    size = np.sqrt(((weight[:, None] * columns) ** 2).mean(axis=0)) + tiny
    now, coefficients = weight, np.zeros(columns.shape[1])
    for _ in range(ROBUST_STEPS):
        scaled = columns * (now[:, None] / size)
        gram = scaled.T @ scaled
        gram[np.diag_indices_from(gram)] += RIDGE * np.trace(gram) + tiny
        coefficients = np.linalg.solve(gram, scaled.T @ (right * now)) / size
        off = weight * np.abs(right - columns @ coefficients)
        typical = 1.5 * 1.4826 * np.median(off) + tiny
        now = weight * np.sqrt(np.minimum(1.0, typical / np.maximum(off, tiny)))
    return coefficients


@dataclass(frozen=True)
class Densities:
    """Some draws of a sample with their scores and log densities."""

    draws: Chains
    scores: Chains
    density: AnyArray
    names: Names

    @property
    def enough(self) -> bool:
        chains, length, dim = self.draws.shape
        moves = np.ptp(self.draws, axis=(0, 1)) > 0
        return length >= 8 and chains * length >= max(LEAST, PER_DIM * dim) and bool(moves.all())

    @property
    def misfit(self) -> Misfit:
        dim = self.draws.shape[2]
        x, score = self.draws.reshape(-1, dim), self.scores.reshape(-1, dim)
        return misfit_of(x, score, self.density.ravel())

    @property
    def least(self) -> float:
        """The bias that matters, in standard deviations: somewhat more than a plain standard error."""
        sizes, _ = effective_sizes(np.moveaxis(self.draws, -1, 0))
        most = self.draws.shape[0] * self.draws.shape[1]
        return float(max(ERRORS / np.sqrt(min(np.median(sizes), most)), MATERIAL))

    def repaired(self, repair: Repair) -> "Densities":
        return Densities(repair.draws, repair.scores, self.density[:, repair.kept], self.names)


def energies(whole: Densities) -> Finding | None:
    r"""The error of the scores that the log densities of the draws give away, if there is one.

    For near draws $\log\pi(x_i) - \log\pi(x_j)$ is compared with $\tfrac12 (s_i + s_j) \cdot (x_i - x_j)$.
    The difference is explained by an error of the scores: a constant for each column (a Jacobian), a line
    (a prior), a factor (a temperature), or by scores that belong to other draws. An error is reported if it
    explains the differences at draws it was not fitted to, does not vanish with the distance, and would
    move an estimate by more than the standard error of the plain average.
    """
    misfit = whole.misfit
    if misfit.agreement < OPPOSED:  # a potential energy; the sign of the scores is tested elsewhere
        whole = replace(whole, density=-whole.density)
        misfit = whole.misfit
    found = _examine(whole, misfit)
    if found is None and len(whole.draws) > 1:
        found = _one_chain(whole, misfit)
    return found


def densities(sample: Sample) -> Densities | None:
    """The log densities of a sample, if it has some and draws enough to compare the scores with them."""
    if sample.space is not None or sample.log_density is None:
        return None
    draws, scores = (np.asarray(one, np.float64) for one in (sample.draws, sample.scores))
    whole = Densities(draws, scores, sample.log_density, sample.names)
    return whole if whole.enough else None


def _examine(part: Densities, misfit: Misfit, chain: int | None = None) -> Finding | None:
    """The repair or the error that explains the misfit of some draws."""
    least = part.least
    if misfit.share < SHARE * least:
        return None
    error = suspect(misfit, least)
    proposals = [*_other_places(part)]
    if error is not None:
        proposals += _transforms(part, error.size >= 0.5 * error.size.max())
    tried = [(part.repaired(repair).misfit.size, i) for i, repair in enumerate(proposals)]
    if tried and min(tried)[0] < MENDED * misfit.size:
        repair = proposals[min(tried)[1]]
        return Finding(repair.kind, _of(chain, repair.message), columns=repair.columns)
    return None if error is None else _told(error, part, least, chain)


def _one_chain(part: Densities, misfit: Misfit) -> Finding | None:
    """A chain whose scores are wrong where those of all together are not: one of more misfit than others."""
    step = -(-part.density.size // len(misfit.y))
    of_draw = np.arange(0, part.density.size, step) // part.density.shape[1]
    off = np.abs(misfit.left) / misfit.square
    for chain in range(len(part.draws)):
        touches = (of_draw[misfit.first] == chain) | (of_draw[misfit.second] == chain)
        if touches.all() or np.median(off[touches]) < APART * np.median(off[~touches]):
            continue
        rows = slice(chain, chain + 1)
        alone = Densities(part.draws[rows], part.scores[rows], part.density[rows], part.names)
        if alone.enough and (found := _examine(alone, alone.misfit, chain)):
            return found
    return None


def _other_places(part: Densities) -> Iterator[Repair]:
    """Scores that belong to other draws, chains or columns, or have the wrong sign."""
    for propose in (sign, lag, order, swapped):
        yield from propose(part.draws, part.scores, part.names)


def _transforms(part: Densities, which: AnyArray) -> list[Repair]:
    """The columns in doubt with a Jacobian added, or with draws taken to the unconstrained space."""
    x, s = part.draws, part.scores
    columns = named(part.names, which)
    fixes = (
        "add 1 to the scores (a log transform)",
        "add 1 - 2 sigmoid(draws) to the scores (logit)",
        "subtract 2 tanh(draws) from the scores (a correlation)",
    )
    found = []
    for fix, term in zip(fixes, jacobian_terms(x), strict=True):
        evidence = "with it they are the gradients of the log density that came with the draws"
        message = lacks_jacobian(f" of {listed(columns)}", evidence, fix)
        found.append(Repair("jacobian", x, np.where(which, s + term, s), message, columns))
    for word, (allowed, free) in zip(("log", "logit"), unconstrained(x), strict=True):
        if allowed[which].all():
            message = are_constrained(
                columns, f"the log densities agree with the {word} of the draws"
            )
            found.append(Repair("constrained", np.where(which, free, x), s, message, columns))
    return found


def _told(error: Suspect, part: Densities, least: float, chain: int | None) -> Finding:
    """An error of the scores in words."""
    worst = np.abs(error.bias).max()
    columns = named(part.names, np.abs(error.bias) >= max(0.5 * worst, 0.5 * least))
    causes = {
        "constant": "A term that is linear in these columns is missing or too many: the Jacobian of a "
        "transformed parameter, or part of a prior or of the data.",
        "tempered": "All scores are too large or too small by one factor: look for a temperature, a "
        "likelihood counted twice, or a minibatch gradient without its factor N / batch.",
        "clipped": "The largest scores all have the same size: gradients were clipped. Give the gradients "
        "as they are.",
        "smooth": "A term is left out, such as a prior or the Jacobian of a simplex or a correlation; or the "
        "scores are of other data.",
    }
    moved = f", which moves the mean of {listed(columns)} by {worst:.2g} standard deviations"
    message = (
        "the scores are not the gradients of the log density that came with the draws"
        f"{moved if worst >= least else ''}. {causes[error.kind]} {OTHERWISE}"
    )
    kind = {"constant": "term", "smooth": "term"}.get(error.kind, error.kind)
    return Finding(kind, _of(chain, message), columns=columns if worst >= least else ())


def _of(chain: int | None, message: str) -> str:
    return message if chain is None else f"chain {chain} alone fails: {message}"
