"""Which candidates are tried: a grid on few draws, a search on more, and what a part chooses on many."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

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
    POLYNOMIAL_PENALTIES,
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
    WHOLE,
    WIDER,
    WIDEST,
    Candidate,
    is_cheap,
    most_draws,
    polynomial,
    train_size,
)
from ._directions import along_directions, bent, directional, of_each_dimension
from ._draws import AbstractDraws, RealDraws, SpaceDraws, Trial, for_those

# A length-scale, the integrands that asked for it, and the least variance that each has with it.
type Seen = tuple[float, np.ndarray, np.ndarray]


def trials(draws: AbstractDraws) -> Iterator[Trial]:
    """Every candidate that is tried, plain Monte Carlo first.

    Nothing more is tried for an integrand once nothing is left of it.

    Args:
        draws: with the integrands.
    """
    best = np.full(draws.f.shape[1], np.inf)
    for trial in _without_kernels(draws):
        yield from noted([replace(trial, asked=best > NOTHING)], best)
        if (best <= NOTHING).all():
            return
    if draws.size < 2 * len(draws.folds):
        return
    open_ = best > NOTHING
    found = with_kernels(draws, best) if draws.size <= WHOLE else _from_part(draws, best)
    for trial in found:
        yield replace(trial, asked=open_ if trial.asked is None else open_ & trial.asked)


def with_kernels(draws: AbstractDraws, best: np.ndarray, tune: bool = True) -> Iterator[Trial]:
    """Candidates with a kernel, tried on all draws.

    Args:
        draws: with the integrands.
        best: the least variance of each integrand without a kernel, (k,).
        tune: whether length-scales and penalties are looked for beyond those that go first; in few
            dimensions they always are.
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
    """The kernels that go first. Without tuning those that take long are fewer."""
    if dim < FEW_DIMENSIONS:
        return SPREAD
    if tune:
        return SPREAD + SPREAD_OF_PAIRS
    smooth = SPREAD if dim < SEVERAL_DIMENSIONS else SPREAD_IN_SEVERAL_DIMENSIONS
    return smooth + PAIRS_OF_PART


def _from_part(draws: AbstractDraws, best: np.ndarray) -> Iterator[Trial]:
    """What serves each integrand best on a part of the draws, fitted to more of them and used on all."""
    part, least = draws.thinned(PART), np.full(len(best), np.inf)
    deque(noted(_without_kernels(part), least), maxlen=0)
    few = isinstance(draws, RealDraws) and draws.dim < FEW_DIMENSIONS
    matrices = MATRICES_IN_FEW_DIMENSIONS if few else MATRICES
    if draws.size > ONE_MATRIX:
        matrices = 1
    found = with_kernels(part, least, tune=False)
    costly = [name for name in DEGREES if draws.cost(name) >= SEVERAL_DIMENSIONS]
    wanted = shortlist(found, GROWS * best, matrices, costly)
    parts: dict[int, AbstractDraws] = {}
    for (kernel, *_), group in groupby(sorted(wanted, key=_factorisation), key=_factorisation):
        size = train_size(draws.size, draws.cost(kernel))
        train = parts[size] = parts.get(size) or draws.thinned(size, TAILS)
        these = list(group)
        asked = np.any([wanted[candidate] for candidate in these], axis=0)
        for trial in draws.from_part(these, train, asked):
            yield replace(trial, asked=wanted[trial.candidate])


def _factorisation(candidate: Candidate) -> tuple[str, float, float]:
    """What candidates have in common that share one."""
    return candidate.kernel, candidate.factor or 0.0, candidate.penalty


def shortlist(
    found: Iterable[Trial], most: np.ndarray, matrices: int, costly: Sequence[str] = ()
) -> dict[Candidate, np.ndarray]:
    """The best candidates of each integrand, and which integrands each is for, (k,).

    Args:
        found: what was tried.
        most: the variance that the best candidate may leave of each integrand, (k,).
        matrices: how many factorisations there may be for an integrand.
        costly: kernels that are taken only for an integrand that they serve best.
    """
    tried = [(trial.candidate, trial.open_variance) for trial in found]
    wanted: dict[Candidate, np.ndarray] = {}
    variance = np.array([one for _, one in tried]).reshape(len(tried), len(most))
    for i in np.flatnonzero(np.min(variance, axis=0, initial=np.inf) <= most):
        picked: dict[tuple[str, float, float], Candidate] = {}
        order = variance[:, i].argsort(kind="stable")
        for j in order[variance[order, i] <= FAR * variance[order[0], i]]:
            if not picked or tried[j][0].kernel not in costly:
                picked.setdefault(_factorisation(tried[j][0]), tried[j][0])
        for candidate in list(picked.values())[:matrices]:
            wanted.setdefault(candidate, np.zeros(len(most), bool))[i] = True
    return wanted


def noted(found: Iterable[Trial], best: np.ndarray) -> Iterator[Trial]:
    """The same trials; the least variance of each integrand is written to an array, (k,)."""
    for trial in found:
        np.minimum(best, trial.open_variance, out=best)
        yield trial


def _without_kernels(draws: AbstractDraws) -> Iterator[Trial]:
    """Plain Monte Carlo, and columns without a penalty, the fewest first."""
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
        yield from _in_many_dimensions(draws)


def _in_many_dimensions(draws: RealDraws) -> Iterator[Trial]:
    """Where a kernel of all coordinates is too coarse: single dimensions, and directions.

    Draws with weights have no directions.
    """
    for degree in range(DEGREE, 1, -1):
        operations = len(draws.folds) * draws.size * (degree * float(draws.dim)) ** 2
        if draws.affords(degree) and is_cheap(degree, draws.size, draws.dim):
            break
        if degree * draws.dim <= draws.train / 2 and operations <= OPERATIONS:
            yield from filter(None, [of_each_dimension(draws, degree)])
            break
    if draws.root is None:
        along = along_directions(draws)
        yield from along
        some = bent(along)
        if some.any() and draws.affords(1):
            yield directional(draws, some)


def _survey(draws: RealDraws) -> Iterator[Trial]:
    """Every candidate of the grids. A length-scale beyond a grid is for the integrands that asked for it."""
    everyone = np.ones(draws.f.shape[1], bool)
    for grid in GRIDS:
        seen: list[Seen] = []
        least = draws.least_factor(grid.kernel)
        waiting = [(factor, everyone) for factor in grid.factors if factor >= least]
        names = draws.polynomials(grid.degrees)
        while waiting:
            factor, asked = waiting.pop(0)
            best = np.full(len(asked), np.inf)
            found = draws.with_kernel(grid.kernel, factor, PENALTIES, names)
            yield from noted(for_those(found, asked), best)
            seen.append((factor, asked, best))
            if not waiting:
                waiting = _beyond(seen, least)


def _beyond(seen: list[Seen], least: float) -> list[tuple[float, np.ndarray]]:
    """The next length-scales, and the integrands whose best lies on the edge of what they tried."""
    if not seen:
        return []
    factors, asked, variance = (np.array(part) for part in zip(*seen, strict=True))
    tried = np.where(asked, factors[:, None], np.nan)
    best = factors[variance.argmin(axis=0)]
    low, high = np.fmin.reduce(tried), np.fmax.reduce(tried)
    shorter = np.where((best == low) & (low / 2 >= least), low / 2, np.nan)
    longer = np.where((best == high) & (2 * high <= WIDEST), 2 * high, np.nan)
    return [
        (float(factor), edge == factor)
        for edge in (shorter, longer)
        for factor in np.unique(edge[np.isfinite(edge)])
    ]


class Search:
    """Candidates with a kernel, on all draws: one factorisation for each that is tried.

    A few that differ widely go first: among them is one not far from the best for most integrands. After that
    each integrand asks for neighbours of what serves it best: a smaller penalty, another length-scale,
    or a larger penalty. Each sees only what it asked for itself, so that its estimate does not depend on
    the other integrands; what several ask for at once is tried once.

    Args:
        draws: all of them.
        best: the least variance of each integrand without a kernel, (k,).
        open_: the integrands of which something is left, (k,).
    """

    def __init__(self, draws: RealDraws, best: np.ndarray, open_: np.ndarray):
        self.draws, self.open = draws, open_
        self.asked: dict[Candidate, np.ndarray] = {}
        self.best = np.log(best)
        self.leading: list[Candidate | None] = [None] * len(best)
        self.move: list[tuple[float, float] | None] = [None] * len(best)  # the last one
        self.came: list[tuple[float, float] | None] = [None] * len(best)  # that led to the best
        self.idle = np.zeros(len(best), int)  # steps in a row that did not help

    def first(self, starts: Iterable[Candidate]) -> Iterator[Trial]:
        """Try what goes first, for all integrands; the columns of these candidates are not looked at."""
        for candidate in filter(self.allows, starts):
            yield from self.step(candidate, self.open.copy())

    def tune(self, more: Iterable[Candidate]) -> Iterator[Trial]:
        """Try what goes next, and then neighbours.

        Args:
            more: what goes next, for integrands of which the first leave much of the variance.
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

    def step(self, candidate: Candidate, asked: np.ndarray) -> Iterator[Trial]:
        """Try a kernel for some integrands, with every polynomial that goes with it."""
        self.asked[candidate] = asked | self.asked.get(candidate, False)
        least = np.full(len(asked), np.inf)
        names = self.draws.polynomials(DEGREES[candidate.kernel])
        found = self.draws.with_kernel(
            candidate.kernel, candidate.factor, (candidate.penalty,), names
        )
        yield from noted(for_those(found, asked), least)
        with np.errstate(divide="ignore"):
            variance = np.log(least)
        for i in np.flatnonzero(variance < self.best):
            self.leading[i], self.came[i] = candidate, self.move[i]
        fall = self.best - np.minimum(self.best, variance)
        self.idle[asked] = np.where(fall > HELPS, 0, self.idle + 1)[asked]
        self.best = np.minimum(self.best, variance)
        self.open &= self.best > np.log(NOTHING)

    def next(self) -> dict[Candidate, np.ndarray]:
        """The next candidates, and the integrands that ask for them, (k,)."""
        wanted: dict[Candidate, np.ndarray] = {}
        for i in np.flatnonzero(self.open & (self.idle < PATIENCE)):
            new = self._next(int(i))
            if new is not None:
                wanted.setdefault(new, np.zeros(len(self.best), bool))[i] = True
        return wanted

    def _next(self, i: int) -> Candidate | None:
        """The neighbour that one integrand asks for; none if its best candidate has no kernel."""
        leading, came = self.leading[i], self.came[i]
        if leading is None:
            return None
        for move in MOVES if came is None else (came, *MOVES):
            new = leading.moved(move)
            if self.allows(new) and not (new in self.asked and self.asked[new][i]):
                self.move[i] = move
                return new
        return None

    def allows(self, candidate: Candidate) -> bool:
        """Whether its functions have a variance, and its penalty is neither too large nor too small."""
        assert candidate.factor is not None
        shortest = self.draws.least_factor(candidate.kernel)
        return candidate.factor >= shortest and LEAST_PENALTY <= candidate.penalty <= 1


def _of_space(draws: SpaceDraws) -> Iterator[Trial]:
    """The kernels of a space at each penalty."""
    penalties = STATE_PENALTIES if draws.discrete else SPACE_PENALTIES
    for columns, kernel in draws.parts:
        if kernel:
            names = ("", columns) if columns else ("",)
            yield from draws.with_kernel(kernel, None, penalties, names)
