"""Comparison of scores with finite differences of a log density given as a function."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._numerics import precision
from .._show import listed
from .._types import AnyArray, Points
from ..data import Sample
from ._identities import Finding, named
from ._mistakes import are_constrained, jacobian_terms, unconstrained

DRAWS, FEWEST = 20, 5  # most and fewest draws at which the density is differentiated
EVALUATIONS = 2000  # approximate number of evaluations of the density in many dimensions
DIRECTIONS = 50  # in more dimensions differences are taken along this many random directions
STEPS = (1e-2, 1e-3, 1e-4, 1e-5)  # of a standard deviation, until the error is small enough
HALVINGS = 3  # steps of one difference, each half of the previous one
ROUNDING = 4e-16  # relative rounding error of a value of the log density
SURE = 10.0  # times its estimated error: the largest plausible error of a difference
CLOSE = 1e-3  # of the typical score: a larger disagreement is an error
AGREES, AGREES_SINGLE = 1e-6, 1e-4  # of the typical score: scores are verified, in float64, float32
EQUAL = 1e-3  # relative difference up to which two gradients are equal

type Density = Callable[[AnyArray], Any]


@dataclass(frozen=True)
class _Slopes:
    """Scores and finite differences at some draws, in units of the standard deviations.

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
        """The largest allowed difference between score and finite difference, (draw, direction)."""
        return SURE * self.error + CLOSE * np.maximum(np.abs(self.right), self.typical)

    @property
    def wrong(self) -> AnyArray:
        """Where score and finite difference disagree, (draw, direction)."""
        return ~(np.abs(self.score - self.right) <= self.allowed)


def differences(sample: Sample, log_density: Density) -> Finding | None:
    r"""Compare the scores with finite differences of the log density at up to 20 draws.

    Args:
        sample: the draws and scores.
        log_density: takes one draw, an array (dim,), and returns a number; or takes many, (n, dim), and
            returns (n,).

    Returns:
        A finding that they disagree, or that the density is too rough to tell; None if they agree.
    """
    slopes = _slopes(sample, log_density)
    if slopes.wrong.any():
        return _disagreement(sample, slopes, log_density)
    uncertainty = float((np.abs(slopes.score - slopes.right) + slopes.error).max()) / slopes.typical
    limit = AGREES_SINGLE if sample.single else AGREES
    if uncertainty <= limit:
        return None
    message = (
        f"the scores agree with log_density up to {uncertainty:.1g} of their size, and a smaller error "
        f"would not be noticed: they count as verified at {limit:.0e} or less. To verify them, compute "
        "the log density with more digits (float64, a tighter tolerance of its solver)."
    )
    return Finding("rough", message, fatal=False)


def _slopes(sample: Sample, log_density: Density) -> _Slopes:
    """Compute the scores and finite differences at draws spread over the sample."""
    x, score = (np.asarray(values, np.float64) for values in (sample.x, sample.score))
    scale = np.maximum(x.std(axis=0), np.finfo(np.float64).tiny)
    along = _directions(sample.dim)
    affordable = EVALUATIONS // (2 * HALVINGS * len(along))
    inside = _inside(sample)
    count = min(max(FEWEST, min(DRAWS, affordable)), len(inside))
    rows = inside[np.linspace(0, len(inside) - 1, count).round().astype(int)]
    right, error = central_differences(log_density, x[rows], along * scale)
    typical = float(np.sqrt(((score * scale) ** 2).mean())) + 1.0
    return _Slopes(rows, right, score[rows] * scale @ along.T, error, along, scale, typical)


def _inside(sample: Sample) -> AnyArray:
    """Select the draws with a predecessor and a successor in their chain; all draws if there are none."""
    place = np.arange(sample.size) % sample.length
    inside = np.flatnonzero((place > 0) & (place < sample.length - 1))
    return inside if len(inside) else np.arange(sample.size)


def _directions(dim: int) -> AnyArray:
    """Choose the directions along which differences are taken, (direction, dim)."""
    if dim <= DIRECTIONS:
        return np.eye(dim)
    normal = np.random.default_rng(0).normal(size=(dim, DIRECTIONS))
    return np.linalg.qr(normal)[0].T


def central_differences(
    log_density: Density, points: Points, along: AnyArray
) -> tuple[AnyArray, AnyArray]:
    """Differentiate a log density by central differences with Richardson extrapolation.

    Each derivative is computed with decreasing steps until its estimated error is small.

    Args:
        log_density: takes one draw, an array (dim,), and returns a number; or takes many, (n, dim), and
            returns (n,). jax functions are evaluated in float64.
        points: the points at which to differentiate, (n, dim).
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
            candidate, candidate_error = _extrapolated(values, points[i], along[j], step)
            candidate_error = np.maximum(
                candidate_error, np.median(candidate_error)
            )  # two noisy values may agree by chance
            better = candidate_error < error[i, j]
            slopes[i[better], j[better]] = candidate[better]
            error[i[better], j[better]] = candidate_error[better]
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
    """Differentiate at each point along its own direction: derivatives and estimated errors, both (n,)."""
    slopes, largest = [], np.zeros(len(points))
    main = np.abs(along).argmax(axis=1)[:, None]  # shows the step after rounding
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
    """Wrap the user's log density, of one draw or of many, as a function from (n, dim) to (n,)."""

    def one_by_one(x: Points) -> AnyArray:
        return np.array([float(np.asarray(log_density(row))) for row in x])

    def together(x: Points) -> AnyArray:
        return np.asarray(log_density(x), np.float64)

    if not callable(log_density):
        raise TypeError(
            f"log_density is of type {type(log_density).__name__}: give the function that was sampled; "
            "values of it belong to the sample, as Sample(..., log_density=values)."
        )
    requirement = (
        f"it must take one draw, an array of shape {points[0].shape}, and return one finite number"
    )
    try:
        first = log_density(points[0])
        value = np.asarray(first, np.float64)
        if value.shape == () and np.isfinite(value):
            log_density = _compiled(log_density, points[0], first)
            return one_by_one
        outcome: Any = value
    except Exception as error:
        outcome = error
    try:
        many = np.asarray(log_density(points), np.float64)
    except Exception:
        many = None
    if many is not None and many.shape == (len(points),) and np.isfinite(many).all():
        return together
    cause = outcome if isinstance(outcome, Exception) else None
    raise ValueError(
        f"log_density {'raises' if cause else 'gives'} {outcome!r} for the draw {points[0]}: {requirement}; "
        "or take many, (n, dim), and return (n,). It takes the columns of sample.draws, as an array. If "
        'yours takes a dict of parameters, give lambda x: log_density({"mu": x[0], "beta": x[1:]}).'
    ) from cause


def _compiled(log_density: Density, point: AnyArray, value: Any) -> Density:
    """Compile a log density whose value is an array of jax; return others, and those that need numbers."""
    import jax

    if not isinstance(value, jax.Array):
        return log_density
    compiled = jax.jit(log_density)
    try:
        compiled(point)
    except Exception:  # a function of values, such as one with branches or NumPy code inside
        return log_density
    return compiled


def _disagreement(sample: Sample, slopes: _Slopes, log_density: Density) -> Finding:
    """Report where scores and differences are furthest apart, and the likely cause."""
    error = np.where(slopes.wrong, np.abs(slopes.score - slopes.right), 0.0)
    row, worst = (int(i) for i in np.unravel_index(error.argmax(), error.shape))
    draw, single = int(slopes.rows[row]), len(slopes.along) == sample.dim
    columns = named(sample.names, slopes.wrong.any(axis=0)) if single else ()
    size = float(slopes.scale[worst]) if single else 1.0
    where = f" of {sample.names[worst]}" if single else " along a random direction"
    kind, cause = next(_explanations(sample, slopes, log_density), ("differences", LEFT_OUT))
    message = (
        f"the scores{f' of {listed(columns)}' if columns else ''} are not the gradients of log_density: "
        f"at draw {draw % sample.length} of chain {draw // sample.length} the score{where} is "
        f"{slopes.score[row, worst] / size:.6g} and a finite difference gives "
        f"{slopes.right[row, worst] / size:.6g}. {cause} Correct the scores; or correct log_density, if "
        "it is not the one that was sampled, on the unconstrained space with its Jacobian."
    )
    return Finding(kind, message, columns=columns)


LEFT_OUT = (
    "The likely cause is a term left out, such as a prior or the log-Jacobian of a transformation, or "
    "other data."
)


def _explanations(
    sample: Sample, slopes: _Slopes, log_density: Density
) -> Iterator[tuple[str, str]]:
    """Yield kinds and descriptions of mistakes that explain the differences, the simplest first."""
    right, score = slopes.right, slopes.score

    def fits(candidate: AnyArray) -> bool:
        return bool((np.abs(candidate - right) <= slopes.allowed).all())

    if fits(-score):
        yield "sign", "They have the wrong sign: give -scores."
    for word, shift in (("late", 1), ("early", -1)):
        if sample.length > 2 and fits(
            sample.score[slopes.rows + shift] * slopes.scale @ slopes.along.T
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
    if len(slopes.along) == sample.dim:
        yield from _order(slopes)
        yield from _terms(sample, slopes)
        yield from _constrained(sample, slopes, log_density)


def _order(slopes: _Slopes) -> Iterator[tuple[str, str]]:
    """Yield a permutation of the columns if it makes the scores fit."""
    from scipy.optimize import linear_sum_assignment

    score, right = slopes.score / slopes.scale, slopes.right / slopes.scale
    distance = np.abs(right[:, :, None] - score[:, None, :]).max(axis=0)
    _, place = linear_sum_assignment(distance)
    allowed = (slopes.allowed / slopes.scale).max(axis=0)
    if (place != np.arange(len(place))).any() and (
        distance[np.arange(len(place)), place] <= allowed
    ).all():
        yield (
            "order",
            f"The columns are in another order: scores[..., {[int(i) for i in place]}] fit.",
        )


def _terms(sample: Sample, slopes: _Slopes) -> Iterator[tuple[str, str]]:
    """Yield a term that only the scores or only the log density has: a Jacobian or a linear function."""
    x = sample.x[slopes.rows]
    missing = (slopes.right - slopes.score) / slopes.scale
    which = slopes.wrong.any(axis=0)
    allowed = slopes.allowed / slopes.scale

    def fits(terms: AnyArray) -> bool:
        return bool((np.abs(missing - terms) <= allowed)[:, which].all())

    for sign, side in ((1.0, "the scores"), (-1.0, "log_density")):
        for word, term in zip(("log", "logit", "tanh"), jacobian_terms(x), strict=True):
            if fits(sign * term):
                yield (
                    "jacobian",
                    f"The log-Jacobian of a {word} transformation is left out of {side}.",
                )
    lines = np.zeros_like(missing)
    for j in np.flatnonzero(which):
        design = np.stack([np.ones(len(x)), x[:, j]], axis=1)
        lines[:, j] = design @ np.linalg.lstsq(design, missing[:, j])[0]
    if len(x) > 3 and fits(lines):
        yield (
            "term",
            "They differ by a linear function of each parameter: a term is left out, such as a normal "
            "prior or part of a log-Jacobian.",
        )


def _constrained(
    sample: Sample, slopes: _Slopes, log_density: Density
) -> Iterator[tuple[str, str]]:
    """Yield the explanation that the draws are constrained and the scores unconstrained."""
    x, score = sample.x[slopes.rows], slopes.score / slopes.scale
    right = slopes.right / slopes.scale
    which = slopes.wrong.any(axis=0)
    for word, (allowed, free) in zip(("log", "logit"), unconstrained(sample.draws), strict=True):
        if not allowed[which].all():
            continue
        unconstrained_x = np.where(which, free.reshape(sample.x.shape), sample.x)
        width = np.where(which, x if word == "log" else x * (1.0 - x), 1.0)  # dx / dz
        term = np.where(which, 1.0 if word == "log" else 1.0 - 2.0 * x, 0.0)
        differentiated = _gradients_at(
            log_density, unconstrained_x[slopes.rows], unconstrained_x.std(axis=0)
        )
        for candidate in (width * right + term, width * right, differentiated):
            if candidate is not None and _nearly_equal(candidate, score):
                columns = named(sample.names, which)
                message = are_constrained(columns, f"they fit the {word} of the draws")
                yield "constrained", message[0].upper() + message[1:]


def _gradients_at(log_density: Density, points: Points, scale: AnyArray) -> AnyArray | None:
    """Compute the gradients at other points; None if the log density is not finite there."""
    try:
        return central_differences(log_density, points, np.diag(scale))[0] / scale
    except ValueError:
        return None


def _nearly_equal(gradients: AnyArray, expected: AnyArray) -> bool:
    """Return whether gradients equal expected ones, both (n, dim), up to a small relative error."""
    size = np.sqrt((expected**2).mean(axis=0)) + np.finfo(np.float64).tiny
    return bool((np.abs(gradients - expected) <= EQUAL * np.maximum(np.abs(expected), size)).all())
