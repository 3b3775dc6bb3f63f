"""Draws with integrands and folds, and the residuals of candidates on held-out draws."""

import abc
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, cast

import numpy as np

from .._show import describe
from .._types import AnyArray
from ..chains import linearised
from ..data import (
    Integrands,
    Sample,
    autocorrelation_of,
    find_funnel,
    has_families,
    on_the_reals,
    space_families,
    spread_of,
    stacked,
    stacked_weights,
    standardise,
    vectors_of,
)
from ..families import MEMBERS, AbstractLinearFamily, KernelTranslates, Polynomial
from ..kernels import (
    AbstractKernel,
    CoordinatePairs,
    ExponentialDotProduct,
    InverseMultiquadric,
    MedianHeuristic,
    SquaredExponential,
)
from ..operators import Langevin
from ..solvers import (
    Coefficients,
    CrossFitted,
    Folds,
    HeldOut,
    Regression,
    on_draws,
    prepare,
    typical_share,
    unit_weights,
    with_training,
)
from ._candidates import (
    BELIEVED,
    COLUMNS,
    DIMENSIONS,
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
ROWS = 512  # rows of a kernel matrix that are in memory at once, if there are many draws


@dataclass(frozen=True)
class CandidateFit:
    """Residuals of a candidate on held-out draws.

    Attributes:
        candidate: the candidate that was fitted.
        held: its residuals, (n, k), linearised if draws have weights.
        variance: the variance of the residuals, see `held_out_variance`, (k,).
        asked: the integrands whose search led to the candidate, (k,); None for all.
    """

    candidate: Candidate
    held: HeldOut
    variance: np.ndarray
    asked: np.ndarray | None = None

    @property
    def usable(self) -> np.ndarray:
        """The integrands that asked for the candidate and have a finite variance with it, (k,)."""
        finite = np.isfinite(self.variance)
        return finite if self.asked is None else finite & self.asked

    @property
    def open_variance(self) -> np.ndarray:
        """The variance, infinite for integrands that may not use the candidate, (k,)."""
        return np.where(self.usable, self.variance, np.inf)


def side_by_side(fits: Sequence[CandidateFit]) -> CandidateFit:
    """Join fits of a candidate to single integrands into one fit to all integrands."""

    def joined(field: str) -> np.ndarray:
        return np.concatenate([getattr(fit.held, field) for fit in fits], axis=1)

    first, variance = fits[0].held, np.concatenate([fit.variance for fit in fits])
    beside = None if first.beside is None else joined("beside")
    residual, intercepts, without = map(joined, ("residual", "intercepts", "without"))
    held = HeldOut(residual, "", intercepts, folds=first.folds, beside=beside, without=without)
    return CandidateFit(fits[0].candidate, held, variance)


def held_out_variance(residual: AnyArray, expected: AnyArray) -> np.ndarray:
    r"""Compute the variance of residuals, observed or expected, whichever is larger, (k,).

    A handful of draws far from the others causes most of the variance, and among many candidates one
    fits them by luck. The variance that the fit expects does not depend on this luck: with $v_i$ the
    expected variance of draw $i$'s error $e_i$, up to a factor, it is the mean of $e_i^2 / v_i$ times
    the mean of $v_i$. It is limited to three times the observed variance.

    Args:
        residual: the residuals on held-out draws, (n, k).
        expected: the expected variance of each residual, up to a factor, (n,).
    """
    square = (residual - residual.mean(axis=0)) ** 2
    likely = (square / expected[:, None]).mean(axis=0) * expected.mean()
    observed = square.mean(axis=0)
    return likely.clip(observed, BELIEVED * observed)


class AbstractDraws(abc.ABC):
    """Draws to fit candidates to: coordinates, integrands of variance 1, folds, and weights.

    Training points are rows too, in the folds with which they are held out.
    """

    x: AnyArray  # (rows, dim)
    score: AnyArray  # (rows, dim)
    f: np.ndarray  # (rows, k)
    folds: Folds  # of the rows
    weights: np.ndarray | None  # weights of the rows, of mean square 1, (rows,)
    draw: np.ndarray | None  # which rows are draws, (rows,); None if all are
    index: np.ndarray  # positions among the rows that they were thinned from, (rows,)
    order: np.ndarray  # positions among the draws and the training points below them, (rows,)
    straightened = False  # whether a funnel was straightened

    @property
    def size(self) -> int:
        """The number of rows: draws and training points."""
        return len(self.f)

    @property
    def draws(self) -> np.ndarray | slice:
        """The index of the draws among the rows."""
        return slice(None) if self.draw is None else self.draw

    @property
    def draw_folds(self) -> Folds:
        """Where the folds start and stop among the draws."""
        return self.folds if self.draw is None else on_draws(self.folds, self.draw)

    @property
    def draw_weights(self) -> np.ndarray | None:
        """The weights of the draws, (n,)."""
        return None if self.weights is None else self.weights[self.draws]

    @cached_property
    def share(self) -> np.ndarray | None:
        """The share of each row in the spread of residuals, (rows,)."""
        return typical_share(self.x, self.draw)

    @property
    def train(self) -> float:
        """The number of rows outside a fold."""
        return self.size * (1 - 1 / len(self.folds))

    def _order(
        self, f: np.ndarray, weights: np.ndarray | None, folds: Folds, dim: int
    ) -> np.ndarray:
        """Set integrands, weights and folds, and return the order of the rows: that of the folds.

        In few dimensions no more training points are used than leave all rows to a search on all of them.
        """
        n = folds[-1][1]
        most = max(WHOLE - n, n) if dim < DIMENSIONS else None
        order, self.folds, self.draw = with_training(folds, len(f) - n, most)
        self.order = order
        self.f, self.index = f[order], np.arange(len(order))
        self.weights = None if weights is None else unit_weights(weights[order])
        return order

    @abc.abstractmethod
    def columns(self, name: str) -> np.ndarray | None:
        """Compute columns without a penalty, (n, q); None for an empty name."""

    @abc.abstractmethod
    def kernel(self, name: str, factor: float | None) -> tuple[np.ndarray, float]:
        """Compute a kernel matrix on all pairs of draws, and its median variance, infinite on overflow."""

    def thinned(self, count: int, tails: float = 0.0) -> "AbstractDraws":
        """Select about `count` of the rows, a fraction `tails` of them the most extreme ones."""
        far = self._distances() if tails else None
        index, cut = thinned(self.folds, count, tails, far, self.draw)
        subset = copy(self)
        vars(subset).pop("share", None)
        subset.x, subset.score, subset.f = self.x[index], self.score[index], self.f[index]
        subset.weights = None if self.weights is None else self.weights[index]
        subset.draw = None if self.draw is None else self.draw[index]
        subset.index, subset.folds = index, cut
        return subset

    def _distances(self) -> np.ndarray | None:
        """Compute the distance of each draw from the centre, (n,); None in spaces without one."""
        return None

    def plain(self) -> CandidateFit:
        """Return the fit of plain Monte Carlo, whose residuals are f itself."""
        residual = linearised(self.f[self.draws], self.draw_weights)
        mean = np.broadcast_to(residual.mean(axis=0), (len(self.folds), residual.shape[1]))
        variance = np.maximum(residual.var(axis=0), LEAST)
        rows = HeldOut(self.f, "", mean, folds=self.folds).on_draws(self.draw, self.share)
        return CandidateFit(Candidate(), replace(rows, residual=residual), variance)

    def tried(self, candidate: Candidate, held: HeldOut) -> CandidateFit:
        """Return the fit of a candidate, from its residuals on all rows."""
        held, weights = held.on_draws(self.draw, self.share), self.draw_weights
        residual = np.asarray(held.residual)
        expected = np.ones(len(residual)) if held.variance is None else np.asarray(held.variance)
        if weights is not None:
            residual, expected = linearised(residual, weights), expected * weights**2
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            variance = np.maximum(held_out_variance(residual, expected), LEAST)
            if held.beside is not None:
                variance = np.maximum(variance, residual.var(axis=0) + held.excess)
        held = replace(held, residual=residual, intercepts=np.asarray(held.intercepts))
        return CandidateFit(candidate, held, variance)

    def with_columns(self, name: str, dependent: bool = False) -> CandidateFit | None:
        """Fit columns without a penalty; None if they are linearly dependent, unless `dependent`."""
        regression = Regression(self.columns(name), weights=self.weights)
        if not regression.sound and not dependent:
            return None
        return self.tried(Candidate(name), self.leave_out(regression))

    def leave_out(self, regression: Regression) -> HeldOut:
        """Compute the residuals of a regression on all rows, from fits without their folds."""
        return regression.leave_out(self.f, self.folds, draw=self.draw)

    def with_kernel(
        self, kernel: str, factor: float | None, penalties: Iterable[float], columns: Sequence[str]
    ) -> Iterator[CandidateFit]:
        """Fit a kernel with each penalty and each set of columns; each set begins with the one before.

        One factorisation serves all columns. Nothing is fitted if the tails are so heavy that the kernel
        overflows.
        """
        matrix, size = self.kernel(kernel, factor)
        if not np.isfinite(size) or not columns:
            return
        widths = {name: 0 if not name else _width(self.columns(name)) for name in columns}
        widest = max(columns, key=lambda name: widths[name])
        for penalty in penalties:
            regression = Regression(
                self.columns(widest), matrix, penalty=penalty * size, weights=self.weights
            )
            for name in columns:
                held = self.leave_out(regression.first(1 + widths[name]))
                yield self.tried(Candidate(name, kernel, factor, penalty), held)

    def fitted(self, candidate: Candidate) -> CrossFitted:
        """Factorise the cross-fit of a candidate, for any integrands."""
        columns, weights = self.columns(candidate.columns), self.weights
        if not candidate.kernel:
            no_columns = np.zeros((self.size, 0))
            regression = Regression(no_columns if columns is None else columns, weights=weights)
        else:
            matrix, size = self.kernel(candidate.kernel, candidate.factor)
            regression = Regression(
                columns, matrix, penalty=candidate.penalty * size, weights=weights
            )
        return CrossFitted((regression,), self.folds, draw=self.draw)

    @abc.abstractmethod
    def kernel_with(
        self, name: str, factor: float | None, rows: np.ndarray | None, others: Any
    ) -> np.ndarray:
        """Compute the kernel matrix between rows of these draws, all if None, and other draws."""

    def cost(self, kernel: str) -> float:
        """Return the cost of an entry of a kernel's matrix, relative to a fast kernel."""
        return 1.0

    @abc.abstractmethod
    def columns_of(self, name: str, rows: np.ndarray) -> np.ndarray:
        """Compute columns without a penalty on some rows, (rows, q)."""

    def from_part(
        self,
        candidates: Sequence[Candidate],
        train: "AbstractDraws",
        asked: np.ndarray | None = None,
    ) -> Iterator[CandidateFit]:
        """Fit candidates to some of the draws of all folds but one, and use them on all draws of that fold.

        The intercept of a fit is the mean residual of all draws outside the fold. Nothing is fitted if the
        tails are so heavy that the kernel overflows, or if columns without a kernel are linearly dependent.

        Args:
            candidates: candidates with the same kernel, length-scale and penalty, or without a kernel.
            train: the draws to fit to, thinned from these.
            asked: the integrands to fit, (k,); all by default. Others keep their plain residuals.
        """
        name, factor = candidates[0].kernel, candidates[0].factor
        matrix, size = train.kernel(name, factor) if name else (None, 1.0)
        if not np.isfinite(size):
            return
        widths = [_width(train.columns(candidate.columns)) for candidate in candidates]
        widest = candidates[int(np.argmax(widths))]
        regression = Regression(
            train.columns(widest.columns),
            matrix,
            penalty=widest.penalty * size,
            weights=train.weights,
        )
        if not name and not regression.sound:
            return
        selected = np.arange(self.f.shape[1]) if asked is None else np.flatnonzero(asked)
        f = train.f[:, selected]
        fits = [regression.first(1 + width).without_each(f, train.folds) for width in widths]
        residuals = [self.f[:, selected] for _ in candidates]
        sums = [np.zeros((len(self.folds), count)) for count in (1, max(widths), train.size)]
        squares = np.ones(self.size) if self.weights is None else self.weights**2
        squares = squares if self.draw is None else np.where(self.draw, squares, 0.0)
        for fold, rows, inside in self._tiles(train):
            columns = self.columns_of(widest.columns, rows) if widest.columns else None
            kernel = None
            if matrix is not None:
                known = inside is not None
                kernel = matrix[inside] if known else self.kernel_with(name, factor, rows, train)
            for total, values in zip(sums, (np.ones((len(rows), 1)), columns, kernel), strict=True):
                if values is not None:
                    total[fold] += squares[rows] @ values
            for residual, fold_fits in zip(residuals, fits, strict=True):
                residual[rows] -= _predicted(fold_fits[fold], columns, kernel)
        outside = [total.sum(axis=0) - total for total in sums]
        for candidate, residual, fold_fits in zip(candidates, residuals, fits, strict=True):
            whole = self.f.copy()
            means = np.tile(whole[self.draws].mean(axis=0), (len(self.folds), 1))
            whole[:, selected] = residual
            means[:, selected] = self._intercepts(fold_fits, selected, squares, *outside)
            held = HeldOut(whole, "", means, folds=self.folds)
            yield replace(self.tried(candidate, held), asked=asked)

    def _intercepts(
        self,
        fits: Sequence[Coefficients],
        selected: np.ndarray,
        squares: np.ndarray,
        share: np.ndarray,
        columns: np.ndarray,
        kernel: np.ndarray,
    ) -> np.ndarray:
        """Compute the mean residual of each fit on the draws outside its fold, (fold, k).

        Args:
            fits: the fits that leave out one fold each.
            selected: the integrands that are fitted.
            squares: the squared weights of the rows, 0 for training points, (n,).
            share: the number of draws outside each fold, or the sum of their squared weights, (fold, 1).
            columns: the sums of columns over these draws, (fold, q).
            kernel: the sums of the kernel between these draws and the training draws, (fold, train).
        """
        sums = np.stack([squares[i:j] @ self.f[i:j, selected] for i, j in self.folds])
        fitted = [
            _predicted(fit, columns[[i]], kernel[[i]] if fit.kernel is not None else None)
            for i, fit in enumerate(fits)
        ]
        return (sums.sum(axis=0) - sums - np.concatenate(fitted)) / share

    def _tiles(self, train: "AbstractDraws") -> Iterator[tuple[int, np.ndarray, np.ndarray | None]]:
        """Iterate over folds, a few rows of each, and their positions in `train`, None if not in it."""
        for fold, ((first, last), bounds) in enumerate(zip(self.folds, train.folds, strict=True)):
            training = train.index[slice(*bounds)]
            others = np.setdiff1d(np.arange(first, last), training, assume_unique=True)
            for start in range(0, len(training), ROWS):
                inside = np.arange(bounds[0], bounds[1])[start : start + ROWS]
                yield fold, training[start : start + ROWS], inside
            for start in range(0, len(others), ROWS):
                yield fold, others[start : start + ROWS], None


def _predicted(
    fit: Coefficients, columns: np.ndarray | None, kernel: np.ndarray | None
) -> np.ndarray:
    """Predict with the kernel and the first columns of a fit, without its intercept, (rows, k)."""
    width, count = fit.columns.shape
    prediction = np.zeros((1, count)) if kernel is None else kernel @ fit.kernel
    return prediction if columns is None else prediction + columns[:, :width] @ fit.columns


def _rows(rows: np.ndarray | None, x: Any, score: Any) -> tuple[Any, Any]:
    """Select rows of draws and scores; None keeps the arrays, so that a kernel recognises equal sets."""
    return (x, score) if rows is None else (x[rows], score[rows])


def _with_size(matrix: np.ndarray) -> tuple[np.ndarray, float]:
    """Return a kernel's matrix, and its median variance; infinite if it overflows."""
    diagonal = np.diagonal(matrix)
    return matrix, float(np.median(diagonal)) if np.isfinite(diagonal.max()) else np.inf


def _width(columns: np.ndarray | None) -> int:
    return 0 if columns is None else columns.shape[1]


class RealDraws(AbstractDraws):
    """Draws in unbounded coordinates, without funnels and of unit covariance.

    Args:
        sample: the draws and scores.
        f: integrands of variance 1, with or without those of the training points, (rows, k).
        folds: the start and stop of each fold of draws.
    """

    def __init__(self, sample: Sample, f: np.ndarray, folds: Folds):
        training = len(f) > sample.size
        x, score, self.straightened = straightened(sample, training)
        whiten, weights = spread_of(sample)
        seen = x if weights is None else x[: sample.size]
        # without kernels of all coordinates, only penalties of polynomials depend on these
        given = score[: len(seen)] if x.shape[1] < DIMENSIONS else None
        coordinates = standardise(seen, whiten, weights, given)
        order = self._order(f, stacked_weights(sample, training), folds, sample.dim)
        x, score = x[order], score[order]
        # the original coordinates, each of variance 1
        self.frame = standardise(seen, False, weights)
        self.scaled = self.frame(x, score)
        # a straightened funnel mixes the columns
        self.vectors = () if self.straightened else vectors_of(sample.names, MEMBERS)
        self.x, self.score = coordinates(x, score)
        self.median = float(MedianHeuristic()(self.x)) or 1.0  # 1 if most draws are equal
        self._columns: dict[str, np.ndarray] = {}
        self._kernels: dict[tuple[str, float | None], tuple[np.ndarray, float]] = {}

    @property
    def dim(self) -> int:
        return self.x.shape[1]

    def thinned(self, count: int, tails: float = 0.0) -> "RealDraws":
        subset = cast(RealDraws, super().thinned(count, tails))
        subset.scaled = tuple(array[subset.index] for array in self.scaled)
        subset._columns, subset._kernels = {}, {}
        return subset

    def _distances(self) -> np.ndarray:
        return np.linalg.norm(self.x, axis=1)

    def cost(self, kernel: str) -> float:
        return float(self.dim) if kernel == OF_PAIRS else 1.0

    def affords(self, degree: int) -> bool:
        """Return whether a polynomial has at most half as many coefficients as draws outside a fold."""
        return polynomial_size(degree, self.dim) <= self.train / 2

    @property
    def degrees(self) -> tuple[int, ...]:
        """The degrees of the polynomials that may be combined with a kernel."""
        cheap = [degree for degree in (0, 1, 2) if self.affords(degree)]
        cubic = self.affords(3) and polynomial_size(3, self.dim) <= COLUMNS
        return (*cheap, 3) if cubic else tuple(cheap)

    def polynomials(self, degrees: Iterable[int]) -> tuple[str, ...]:
        """Return the names of the polynomials of some degrees that may be combined with a kernel."""
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
        matrix = self._kernels.pop((name, factor), None) or self._matrix(name, factor)
        self._kernels[name, factor] = matrix  # now the most recently used
        while len(self._kernels) * self.size**2 > KEPT_MATRICES:
            self._kernels.pop(next(iter(self._kernels)))
        return matrix

    def _matrix(self, name: str, factor: float | None) -> tuple[np.ndarray, float]:
        return _with_size(self.kernel_with(name, factor, None, self))

    def kernel_with(
        self, name: str, factor: float | None, rows: np.ndarray | None, others: Any
    ) -> np.ndarray:
        if name == OF_PAIRS:
            assert factor is not None
            points = _rows(rows, *self.scaled)
            return CoordinatePairs(factor).stein_matrix(LANGEVIN, *points, *others.scaled)
        points, other_points = _rows(rows, self.x, self.score), (others.x, others.score)
        if factor is None:  # a polynomial with a penalty and more coefficients than draws
            return Polynomial(_degree(name)).cross_gram(None, *points, *other_points)
        kernel = KERNELS[name](factor * self.median)  # type: ignore[call-arg]
        with np.errstate(over="ignore", invalid="ignore"):
            return kernel.stein_matrix(LANGEVIN, *points, *other_points)

    def least_factor(self, kernel: str) -> float:
        r"""Return the shortest length-scale that a kernel may have, over the median distance.

        Functions of `ExponentialDotProduct` grow as fast as $e^{|x|^2 / 2 \ell^2}$. Under a Gaussian of
        unit covariance they have a finite variance only for $\ell^2 > 2$, and for $\ell^2 \le 1$ their
        mean is not zero.
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
    """Draws in a space that has its own families of control variates.

    Args:
        sample: the draws and scores.
        f: integrands of variance 1, with or without those of the training points, (rows, k).
        folds: the start and stop of each fold of draws.
    """

    def __init__(self, sample: Sample, f: np.ndarray, folds: Folds):
        training = len(f) > sample.size
        order = self._order(f, stacked_weights(sample, training), folds, sample.dim)
        self.x, self.score = (array[order] for array in stacked(sample, training))
        self.discrete = sample.space is not None and sample.space.is_discrete
        self.parts: list[tuple[str, str]] = []  # the names of columns and kernel of each family
        self.families: dict[str, AbstractLinearFamily] = {}
        unit = Integrands(
            f[: sample.size].reshape(*sample.draws.shape[:2], -1),
            tuple(map(str, range(f.shape[1]))),
            f[sample.size :] if training else None,
        )
        for family in space_families(sample):
            problem, _ = prepare(unit, sample, family, None, None)
            self.x, self.score = problem.x[order], problem.score[order]
            terms = cast(tuple[AbstractLinearFamily, ...], problem.family.terms)
            kernels = [term for term in terms if isinstance(term, KernelTranslates)]
            others = [term for term in terms if not isinstance(term, KernelTranslates)]
            names = [self._named(_sum(group)) if group else "" for group in (others, kernels)]
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
        self, name: str, factor: float | None, rows: np.ndarray | None, others: Any
    ) -> np.ndarray:
        centres, points = (others.x, others.score), _rows(rows, self.x, self.score)
        return np.asarray(self.families[name].feature_matrix(centres, *points))


def straightened(sample: Sample, training: bool) -> tuple[np.ndarray, np.ndarray, bool]:
    """Transform draws and scores to unbounded coordinates without a funnel; return whether there was one.

    Draws with weights are not searched for a funnel: they are not from the target that may have it.

    Args:
        sample: the draws and scores.
        training: whether to include the training points, below the draws.
    """
    x, score = stacked(sample, training, on_the_reals)
    funnel = find_funnel(x, score) if sample.weights is None else None
    if funnel is None:
        return x, score, False
    x, score = map(np.asarray, funnel(x, score))
    return x, score, True


@dataclass(frozen=True)
class Integration:
    """Integrands on draws, scaled to variance 1 for the fits, with the scales to transform back.

    Attributes:
        draws: the draws, with integrands of variance 1.
        f: the integrands, linearised if draws have weights, (n, k).
        scale: the standard deviation of each integrand, (k,).
        autocorrelation: draws per independent draw, (k,).
    """

    draws: AbstractDraws
    f: np.ndarray
    scale: np.ndarray
    autocorrelation: np.ndarray


def integration(wanted: Integrands, sample: Sample, ess: AnyArray) -> Integration:
    """Scale integrands with given effective sample sizes, (k,), and split the draws into folds.

    The folds depend on the draws only, so that no estimate depends on the other integrands.
    """
    rows = wanted.rows
    f = rows[: sample.size]
    plain = f if sample.weights is None else linearised(f, sample.weights.ravel())
    scale = np.where(np.ptp(f, axis=0) > 0, f.std(axis=0), 1.0)
    autocorrelation = np.fmax(sample.size / np.asarray(ess), 1.0)  # NaN in chains of 3 draws: 1
    split = many_folds(sample.chains, sample.length, autocorrelation_of(sample))
    folds = split.boundaries(sample.chains, sample.length)
    kind = SpaceDraws if has_families(sample) else RealDraws
    return Integration(kind(sample, rows / scale, folds), plain, scale, autocorrelation)


def many_folds(chains: int, length: int, autocorrelation: float) -> CrossFit:
    """Return a split with many folds, but none shorter than the autocorrelation requires."""
    longest = int(length / (SEPARATION * autocorrelation))
    many = FOLDS if chains * length <= WHOLE else 8  # each is then a separate fit
    folds = chains * min(-(-many // chains), max(longest, 1))
    return CrossFit(folds) if folds > 8 else CrossFit()


def thinned(
    folds: Folds,
    count: int,
    tails: float = 0.0,
    far: np.ndarray | None = None,
    draw: np.ndarray | None = None,
) -> tuple[np.ndarray, Folds]:
    """Select about `count` rows, evenly spaced in each fold, and return their indices and folds.

    The selection in a fold depends neither on the order of the chains nor on the draws of other folds.

    Args:
        folds: the start and stop of each fold.
        count: the number of rows to select.
        tails: the fraction of these that are the most extreme ones.
        far: the distance of each row from the centre, (n,).
        draw: which rows are draws, (n,); None if all are. Candidates are judged on draws, so these are
            selected first, up to half of the rows.
    """
    indices, edges, n = [], [0], folds[-1][1]
    for start, stop in folds:
        size = max(round(count * (stop - start) / n), 1)
        near = np.arange(start, stop)
        chosen = near[:0]
        if draw is not None:
            drawn = near[draw[start:stop]]
            chosen = _evenly(drawn, min(len(drawn), max(size // 2, 1)))
            near = np.setdiff1d(near, chosen)
        if far is not None:
            most = min(int(tails * size), size - len(chosen))
            extremes = near[np.argsort(-far[near], kind="stable")[:most]]
            chosen, near = np.concatenate([chosen, extremes]), np.setdiff1d(near, extremes)
        indices.append(np.sort(np.concatenate([chosen, _evenly(near, size - len(chosen))])))
        edges.append(edges[-1] + size)
    return np.concatenate(indices), tuple(pairwise(edges))


def _evenly(rows: np.ndarray, count: int) -> np.ndarray:
    """Select rows that are evenly spaced."""
    return rows[((np.arange(count) + 0.5) * len(rows) / max(count, 1)).astype(int)]


def for_those(fits: Iterable[CandidateFit], asked: np.ndarray) -> Iterator[CandidateFit]:
    """Mark fits as asked for by some integrands only, (k,)."""
    for fit in fits:
        yield replace(fit, asked=asked)
