"""Search for candidates: a grid on few draws, a search on more, a preselection on a subset of many."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from .._show import counted
from .._types import AnyArray
from ..data import Integrands, Sample
from ..solvers import CrossFitted, HeldOut
from ._candidates import (
    DEGREE,
    DEGREES,
    DIMENSIONS,
    FAR,
    FEW,
    FEW_DIMENSIONS,
    GRIDS,
    GROWS,
    HARD,
    HELPS,
    LEAST_PENALTY,
    MATRICES,
    MATRICES_IN_FEW_DIMENSIONS,
    MOVES,
    NOTHING,
    ONE_MATRIX,
    OPERATIONS,
    PAIRS_OF_PART,
    PART,
    PATIENCE,
    PENALTIES,
    PERFECT,
    POLYNOMIAL_PENALTIES,
    QUADRATICS,
    ROUGH,
    SEVERAL_DIMENSIONS,
    SHORT,
    SPACE_PENALTIES,
    SPREAD,
    SPREAD_IN_SEVERAL_DIMENSIONS,
    SPREAD_OF_PAIRS,
    STATE_PENALTIES,
    STEPS,
    TAILS,
    WEIGHED,
    WHOLE,
    WIDER,
    WIDEST,
    WORST,
    Candidate,
    is_cheap,
    most_draws,
    polynomial,
    train_size,
)
from ._choice import Choice, choose
from ._directions import (
    along_directions,
    bent,
    directional,
    of_each_dimension,
    shapes_of,
    tied,
)
from ._draws import AbstractDraws, CandidateFit, RealDraws, SpaceDraws, for_those, integration
from ._kinks import continued, with_kinks

# A length-scale, the integrands that asked for it, and the least variance of each with it.
type Tried = tuple[float, np.ndarray, np.ndarray]


def candidate_fits(draws: AbstractDraws) -> Iterator[CandidateFit]:
    """Fit every candidate, plain Monte Carlo first.

    An integrand gets no more candidates once its residual variance is down to `NOTHING`.

    Args:
        draws: the draws, with the integrands.
    """
    best = np.full(draws.f.shape[1], np.inf)
    for fit in _without_kernels(draws, best):
        yield from recorded([replace(fit, asked=best > NOTHING)], best)
        if (best <= NOTHING).all():
            return
    if draws.draw_folds[-1][1] < 2 * len(draws.folds):
        return
    unfinished = best > NOTHING
    if (
        isinstance(draws, RealDraws)
        and draws.dim >= DIMENSIONS
        and draws.dim**2 > 2 * QUADRATICS * draws.size
    ):
        return  # a polynomial with a penalty learns little
    fits = with_kernels(draws, best) if draws.size <= WHOLE else _from_part(draws, best)
    for fit in fits:
        yield replace(fit, asked=unfinished if fit.asked is None else unfinished & fit.asked)


def with_kernels(
    draws: AbstractDraws, best: np.ndarray, tune: bool = True
) -> Iterator[CandidateFit]:
    """Fit candidates with a kernel to all draws.

    Args:
        draws: the draws, with the integrands.
        best: the least variance of each integrand without a kernel, (k,).
        tune: whether to search for length-scales and penalties beyond the first candidates, as is always
            done in few dimensions.
    """
    if isinstance(draws, SpaceDraws):
        yield from _of_space(draws)
        return
    assert isinstance(draws, RealDraws)
    few = draws.dim < FEW_DIMENSIONS
    if draws.dim >= DIMENSIONS:
        yield from draws.with_kernel(polynomial(2), None, POLYNOMIAL_PENALTIES, ("",))
    elif draws.size <= FEW:
        yield from _survey(draws)
    else:
        search = Search(draws, best, best > NOTHING)
        yield from search.first(_starts(draws.dim, tune))
        if tune or few:
            yield from search.tune(WIDER if few else ())


def _starts(dim: int, tune: bool) -> tuple[Candidate, ...]:
    """Return the kernels to try first; without tuning, fewer of the expensive ones."""
    if dim < FEW_DIMENSIONS:
        return SPREAD
    if tune:
        return SPREAD + SPREAD_OF_PAIRS
    smooth = SPREAD if dim < SEVERAL_DIMENSIONS else SPREAD_IN_SEVERAL_DIMENSIONS
    return smooth + PAIRS_OF_PART


def _from_part(draws: AbstractDraws, best: np.ndarray) -> Iterator[CandidateFit]:
    """Select the best candidates on a subset of the draws, fit them to more draws and use them on all."""
    subset, least = draws.thinned(PART), np.full(len(best), np.inf)
    if not (isinstance(draws, RealDraws) and draws.dim >= DIMENSIONS):  # there is no search there
        deque(recorded(_without_kernels(subset, least), least), maxlen=0)
    few = isinstance(draws, RealDraws) and draws.dim < FEW_DIMENSIONS
    matrices = MATRICES_IN_FEW_DIMENSIONS if few else MATRICES
    if draws.size > ONE_MATRIX:
        matrices = 1
    fits = with_kernels(subset, least, tune=False)
    costly = [name for name in DEGREES if draws.cost(name) >= SEVERAL_DIMENSIONS]
    wanted = shortlist(fits, GROWS * best, matrices, costly)
    training_sets: dict[int, AbstractDraws] = {}
    for (kernel, *_), group in groupby(sorted(wanted, key=_factorisation), key=_factorisation):
        size = train_size(draws.size, draws.cost(kernel))
        train = training_sets[size] = training_sets.get(size) or draws.thinned(size, TAILS)
        candidates = list(group)
        asked = np.any([wanted[candidate] for candidate in candidates], axis=0)
        for fit in draws.from_part(candidates, train, asked):
            yield replace(fit, asked=wanted[fit.candidate])


def _factorisation(candidate: Candidate) -> tuple[str, float, float]:
    """Return a key that is equal for candidates that share a factorisation."""
    return candidate.kernel, candidate.factor or 0.0, candidate.penalty


def shortlist(
    fits: Iterable[CandidateFit], most: np.ndarray, matrices: int, costly: Sequence[str] = ()
) -> dict[Candidate, np.ndarray]:
    """Select the best candidates of each integrand, and the integrands that each is selected for, (k,).

    Args:
        fits: the fits of all candidates.
        most: the largest residual variance that the best candidate of an integrand may have, (k,).
        matrices: the most factorisations for an integrand.
        costly: expensive kernels, selected only for integrands for which they are the best.
    """
    tried = [(fit.candidate, fit.open_variance) for fit in fits]
    wanted: dict[Candidate, np.ndarray] = {}
    variance = np.array([variances for _, variances in tried]).reshape(len(tried), len(most))
    for i in np.flatnonzero(np.min(variance, axis=0, initial=np.inf) <= most):
        picked: dict[tuple[str, float, float], Candidate] = {}
        order = variance[:, i].argsort(kind="stable")
        for j in order[variance[order, i] <= FAR * variance[order[0], i]]:
            if not picked or tried[j][0].kernel not in costly:
                picked.setdefault(_factorisation(tried[j][0]), tried[j][0])
        for candidate in list(picked.values())[:matrices]:
            wanted.setdefault(candidate, np.zeros(len(most), bool))[i] = True
    return wanted


def recorded(fits: Iterable[CandidateFit], best: np.ndarray) -> Iterator[CandidateFit]:
    """Pass fits on, and write the least variance of each integrand to an array, (k,)."""
    for fit in fits:
        np.minimum(best, fit.open_variance, out=best)
        yield fit


def _without_kernels(draws: AbstractDraws, best: np.ndarray) -> Iterator[CandidateFit]:
    """Fit plain Monte Carlo, and columns without a penalty, the fewest first.

    Args:
        draws: the draws, with the integrands.
        best: the least variance of each integrand so far, which the caller records, (k,).
    """
    yield draws.plain()
    if isinstance(draws, SpaceDraws):
        for columns, kernel in draws.parts:
            if not kernel:
                yield from filter(None, [draws.with_columns(columns, dependent=True)])
        return
    assert isinstance(draws, RealDraws)
    for degree in range(1, DEGREE + 1):
        if draws.affords(degree) and is_cheap(degree, draws.size, draws.dim):
            most, name = most_draws(degree, draws.dim), polynomial(degree)
            if draws.size <= most:
                yield from filter(None, [draws.with_columns(name)])
            else:
                yield from draws.from_part([Candidate(name)], draws.thinned(most))
    if draws.dim >= DIMENSIONS:
        yield from _in_many_dimensions(draws, best)


def _in_many_dimensions(draws: RealDraws, best: np.ndarray) -> Iterator[CandidateFit]:
    """Fit functions of single dimensions, of directions and of vectors.

    A kernel of all coordinates is too coarse. Only functions of single dimensions are tried if draws have
    weights.
    """
    if draws.weights is not None:
        for degree in range(DEGREE, 1, -1):
            operations = len(draws.folds) * draws.size * (degree * float(draws.dim)) ** 2
            if draws.affords(degree) and is_cheap(degree, draws.size, draws.dim):
                break
            if degree * draws.dim <= draws.train / 2 and operations <= OPERATIONS:
                yield from filter(None, [of_each_dimension(draws, degree)])
                break
        return
    shapes = shapes_of(draws)
    along = along_directions(draws, shapes)
    yield from along
    selected = bent(draws, along)
    if selected.any() and draws.affords(1):
        yield directional(draws, selected)
    yield from tied(draws, shapes, best)


def _survey(draws: RealDraws) -> Iterator[CandidateFit]:
    """Fit every candidate of the grids, and length-scales beyond a grid for integrands that ask for them."""
    everyone = np.ones(draws.f.shape[1], bool)
    for grid in GRIDS:
        tried: list[Tried] = []
        least = draws.least_factor(grid.kernel)
        waiting = [(factor, everyone) for factor in grid.factors if factor >= least]
        names = draws.polynomials(grid.degrees)
        while waiting:
            factor, asked = waiting.pop(0)
            best = np.full(len(asked), np.inf)
            fits = draws.with_kernel(grid.kernel, factor, PENALTIES, names)
            yield from recorded(for_those(fits, asked), best)
            tried.append((factor, asked, best))
            if not waiting:
                waiting = _beyond(tried, least)


def _beyond(tried: list[Tried], least: float) -> list[tuple[float, np.ndarray]]:
    """Return the next length-scales, and the integrands whose best is at the edge of those tried."""
    if not tried:
        return []
    factors, asked, variance = (np.array(column) for column in zip(*tried, strict=True))
    factors_tried = np.where(asked, factors[:, None], np.nan)
    best = factors[variance.argmin(axis=0)]
    low, high = np.fmin.reduce(factors_tried), np.fmax.reduce(factors_tried)
    shorter = np.where((best == low) & (low / 2 >= least), low / 2, np.nan)
    longer = np.where((best == high) & (2 * high <= WIDEST), 2 * high, np.nan)
    return [
        (float(factor), edge == factor)
        for edge in (shorter, longer)
        for factor in np.unique(edge[np.isfinite(edge)])
    ]


class Search:
    """Search for candidates with a kernel on all draws, with one factorisation for each.

    A few widely different candidates are tried first: for most integrands one of them is close to the
    best. Then neighbours of each integrand's best candidate are tried: a smaller penalty, another
    length-scale, or a larger penalty. An integrand uses only the candidates of its own search, so that
    its estimate does not depend on the other integrands. A candidate that several integrands need at once
    is fitted once.

    Args:
        draws: all draws.
        best: the least variance of each integrand without a kernel, (k,).
        unfinished: the integrands whose residual variance is above `NOTHING`, (k,).
    """

    def __init__(self, draws: RealDraws, best: np.ndarray, unfinished: np.ndarray):
        self.draws, self.open = draws, unfinished
        self.asked: dict[Candidate, np.ndarray] = {}
        self.best = np.log(best)
        self.leading: list[Candidate | None] = [None] * len(best)
        self.move: list[tuple[float, float] | None] = [None] * len(best)  # the last move
        self.came: list[tuple[float, float] | None] = [None] * len(best)  # the move to the best
        self.idle = np.zeros(len(best), int)  # consecutive steps without an improvement

    def first(self, starts: Iterable[Candidate]) -> Iterator[CandidateFit]:
        """Fit the first candidates to all unfinished integrands, ignoring the columns of the candidates."""
        for candidate in filter(self.allows, starts):
            yield from self.step(candidate, self.open.copy())

    def tune(self, more: Iterable[Candidate]) -> Iterator[CandidateFit]:
        """Fit further candidates, and then neighbours of the best.

        Args:
            more: further candidates, for integrands whose residual variance is still large.
        """
        hard = self.open & (self.best > np.log(HARD))  # integrands have variance 1
        smooth = hard & (self.best < np.log(ROUGH))
        for candidate in filter(self.allows, more):
            assert candidate.factor is not None
            asked = hard if candidate.factor <= SHORT else smooth
            if asked.any():
                yield from self.step(candidate, asked.copy())
        self.idle[:] = 0
        for _ in range(STEPS):
            for candidate, asked in self.next().items():
                yield from self.step(candidate, asked)

    def step(self, candidate: Candidate, asked: np.ndarray) -> Iterator[CandidateFit]:
        """Fit a kernel to some integrands, with every polynomial that it is combined with."""
        self.asked[candidate] = asked | self.asked.get(candidate, False)
        least = np.full(len(asked), np.inf)
        names = self.draws.polynomials(DEGREES[candidate.kernel])
        fits = self.draws.with_kernel(
            candidate.kernel, candidate.factor, (candidate.penalty,), names
        )
        yield from recorded(for_those(fits, asked), least)
        with np.errstate(divide="ignore"):
            variance = np.log(least)
        for i in np.flatnonzero(variance < self.best):
            self.leading[i], self.came[i] = candidate, self.move[i]
        fall = self.best - np.minimum(self.best, variance)
        self.idle[asked] = np.where(fall > HELPS, 0, self.idle + 1)[asked]
        self.best = np.minimum(self.best, variance)
        self.open &= self.best > np.log(NOTHING)

    def next(self) -> dict[Candidate, np.ndarray]:
        """Return the next candidates, and the integrands that ask for each, (k,)."""
        wanted: dict[Candidate, np.ndarray] = {}
        for i in np.flatnonzero(self.open & (self.idle < PATIENCE)):
            neighbour = self._next(int(i))
            if neighbour is not None:
                wanted.setdefault(neighbour, np.zeros(len(self.best), bool))[i] = True
        return wanted

    def _next(self, i: int) -> Candidate | None:
        """Return the neighbour that an integrand asks for; None if its best candidate has no kernel."""
        leading, came = self.leading[i], self.came[i]
        if leading is None:
            return None
        for move in MOVES if came is None else (came, *MOVES):
            neighbour = leading.moved(move)
            if self.allows(neighbour) and not (
                neighbour in self.asked and self.asked[neighbour][i]
            ):
                self.move[i] = move
                return neighbour
        return None

    def allows(self, candidate: Candidate) -> bool:
        """Return whether a candidate's functions have finite variance and its penalty is within limits."""
        assert candidate.factor is not None
        shortest = self.draws.least_factor(candidate.kernel)
        return candidate.factor >= shortest and LEAST_PENALTY <= candidate.penalty <= 1


def _of_space(draws: SpaceDraws) -> Iterator[CandidateFit]:
    """Fit the kernels of a space with each penalty."""
    penalties = STATE_PENALTIES if draws.discrete else SPACE_PENALTIES
    for columns, kernel in draws.parts:
        if kernel:
            names = ("", columns) if columns else ("",)
            yield from draws.with_kernel(kernel, None, penalties, names)


def automatic(wanted: Integrands, sample: Sample, ess: AnyArray) -> tuple[Choice, AbstractDraws]:
    """Fit candidates to the draws, and choose a mixture for each integrand.

    Args:
        wanted: the integrands.
        sample: the draws and scores.
        ess: the effective sample sizes of the integrands, (k,).
    """
    task = integration(wanted, sample, ess)
    draws, scale = task.draws, task.scale
    which, sensitive = wanted.jumping, np.zeros(0)
    folds, autocorrelation = draws.draw_folds, task.autocorrelation
    if len(which):
        further, sensitive = continued(wanted, sample, draws.folds, draws.order)
        draws.f = np.concatenate([draws.f, further / scale[which]], axis=1)
        autocorrelation = np.concatenate([autocorrelation, autocorrelation[which]])
    choice = choose(candidate_fits(draws), autocorrelation, folds, sample.chains)
    if len(which):
        choice = with_kinks(choice, which, sensitive, sample.chains)
    held, plain = choice.held, choice.mixture[0] == 1
    straight = ", a funnel straightened" if draws.straightened else ""
    tried = f"chosen among {counted(len(choice.candidates), 'candidate')}"
    thinned = (
        ""
        if draws.size == wanted.size
        else f", with {draws.size - sample.size} of the training points"
    )
    note = f"{tried}, cross-fitted in {len(draws.folds)} folds{straight}{thinned}"
    residual = np.where(plain, task.f, held.residual * scale)  # exactly the plain values
    held = HeldOut(residual, note, folds=folds, unseen=held.unseen * scale**2)
    return replace(choice, held=held), draws


def for_all(
    wanted: Integrands, sample: Sample, ess: AnyArray
) -> tuple[CrossFitted, Candidate, str]:
    """Choose one candidate for all integrands; return its fit, the candidate, and a note on the choice.

    Among the candidates that make no integrand much worse it has the least residual variance relative to
    the plain one, in the geometric mean over integrands. A candidate that interpolates smooth integrands
    perfectly can multiply the variance of others by thousands.
    """
    if sample.size > WEIGHED:
        raise ValueError(
            f"{sample.size} draws: weights are chosen without a family for up to {WEIGHED}. Give one, such "
            "as weigh(sample, Polynomial(2)), or thin the draws."
        )
    choice, draws = automatic(wanted, sample, ess)
    differs = np.array([candidate.own for candidate in choice.candidates])
    left = np.where(np.isfinite(choice.left), choice.left, np.inf)  # usable or not
    mean = np.log(np.maximum(left, PERFECT)).mean(axis=1)
    serves = (left.max(axis=1) <= WORST) & ~differs
    candidate = choice.candidates[int(np.argmin(np.where(serves, mean, np.inf)))]
    return draws.fitted(candidate), candidate, choice.held.note
