"""Scores against finite differences of a log density that is given as a function."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._precision import precision
from .._show import listed
from .._types import AnyArray, Points
from ..data import Sample
from ._mistakes import are_constrained, jacobian_terms, unconstrained
from ._report import Finding, named

DRAWS, FEWEST = 20, 5  # at which the density is differentiated; fewer in many dimensions
EVALUATIONS = 2000  # of the density, roughly, where there are many dimensions
DIRECTIONS = 50  # beyond so many dimensions differences are taken along random directions
STEPS = (1e-2, 1e-3, 1e-4, 1e-5)  # of a standard deviation, until the error is small enough
HALVINGS = 3  # steps of one difference, each half of the one before
ROUNDING = 4e-16  # of the log density: what a value of it is off by
SURE = 10.0  # times its estimated error: what a difference may be off by
CLOSE = 1e-3  # of the typical score: a larger disagreement is an error
AGREES, AGREES_SINGLE = 1e-6, 1e-4  # of the typical score: scores are verified, in float64, float32
EQUAL = 1e-3  # of what is to be explained: what an explanation may leave

type Density = Callable[[AnyArray], Any]


@dataclass(frozen=True)
class _Slopes:
    """Scores and differences at some draws, in standard deviations.

    `right`, `score` and `error` are (draw, direction).
    """

    rows: AnyArray
    right: AnyArray
    score: AnyArray
    error: AnyArray
    along: AnyArray
    scale: AnyArray
    typical: float

    @property
    def allowed(self) -> AnyArray:
        """By how much they may differ."""
        return SURE * self.error + CLOSE * np.maximum(np.abs(self.right), self.typical)

    @property
    def wrong(self) -> AnyArray:
        """Where they disagree."""
        return ~(np.abs(self.score - self.right) <= self.allowed)


def differences(sample: Sample, log_density: Density) -> Finding | None:
    r"""Compare the scores with finite differences of the log density at up to 20 draws.

    Args:
        sample: the draws and scores.
        log_density: takes one draw, an array (dim,), and returns a number; or takes many, (n, dim), and
            returns (n,).

    Returns:
        That they disagree, or that the density is too rough to tell; None if they agree.
    """
    found = _slopes(sample, log_density)
    if found.wrong.any():
        return _disagreement(sample, found, log_density)
    unsure = float((np.abs(found.score - found.right) + found.error).max()) / found.typical
    limit = AGREES_SINGLE if sample.single else AGREES
    if unsure <= limit:
        return None
    message = (
        f"the scores agree with log_density to {unsure:.1g} of their size, and a smaller error would not be "
        f"noticed: {limit:.0e} is needed to call them verified. Compute the log density with more digits "
        "(float64, a tighter tolerance of its solver) to compare them further."
    )
    return Finding("rough", message, fatal=False)


def _slopes(sample: Sample, log_density: Density) -> _Slopes:
    x, score = (np.asarray(one, np.float64) for one in (sample.x, sample.score))
    scale = np.maximum(x.std(axis=0), np.finfo(np.float64).tiny)
    along = _directions(sample.dim)
    each = EVALUATIONS // (2 * HALVINGS * len(along))
    inside = _inside(sample)
    count = min(max(FEWEST, min(DRAWS, each)), len(inside))
    rows = inside[np.linspace(0, len(inside) - 1, count).round().astype(int)]
    slopes, error = central_differences(log_density, x[rows], along * scale)
    typical = float(np.sqrt(((score * scale) ** 2).mean())) + 1.0
    return _Slopes(rows, slopes, score[rows] * scale @ along.T, error, along, scale, typical)


def _inside(sample: Sample) -> AnyArray:
    """The draws that have one before and one after in their chain, all if there are none."""
    place = np.arange(sample.size) % sample.length
    inside = np.flatnonzero((place > 0) & (place < sample.length - 1))
    return inside if len(inside) else np.arange(sample.size)


def _directions(dim: int) -> AnyArray:
    """Along which differences are taken, (direction, dim)."""
    if dim <= DIRECTIONS:
        return np.eye(dim)
    normal = np.random.default_rng(0).normal(size=(dim, DIRECTIONS))
    return np.linalg.qr(normal)[0].T


def central_differences(
    log_density: Density, points: Points, along: AnyArray
) -> tuple[AnyArray, AnyArray]:
    """Derivatives of a log density by central differences with Richardson extrapolation.

    Each is computed with smaller and smaller steps until its estimated error is small.

    Args:
        log_density: takes one draw, an array (dim,), and returns a number; or takes many, (n, dim), and
            returns (n,). Functions of jax are evaluated in float64.
        points: at which to differentiate, (n, dim).
        along: directions of the length of a standard deviation, (direction, dim).

    Returns:
        The derivatives along each direction and their estimated errors, both (n, direction).

    >>> central_differences(lambda x: -0.5 * x @ x, np.ones((1, 2)), np.eye(2))[0].round(6)
    array([[-1., -1.]])
    """
    points = np.asarray(points, np.float64)
    with precision(np.float64):
        values = _of_many(log_density, points)
        slopes = np.zeros((len(points), len(along)))
        error = np.full_like(slopes, np.inf)
        for step in STEPS:
            i, j = np.nonzero(error > 0.1 * AGREES * (1.0 + np.abs(slopes)))
            if len(i) == 0:
                break
            found, unsure = _extrapolated(values, points[i], along[j], step)
            unsure = np.maximum(unsure, np.median(unsure))  # two noisy values may agree by chance
            better = unsure < error[i, j]
            slopes[i[better], j[better]] = found[better]
            error[i[better], j[better]] = unsure[better]
    if not np.isfinite(error).all():
        draw = points[int(np.argmin(np.isfinite(error).all(axis=1)))]
        raise ValueError(
            f"log_density is not finite around the draw {draw}: give the log density that was sampled, of "
            "the draws as they are in the sample (unconstrained, if they are)."
        )
    return slopes, error


def _extrapolated(
    values: Density, points: Points, along: AnyArray, step: float
) -> tuple[AnyArray, AnyArray]:
    """The derivative of each point along its own direction, and an estimate of its error: both (n,)."""
    slopes, largest = [], np.zeros(len(points))
    main = np.abs(along).argmax(axis=1)[:, None]  # which has the step as it was rounded
    length = np.take_along_axis(along, main, axis=1)[:, 0]
    for k in range(HALVINGS):
        up, down = points + step / 2**k * along, points - step / 2**k * along
        moved = np.take_along_axis(up - down, main, axis=1)[:, 0]
        above, below = values(up), values(down)
        with np.errstate(invalid="ignore", divide="ignore"):
            slopes.append((above - below) * length / moved)
        largest = np.maximum(largest, np.maximum(np.abs(above), np.abs(below)))
    first, second = ((4.0 * slopes[k + 1] - slopes[k]) / 3.0 for k in (0, 1))
    rounding = ROUNDING * largest * 2 ** (HALVINGS - 1) / step
    error = np.abs(second - first) + rounding
    return second, np.where(np.isfinite(error), error, np.inf)


def _of_many(log_density: Density, points: Points) -> Density:
    """The log density as a function of many draws, (n, dim) to (n,), whichever the user's one takes."""

    def one_by_one(x: Points) -> AnyArray:
        return np.array([float(np.asarray(log_density(row))) for row in x])

    def together(x: Points) -> AnyArray:
        return np.asarray(log_density(x), np.float64)

    wanted = (
        f"it must take one draw, an array of shape {points[0].shape}, and return one finite number"
    )
    try:
        one = np.asarray(log_density(points[0]), np.float64)
        if one.shape == () and np.isfinite(one):
            return one_by_one
        told: Any = one
    except Exception as error:
        told = error
    try:
        many = np.asarray(log_density(points), np.float64)
    except Exception:
        many = None
    if many is not None and many.shape == (len(points),) and np.isfinite(many).all():
        return together
    cause = told if isinstance(told, Exception) else None
    raise ValueError(
        f"log_density gives {told!r} for the draw {points[0]}: {wanted}; or take many, (n, dim), and return "
        "(n,)."
    ) from cause


def _disagreement(sample: Sample, found: _Slopes, log_density: Density) -> Finding:
    """Where scores and differences are furthest apart, and what that looks like."""
    off = np.where(found.wrong, np.abs(found.score - found.right), 0.0)
    at, worst = (int(i) for i in np.unravel_index(off.argmax(), off.shape))
    draw, single = int(found.rows[at]), len(found.along) == sample.dim
    columns = named(sample.names, found.wrong.any(axis=0)) if single else ()
    size = float(found.scale[worst]) if single else 1.0
    where = f" of {sample.names[worst]}" if single else " along a random direction"
    kind, looks = next(_looks(sample, found, log_density), ("differences", LEFT_OUT))
    message = (
        f"the scores{f' of {listed(columns)}' if columns else ''} are not the gradients of log_density: at "
        f"draw {draw % sample.length} of chain {draw // sample.length} the score{where} is "
        f"{found.score[at, worst] / size:.6g} and a finite difference gives "
        f"{found.right[at, worst] / size:.6g}. {looks} Correct the scores; or, if log_density is not the "
        "one that was sampled, on the unconstrained space with its Jacobian, correct that."
    )
    return Finding(kind, message, columns=columns)


LEFT_OUT = (
    "It looks like a term left out, such as a prior or the log-Jacobian of a transformation, or like other "
    "data."
)


def _looks(sample: Sample, found: _Slopes, log_density: Density) -> Iterator[tuple[str, str]]:
    """What would turn the differences into the scores, the simplest first."""
    right, score = found.right, found.score

    def fits(other: AnyArray) -> bool:
        return bool((np.abs(other - right) <= found.allowed).all())

    if fits(-score):
        yield "sign", "They have the wrong sign: give -scores."
    for word, shift in (("late", 1), ("early", -1)):
        if sample.length > 2 and fits(
            sample.score[found.rows + shift] * found.scale @ found.along.T
        ):
            yield (
                "lag",
                f"The scores are one draw {word}: they fit when shifted by one within each chain.",
            )
    factor = float((score * right).sum() / max((right**2).sum(), 1e-300))
    if factor > 0 and fits(score / factor):
        yield (
            "tempered",
            f"All scores are {factor:.4g} times the differences: look for a temperature, a likelihood "
            "counted twice, or a minibatch gradient without its factor.",
        )
    if len(found.along) == sample.dim:
        yield from _order(found)
        yield from _terms(sample, found)
        yield from _constrained(sample, found, log_density)


def _order(found: _Slopes) -> Iterator[tuple[str, str]]:
    from scipy.optimize import linear_sum_assignment

    score, right = found.score / found.scale, found.right / found.scale
    apart = np.abs(right[:, :, None] - score[:, None, :]).max(axis=0)
    _, place = linear_sum_assignment(apart)
    allowed = (found.allowed / found.scale).max(axis=0)
    if (place != np.arange(len(place))).any() and (
        apart[np.arange(len(place)), place] <= allowed
    ).all():
        yield (
            "order",
            f"The columns are in another order: scores[..., {[int(i) for i in place]}] fit.",
        )


def _terms(sample: Sample, found: _Slopes) -> Iterator[tuple[str, str]]:
    """A term of the log density that only one side has: a Jacobian, a constant slope, or a line."""
    x = sample.x[found.rows]
    missing = (found.right - found.score) / found.scale
    which = found.wrong.any(axis=0)
    allowed = found.allowed / found.scale

    def fits(terms: AnyArray) -> bool:
        return bool((np.abs(missing - terms) <= allowed)[:, which].all())

    for sign, side in ((1.0, "the scores"), (-1.0, "log_density")):
        for word, term in zip(("log", "logit", "tanh"), jacobian_terms(x), strict=True):
            if fits(sign * term):
                yield (
                    "jacobian",
                    f"The log-Jacobian of a {word} transformation is left out of {side}.",
                )
    slopes = np.zeros_like(missing)
    for j in np.flatnonzero(which):
        line = np.stack([np.ones(len(x)), x[:, j]], axis=1)
        slopes[:, j] = line @ np.linalg.lstsq(line, missing[:, j])[0]
    if len(x) > 3 and fits(slopes):
        yield (
            "term",
            "They differ by a straight line in each parameter: a term is left out, such as a normal prior or "
            "part of a log-Jacobian.",
        )


def _constrained(sample: Sample, found: _Slopes, log_density: Density) -> Iterator[tuple[str, str]]:
    """Constrained draws beside scores of the unconstrained parameters."""
    x, score = sample.x[found.rows], found.score / found.scale
    right = found.right / found.scale
    which = found.wrong.any(axis=0)
    for word, (allowed, free) in zip(("log", "logit"), unconstrained(sample.draws), strict=True):
        if not allowed[which].all():
            continue
        inside = np.where(which, free.reshape(sample.x.shape), sample.x)
        width = np.where(which, x if word == "log" else x * (1.0 - x), 1.0)  # dx / dz
        term = np.where(which, 1.0 if word == "log" else 1.0 - 2.0 * x, 0.0)
        of_free = _tried(log_density, inside[found.rows], inside.std(axis=0))
        for other in (width * right + term, width * right, of_free):
            if other is not None and _alike(other, score):
                columns = named(sample.names, which)
                message = are_constrained(columns, f"they fit the {word} of the draws")
                yield "constrained", message[0].upper() + message[1:]


def _tried(log_density: Density, points: Points, scale: AnyArray) -> AnyArray | None:
    """The gradients at other points, if they can be computed."""
    try:
        return central_differences(log_density, points, np.diag(scale))[0] / scale
    except ValueError:
        return None


def _alike(one: AnyArray, other: AnyArray) -> bool:
    size = np.sqrt((other**2).mean(axis=0)) + np.finfo(np.float64).tiny
    return bool((np.abs(one - other) <= EQUAL * np.maximum(np.abs(other), size)).all())
