"""Draws, integrands and folds, and what candidates leave of the integrands on held-out draws."""

import abc
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, cast

import numpy as np

from .._show import describe
from .._types import AnyArray
from ..chains import chain_statistics, linearised
from ..data import Integrands, Sample, find_funnel, standardise
from ..data._sample import has_families, on_the_reals, space_families
from ..families import AbstractLinearFamily, KernelTranslates, Polynomial
from ..fitting import prepare, spread_of
from ..kernels import (
    AbstractKernel,
    ExponentialDotProduct,
    InverseMultiquadric,
    MedianHeuristic,
    SquaredExponential,
)
from ..kernels._pairs import CoordinatePairs
from ..operators import Langevin
from ..solvers import Coefficients, CrossFitted, Folds, HeldOut, Regression
from ..solvers._base import root_of
from ._candidates import (
    BELIEVED,
    COLUMNS,
    DOT_PRODUCT,
    FOLDS,
    KEPT_MATRICES,
    LEAST,
    MULTIQUADRIC,
    NARROWEST,
    OF_PAIRS,
    SEPARATION,
    SQUARED,
    WHOLE,
    Candidate,
    polynomial,
    polynomial_size,
)
from ._splits import CrossFit

KERNELS: dict[str, type[AbstractKernel]] = {
    SQUARED: SquaredExponential,
    MULTIQUADRIC: InverseMultiquadric,
    DOT_PRODUCT: ExponentialDotProduct,
}
LANGEVIN = Langevin()
ROWS = 512  # of a kernel's matrix that are in memory at once, where draws are many


@dataclass(frozen=True)
class Trial:
    """What a candidate leaves of the integrands on held-out draws.

    Attributes:
        candidate: what was tried.
        held: its residuals, (n, k), linearised where draws have weights.
        variance: of the residuals, to reckon with, (k,).
        asked: the integrands whose own search led to it, (k,); None for all.
    """

    candidate: Candidate
    held: HeldOut
    variance: np.ndarray
    asked: np.ndarray | None = None

    @property
    def usable(self) -> np.ndarray:
        """The integrands that may use it, (k,): those that asked for it, if it is finite for them."""
        finite = np.isfinite(self.variance)
        return finite if self.asked is None else finite & self.asked

    @property
    def open_variance(self) -> np.ndarray:
        """The variance, infinite for integrands that may not use it, (k,)."""
        return np.where(self.usable, self.variance, np.inf)


def side_by_side(trials: Sequence[Trial]) -> Trial:
    """One trial of all integrands, from one for each."""
    residual, intercepts = (
        np.concatenate([getattr(trial.held, part) for trial in trials], axis=1)
        for part in ("residual", "intercepts")
    )
    variance = np.concatenate([trial.variance for trial in trials])
    held = HeldOut(residual, "", intercepts, folds=trials[0].held.folds)
    return Trial(trials[0].candidate, held, variance)


def held_out_variance(residual: AnyArray, expected: AnyArray) -> np.ndarray:
    r"""The variance of residuals, (k,), as seen or as expected, whichever is larger.

    A handful of draws far from the others makes most of the variance, and among many candidates
    one hits them by luck. What the fit expects does not know of that luck: with $v_i$ the expected
    variance of draw $i$'s error $e_i$, up to a factor, it is the mean of $e_i^2 / v_i$ times the
    mean of $v_i$. It is believed up to three times of what was seen.

    Args:
        residual: on held-out draws, (n, k).
        expected: what the fit expects, up to a factor, (n,).
    """
    square = (residual - residual.mean(axis=0)) ** 2
    likely = (square / expected[:, None]).mean(axis=0) * expected.mean()
    seen = square.mean(axis=0)
    return likely.clip(seen, BELIEVED * seen)


class AbstractDraws(abc.ABC):
    """Where candidates are tried: coordinates, integrands of variance 1, folds, and weights."""

    x: AnyArray  # (n, dim)
    score: AnyArray  # (n, dim)
    f: np.ndarray  # (n, k)
    folds: Folds
    root: np.ndarray | None  # of the weights of the squares, (n,)
    index: np.ndarray  # where they stand among the draws that they were thinned from, (n,)
    straightened = False  # whether a funnel was

    @property
    def size(self) -> int:
        """The number of draws."""
        return len(self.f)

    @property
    def weights(self) -> np.ndarray | None:
        """Those of the squares, (n,)."""
        return None if self.root is None else self.root**2

    @property
    def train(self) -> float:
        """How many draws a fit sees."""
        return self.size * (1 - 1 / len(self.folds))

    @abc.abstractmethod
    def columns(self, name: str) -> np.ndarray | None:
        """Columns without a penalty, (n, q); None for none."""

    @abc.abstractmethod
    def kernel(self, name: str, factor: float | None) -> tuple[np.ndarray, float]:
        """The matrix of a kernel on all pairs, and its median variance; infinite where it overflows."""

    def thinned(self, count: int, tails: float = 0.0) -> "AbstractDraws":
        """The same with about so many of the draws, a share of them those that lie farthest out."""
        index, cut = thinned(self.folds, count, tails, self._distances() if tails else None)
        made = copy(self)
        made.x, made.score, made.f = self.x[index], self.score[index], self.f[index]
        made.root = None if self.root is None else self.root[index]
        made.index, made.folds = index, cut
        return made

    def _distances(self) -> np.ndarray | None:
        """How far out each draw lies, (n,); None where that means nothing."""
        return None

    def plain(self) -> Trial:
        """Plain Monte Carlo: f itself."""
        residual = linearised(self.f, self.root)
        mean = np.broadcast_to(residual.mean(axis=0), (len(self.folds), residual.shape[1]))
        variance = np.maximum(residual.var(axis=0), LEAST)
        return Trial(Candidate(), HeldOut(residual, "", mean, folds=self.folds), variance)

    def tried(self, candidate: Candidate, held: HeldOut) -> Trial:
        """A candidate, from its residuals."""
        residual = np.asarray(held.residual)
        expected = np.ones(len(residual)) if held.variance is None else np.asarray(held.variance)
        if self.root is not None:
            residual, expected = linearised(residual, self.root), expected * self.root**2
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            variance = np.maximum(held_out_variance(residual, expected), LEAST)
        held = HeldOut(residual, "", np.asarray(held.intercepts), folds=self.folds)
        return Trial(candidate, held, variance)

    def with_columns(self, name: str, dependent: bool = False) -> Trial | None:
        """Columns alone, without a penalty; None where they depend on each other, unless they may."""
        made = Regression(self.columns(name), weights=self.weights)
        if not made.sound and not dependent:
            return None
        return self.tried(Candidate(name), made.leave_out(self.f, self.folds))

    def with_kernel(
        self, kernel: str, factor: float | None, penalties: Iterable[float], columns: Sequence[str]
    ) -> Iterator[Trial]:
        """A kernel at some penalties, with several sets of columns, each of which begins with the one before.

        One factorisation serves all columns. Nothing where the kernel overflows, the tails being too heavy.
        """
        matrix, size = self.kernel(kernel, factor)
        if not np.isfinite(size) or not columns:
            return
        widths = {name: 0 if not name else _width(self.columns(name)) for name in columns}
        widest = max(columns, key=lambda name: widths[name])
        for penalty in penalties:
            made = Regression(
                self.columns(widest), matrix, penalty=penalty * size, weights=self.weights
            )
            for name in columns:
                held = made.first(1 + widths[name]).leave_out(self.f, self.folds)
                yield self.tried(Candidate(name, kernel, factor, penalty), held)

    def fitted(self, candidate: Candidate) -> CrossFitted:
        """One candidate's cross-fit, for any integrands."""
        columns, weights = self.columns(candidate.columns), self.weights
        if not candidate.kernel:
            none = np.zeros((self.size, 0))
            made = Regression(none if columns is None else columns, weights=weights)
        else:
            matrix, size = self.kernel(candidate.kernel, candidate.factor)
            made = Regression(columns, matrix, penalty=candidate.penalty * size, weights=weights)
        return CrossFitted((made,), self.folds)

    @abc.abstractmethod
    def kernel_with(
        self, name: str, factor: float | None, rows: np.ndarray | None, some: Any
    ) -> np.ndarray:
        """The matrix of a kernel between rows of these draws, all if None, and some others of the target."""

    def cost(self, kernel: str) -> float:
        """Of an entry of a kernel's matrix, in units of a fast one's."""
        return 1.0

    @abc.abstractmethod
    def columns_of(self, name: str, rows: np.ndarray) -> np.ndarray:
        """Columns without a penalty of some rows, (rows, q)."""

    def from_part(
        self,
        candidates: Sequence[Candidate],
        train: "AbstractDraws",
        asked: np.ndarray | None = None,
    ) -> Iterator[Trial]:
        """Candidates fitted to some of the draws of all folds but one, and used on all draws of that fold.

        The intercept of a fit is the mean of what it leaves of all draws outside the fold. Nothing is tried
        where the kernel overflows, the tails being too heavy, or columns alone depend on each other.

        Args:
            candidates: with one kernel, length-scale and penalty, or without a kernel.
            train: the draws to fit to, thinned from these.
            asked: the integrands that they are for, (k,); all by default. Others keep their plain residuals.
        """
        name, factor = candidates[0].kernel, candidates[0].factor
        matrix, size = train.kernel(name, factor) if name else (None, 1.0)
        if not np.isfinite(size):
            return
        widths = [_width(train.columns(one.columns)) for one in candidates]
        widest = candidates[int(np.argmax(widths))]
        made = Regression(
            train.columns(widest.columns),
            matrix,
            penalty=widest.penalty * size,
            weights=train.weights,
        )
        if not name and not made.sound:
            return
        some = np.arange(self.f.shape[1]) if asked is None else np.flatnonzero(asked)
        f = train.f[:, some]
        fits = [made.first(1 + width).without_each(f, train.folds) for width in widths]
        residuals = [self.f[:, some] for _ in candidates]
        sums = [np.zeros((len(self.folds), count)) for count in (1, max(widths), train.size)]
        weights = np.ones(self.size) if self.weights is None else self.weights
        for fold, rows, inside in self._tiles(train):
            columns = self.columns_of(widest.columns, rows) if widest.columns else None
            kernel = None
            if matrix is not None:
                known = inside is not None
                kernel = matrix[inside] if known else self.kernel_with(name, factor, rows, train)
            for total, values in zip(sums, (np.ones((len(rows), 1)), columns, kernel), strict=True):
                if values is not None:
                    total[fold] += weights[rows] @ values
            for residual, without in zip(residuals, fits, strict=True):
                residual[rows] -= _predicted(without[fold], columns, kernel)
        outside = [total.sum(axis=0) - total for total in sums]
        for one, residual, without in zip(candidates, residuals, fits, strict=True):
            whole, means = self.f.copy(), np.tile(self.f.mean(axis=0), (len(self.folds), 1))
            whole[:, some] = residual
            means[:, some] = self._intercepts(without, some, weights, *outside)
            held = HeldOut(whole, "", means, folds=self.folds)
            yield replace(self.tried(one, held), asked=asked)

    def _intercepts(
        self,
        fits: Sequence[Coefficients],
        some: np.ndarray,
        weights: np.ndarray,
        share: np.ndarray,
        columns: np.ndarray,
        kernel: np.ndarray,
    ) -> np.ndarray:
        """The mean of what each fit leaves of the draws outside its fold, (fold, k).

        Args:
            fits: those that leave out one fold each.
            some: the integrands that they are for.
            weights: of the draws, (n,).
            share: how many draws there are outside each fold, or the sum of their weights, (fold, 1).
            columns: the sums of columns over these draws, (fold, q).
            kernel: the sums of the kernel between these draws and those fitted to, (fold, train).
        """
        own = np.stack([weights[i:j] @ self.f[i:j, some] for i, j in self.folds])
        fitted = [
            _predicted(fit, columns[[i]], kernel[[i]] if fit.kernel is not None else None)
            for i, fit in enumerate(fits)
        ]
        return (own.sum(axis=0) - own - np.concatenate(fitted)) / share

    def _tiles(self, train: "AbstractDraws") -> Iterator[tuple[int, np.ndarray, np.ndarray | None]]:
        """A fold, a few of its rows, and where these stand in a part if they belong to it."""
        for fold, ((first, last), own) in enumerate(zip(self.folds, train.folds, strict=True)):
            among = train.index[slice(*own)]
            others = np.setdiff1d(np.arange(first, last), among, assume_unique=True)
            for start in range(0, len(among), ROWS):
                inside = np.arange(own[0], own[1])[start : start + ROWS]
                yield fold, among[start : start + ROWS], inside
            for start in range(0, len(others), ROWS):
                yield fold, others[start : start + ROWS], None


def _predicted(
    fit: Coefficients, columns: np.ndarray | None, kernel: np.ndarray | None
) -> np.ndarray:
    """By a fit without its intercept, (rows, k): it has the first of the columns."""
    width, count = fit.columns.shape
    made = np.zeros((1, count)) if kernel is None else kernel @ fit.kernel
    return made if columns is None else made + columns[:, :width] @ fit.columns


def _rows(rows: np.ndarray | None, x: Any, score: Any) -> tuple[Any, Any]:
    """Some rows of draws and scores; for None the arrays themselves, which a kernel knows for one set."""
    return (x, score) if rows is None else (x[rows], score[rows])


def _with_size(matrix: np.ndarray) -> tuple[np.ndarray, float]:
    """A kernel's matrix, and its median variance; infinite where it overflows."""
    own = np.diagonal(matrix)
    return matrix, float(np.median(own)) if np.isfinite(own.max()) else np.inf


def _width(columns: np.ndarray | None) -> int:
    return 0 if columns is None else columns.shape[1]


class RealDraws(AbstractDraws):
    """Draws in coordinates that fill R^d, without funnels and of unit covariance.

    Args:
        sample: the draws and scores.
        f: integrands of variance 1, (n, k).
        folds: where each starts and stops.
    """

    def __init__(self, sample: Sample, f: np.ndarray, folds: Folds):
        x, score, self.straightened = straightened(sample)
        whiten, weights = spread_of(sample)
        single = standardise(x, False, weights)
        # the coordinates not mixed, each of variance 1
        self.scaled = single(x, score)
        self.x, self.score = standardise(x, whiten, weights)(x, score)
        self.f, self.folds, self.root = f, folds, root_of(sample.weights)
        self.index = np.arange(len(f))
        self.median = float(MedianHeuristic()(self.x)) or 1.0  # most draws may be one
        self._columns: dict[str, np.ndarray] = {}
        self._kernels: dict[tuple[str, float | None], tuple[np.ndarray, float]] = {}

    @property
    def dim(self) -> int:
        return self.x.shape[1]

    def thinned(self, count: int, tails: float = 0.0) -> "RealDraws":
        made = cast(RealDraws, super().thinned(count, tails))
        made.scaled = tuple(part[made.index] for part in self.scaled)
        made._columns, made._kernels = {}, {}
        return made

    def _distances(self) -> np.ndarray:
        return np.linalg.norm(self.x, axis=1)

    def cost(self, kernel: str) -> float:
        return float(self.dim) if kernel == OF_PAIRS else 1.0

    def affords(self, degree: int) -> bool:
        """Whether a polynomial without a penalty leaves at least half of the draws to judge it by."""
        return polynomial_size(degree, self.dim) <= self.train / 2

    @property
    def degrees(self) -> tuple[int, ...]:
        """Those of the polynomials that may go with a kernel."""
        cheap = [degree for degree in (0, 1, 2) if self.affords(degree)]
        cubic = self.affords(3) and polynomial_size(3, self.dim) <= COLUMNS
        return (*cheap, 3) if cubic else tuple(cheap)

    def polynomials(self, degrees: Iterable[int]) -> tuple[str, ...]:
        """The names of those polynomials of some degrees that may go with a kernel."""
        return tuple(polynomial(degree) for degree in self.degrees if degree in degrees)

    def columns(self, name: str) -> np.ndarray | None:
        if not name:
            return None
        if name not in self._columns:
            self._columns[name] = self.columns_of(name, np.arange(self.size))
        return self._columns[name]

    def columns_of(self, name: str, rows: np.ndarray) -> np.ndarray:
        return Polynomial(_degree(name)).feature_matrix(None, self.x[rows], self.score[rows])

    def kernel(self, name: str, factor: float | None) -> tuple[np.ndarray, float]:
        known = self._kernels.pop((name, factor), None) or self._matrix(name, factor)
        self._kernels[name, factor] = known  # the last of those that are kept
        while len(self._kernels) * self.size**2 > KEPT_MATRICES:
            self._kernels.pop(next(iter(self._kernels)))
        return known

    def _matrix(self, name: str, factor: float | None) -> tuple[np.ndarray, float]:
        return _with_size(self.kernel_with(name, factor, None, self))

    def kernel_with(
        self, name: str, factor: float | None, rows: np.ndarray | None, some: Any
    ) -> np.ndarray:
        if name == OF_PAIRS:
            assert factor is not None
            points = _rows(rows, *self.scaled)
            return CoordinatePairs(factor).stein_matrix(LANGEVIN, *points, *some.scaled)
        points, others = _rows(rows, self.x, self.score), (some.x, some.score)
        if factor is None:  # a polynomial with a penalty and more coefficients than draws
            return Polynomial(_degree(name)).cross_gram(None, *points, *others)
        kernel = KERNELS[name](factor * self.median)  # type: ignore[call-arg]
        with np.errstate(over="ignore", invalid="ignore"):
            return kernel.stein_matrix(LANGEVIN, *points, *others)

    def least_factor(self, kernel: str) -> float:
        r"""The shortest length-scale that a kernel may have, over the median distance.

        Functions of `ExponentialDotProduct` grow as fast as $e^{|x|^2 / 2 \ell^2}$. Under a Gaussian of
        unit covariance they have a variance for $\ell^2 > 2$ only, and for $\ell^2 \le 1$ not even
        the mean zero.
        """
        if kernel != DOT_PRODUCT:
            return NARROWEST
        return max(float(np.sqrt(2)) / self.median, NARROWEST)


def _sum(families: Sequence[AbstractLinearFamily]) -> AbstractLinearFamily:
    total = families[0]
    for family in families[1:]:
        total = cast(AbstractLinearFamily, total + family)
    return total


def _degree(name: str) -> int:
    return int(name.removeprefix("Polynomial(").removesuffix(")"))


class SpaceDraws(AbstractDraws):
    """Draws of a space that has families of its own.

    Args:
        sample: the draws and scores.
        f: integrands of variance 1, (n, k).
        folds: where each starts and stops.
    """

    def __init__(self, sample: Sample, f: np.ndarray, folds: Folds):
        self.f, self.folds, self.root = f, folds, root_of(sample.weights)
        self.index = np.arange(len(f))
        self.discrete = sample.space is not None and sample.space.is_discrete
        self.parts: list[tuple[str, str]] = []  # the names of columns and kernel of each family
        self.families: dict[str, AbstractLinearFamily] = {}
        unit = Integrands(
            f.reshape(*sample.draws.shape[:2], -1), tuple(map(str, range(f.shape[1])))
        )
        for family in space_families(sample):
            problem, _ = prepare(unit, sample, family, None, None)
            self.x, self.score = problem.x, problem.score
            terms = cast(tuple[AbstractLinearFamily, ...], problem.family.terms)
            kernels = [term for term in terms if isinstance(term, KernelTranslates)]
            others = [term for term in terms if not isinstance(term, KernelTranslates)]
            names = [self._named(_sum(some)) if some else "" for some in (others, kernels)]
            self.parts.append((names[0], names[1]))

    def _named(self, family: AbstractLinearFamily) -> str:
        name = describe(family)
        self.families[name] = family
        return name

    def columns(self, name: str) -> np.ndarray | None:
        return self.columns_of(name, np.arange(self.size)) if name else None

    def columns_of(self, name: str, rows: np.ndarray) -> np.ndarray:
        family, points = self.families[name], (self.x[rows], self.score[rows])
        return np.asarray(family.feature_matrix(family.setup(self.x, self.score), *points))

    def kernel(self, name: str, factor: float | None) -> tuple[np.ndarray, float]:
        return _with_size(self.kernel_with(name, factor, None, self))

    def kernel_with(
        self, name: str, factor: float | None, rows: np.ndarray | None, some: Any
    ) -> np.ndarray:
        centres, points = (some.x, some.score), _rows(rows, self.x, self.score)
        return np.asarray(self.families[name].feature_matrix(centres, *points))


def straightened(sample: Sample) -> tuple[np.ndarray, np.ndarray, bool]:
    """Draws and scores in coordinates without bounds and without a funnel, and whether there was one.

    No funnel is looked for where draws have weights: they are not from the target that may have it.
    """
    free = on_the_reals(sample)
    assert free is not None, "a space without such coordinates has a family of its own"
    x, score = (np.asarray(one, np.float64).reshape(sample.size, -1) for one in free)
    funnel = find_funnel(x, score) if sample.weights is None else None
    if funnel is None:
        return x, score, False
    x, score = map(np.asarray, funnel(x, score))
    return x, score, True


@dataclass(frozen=True)
class Integration:
    """Integrands on the draws, in the units in which candidates are tried, and the way back.

    Attributes:
        draws: with integrands of variance 1.
        f: the integrands, linearised where draws have weights, (n, k).
        scale: the standard deviation of each, (k,).
        autocorrelation: draws per independent draw, (k,).
    """

    draws: AbstractDraws
    f: np.ndarray
    scale: np.ndarray
    autocorrelation: np.ndarray


def integration(wanted: Integrands, sample: Sample, ess: AnyArray) -> Integration:
    """Integrands with their effective sample sizes, (k,), on the draws of a sample.

    The folds are those of the draws, whatever the integrands: no estimate depends on what else was
    asked for.
    """
    f = np.asarray(wanted.values, np.float64).reshape(sample.size, -1)
    plain = f if sample.weights is None else linearised(f, sample.weights.ravel())
    scale = np.where(np.ptp(f, axis=0) > 0, f.std(axis=0), 1.0)
    autocorrelation = np.fmax(sample.size / np.asarray(ess), 1.0)  # NaN in chains of 3 draws: 1
    split = many_folds(sample.chains, sample.length, autocorrelation_of(sample))
    folds = split.boundaries(sample.chains, sample.length)
    kind = SpaceDraws if has_families(sample) else RealDraws
    return Integration(kind(sample, f / scale, folds), plain, scale, autocorrelation)


def autocorrelation_of(sample: Sample) -> float:
    """Draws per independent draw: the median over the columns of draws and scores."""
    columns = np.concatenate([sample.draws, sample.scores], axis=-1, dtype=np.float64)
    ess = chain_statistics(linearised(columns, sample.weights)).ess
    return float(np.median(np.fmax(sample.size / ess, 1.0)))


def many_folds(chains: int, length: int, autocorrelation: float) -> CrossFit:
    """Many folds, so that each fit has nearly all draws, but none shorter than draws depend."""
    longest = int(length / (SEPARATION * autocorrelation))
    many = FOLDS if chains * length <= WHOLE else 8  # each is then a fit of its own
    folds = chains * min(-(-many // chains), max(longest, 1))
    return CrossFit(folds) if folds > 8 else CrossFit()


def thinned(
    folds: Folds, count: int, tails: float = 0.0, far: np.ndarray | None = None
) -> tuple[np.ndarray, Folds]:
    """About so many of the draws, evenly spaced in each fold, and the folds that they make.

    Which ones does not depend on the order of the chains, nor in one fold on the draws of another.

    Args:
        folds: where each starts and stops.
        count: how many draws.
        tails: the share of them that lies farthest out.
        far: how far out each draw lies, (n,).
    """
    some, edges, n = [], [0], folds[-1][1]
    for start, stop in folds:
        mine = max(round(count * (stop - start) / n), 1)
        near = np.arange(start, stop)
        extremes = near[:0]
        if far is not None:
            extremes = start + np.argsort(-far[start:stop], kind="stable")[: int(tails * mine)]
            near = np.setdiff1d(near, extremes)
        even = mine - len(extremes)
        near = near[((np.arange(even) + 0.5) * len(near) / even).astype(int)]
        some.append(np.sort(np.concatenate([extremes, near])))
        edges.append(edges[-1] + mine)
    return np.concatenate(some), tuple(pairwise(edges))


def for_those(trials: Iterable[Trial], asked: np.ndarray) -> Iterator[Trial]:
    """Trials that only some integrands asked for, (k,)."""
    for trial in trials:
        yield replace(trial, asked=asked)
