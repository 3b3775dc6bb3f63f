"""Exact least squares for linear families, with cross-fitting from one factorisation."""

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import cast

import equinox as eqx
import jax
import numpy as np

from .._numerics import cholesky, inverse_triangular, namespace, whitening
from .._show import counted
from .._types import AnyArray, Key, OtherPoints, Points, PyTree, Values
from ..families import AbstractLinearFamily
from ..objectives import AbstractPenalty, MeanSquare, NativeNorm, NoPenalty
from ._base import AbstractSolver, Problem, Solution, Weights, linear_solution
from ._regression import (
    LEVERAGE,
    Blocks,
    Folds,
    HeldOut,
    Regression,
    fold_rows,
    orthonormal,
    scaled,
    unfolded,
)

# Parts of a column's length that are new: the least, and a part that one projection computes accurately.
SAME, MUCH = 1e-9, 0.1


class Term(eqx.Module):
    r"""One term of a linear problem, in units in which the loss is a plain sum of squares.

    The problem $\frac1m \sum_i r_i^2 + \lambda \Omega(\theta)$ is $\sum_i r_i^2 + m \lambda
    \Omega(\theta)$, so `weight` is $m \lambda$ (times the penalty factor of the objective).
    """

    family: AbstractLinearFamily
    state: PyTree
    penalty: AbstractPenalty
    weight: AnyArray
    back: AnyArray | None = None  # whitens the columns; None to compute it from the draws

    @property
    def is_free(self) -> bool:
        """Whether the coefficients have no penalty."""
        return isinstance(self.penalty, NoPenalty)

    @property
    def has_kernel(self) -> bool:
        """Whether the coefficients have a penalty, so that the term is the span of a kernel."""
        return not isinstance(self.penalty, (NoPenalty, MeanSquare))

    def has_own_norm(self, dim: int) -> bool:
        """Whether the penalty is the family's norm, whose kernel often has a closed form."""
        if isinstance(self.penalty, NativeNorm):
            return True
        return self.gram(dim) is None and self.family.gram(self.state) is None

    def size(self, dim: int) -> int:
        """The number of coefficients."""
        return self.family.size(self.state, dim)

    def gram(self, dim: int) -> AnyArray | None:
        """The matrix of the penalty, without its strength; None for the identity."""
        return self.penalty.gram(self.family, self.state, dim)

    def form(self, dim: int) -> np.ndarray:
        """The matrix of the penalty with its strength, (p, p)."""
        gram = self.gram(dim)
        return float(self.weight) * (np.eye(self.size(dim)) if gram is None else np.asarray(gram))

    def kernel(self, x: Points, score_x: Points, y: OtherPoints, score_y: OtherPoints) -> AnyArray:
        r"""The kernel $\psi(x)^\top \Omega^{-1} \psi(y) / m \lambda$ of a penalised term."""
        if self.has_own_norm(x.shape[1]):
            gram = self.family.cross_gram(self.state, x, score_x, y, score_y)
        else:
            features = self.family.feature_matrix(self.state, x, score_x)
            gram = features @ self._divide(self.family.feature_matrix(self.state, y, score_y).T, y)
        return gram / self.weight

    def from_dual(self, x: Points, score: Points, dual: Values) -> AnyArray:
        """The coefficients of a combination of the kernel's translates."""
        if self.has_own_norm(x.shape[1]):
            return self.family.from_dual(self.state, x, score, dual) / self.weight
        return self._divide(self.family.adjoint(self.state, x, score, dual), x) / self.weight

    def _divide(self, columns: AnyArray, x: OtherPoints) -> AnyArray:
        gram, xp = self.gram(x.shape[1]), namespace(columns)
        return columns if gram is None else xp.linalg.solve(xp.asarray(gram), columns)


def kernel_of(
    terms: tuple[Term, ...], x: Points, score_x: Points, y: OtherPoints, score_y: OtherPoints
) -> AnyArray:
    """The kernel of several penalised terms together, (n, m)."""
    parts = [term.kernel(x, score_x, y, score_y) for term in terms]
    return sum(parts[1:], parts[0])


class TermColumns(eqx.Module):
    r"""The columns $A$ of a term, scaled so that its penalty is $\|w\|^2$; unscaled if it has none.

    `back` maps $w$ to the term's own coefficients: a matrix or a number.
    """

    matrix: AnyArray
    back: AnyArray

    def coefficients(self, w: AnyArray) -> AnyArray:
        """Map the coefficients $w$ of the columns to those of the term."""
        return self.back * w if self.back.ndim == 0 else self.back @ w


def term_columns(term: Term, x: Points, score: Points) -> TermColumns:
    """All features of a term, whitened by its own norm."""
    features = term.family.feature_matrix(term.state, x, score)
    xp = namespace(features)
    if term.is_free:
        return TermColumns(features, xp.ones((), dtype=features.dtype))
    back = term.back
    if back is None:
        scale = xp.asarray(1 / xp.sqrt(xp.asarray(term.weight)))
        is_mean_square = isinstance(term.penalty, MeanSquare)
        gram = features.T @ features / x.shape[0] if is_mean_square else term.gram(x.shape[1])
        back = scale if gram is None else whitening(xp.asarray(gram)) * scale
    return TermColumns(features * back if back.ndim == 0 else features @ back, back)


def gather_coefficients(
    terms: tuple[Term, ...],
    x: Points,
    score: Points,
    primal: AnyArray,
    dual: AnyArray,
    by_dual: tuple[bool, ...] | None = None,
) -> AnyArray:
    """Collect the coefficients of all terms, from those of columns and of the kernel.

    Args:
        terms: in order.
        x: the points that the kernel is centred on.
        score: the scores at these points.
        primal: the coefficients of terms that have columns, one term below the other.
        dual: the coefficients of the kernel's translates to the points.
        by_dual: which terms use the kernel; by default all that have a penalty.
    """
    parts, offset = [], 0
    by_dual = tuple(not term.is_free for term in terms) if by_dual is None else by_dual
    for term, uses_kernel in zip(terms, by_dual, strict=True):
        if uses_kernel:
            parts.append(term.from_dual(x, score, dual))
        else:
            size = term.size(x.shape[1])
            parts.append(primal[offset : offset + size])
            offset += size
    return namespace(*parts).concat(parts, axis=0)


def linear_terms(problem: Problem, count: float | None = None) -> tuple[Term, ...]:
    """Set up the terms of a problem whose family is linear.

    Args:
        problem: with the draws that the family is set up on.
        count: the number of draws $m$ in the objective's mean; all by default, fewer if some are to be
            held out later.
    """
    check_linear(problem)
    _check_quadratic(problem)
    m = problem.x.shape[0] if count is None else count
    factor = m * problem.objective.penalty_factor(m)
    pairs = zip(problem.family.terms, problem.penalties, strict=True)
    return tuple(
        Term(
            cast(AbstractLinearFamily, term),
            term.setup(problem.x, problem.score),
            penalty,
            namespace(problem.x).asarray(penalty.strength * factor),
        )
        for term, penalty in pairs
    )


def check_linear(problem: Problem) -> None:
    """Refuse a family that is not linear in its parameters."""
    if not isinstance(problem.family, AbstractLinearFamily):
        raise TypeError(
            f"{type(problem.family).__name__} is not linear in its parameters, so there is no linear "
            "system to solve: use the Stochastic solver."
        )


def not_quadratic(problem: Problem) -> str | None:
    """The name of a loss or penalty that is not a quadratic form; None if all are."""
    forms = (problem.objective, *problem.penalties)
    return next((type(form).__name__ for form in forms if not form.is_quadratic), None)


def _check_quadratic(problem: Problem) -> None:
    name = not_quadratic(problem)
    if name is None:
        return
    alternative = "objective=LeastSquares()"
    if problem.objective.is_quadratic:
        alternative = "a penalty such as Ridge or NativeNorm"
    raise TypeError(
        f"{name} is not declared as a quadratic form, so there is no linear system to solve: use the "
        f"Stochastic solver, in fit or estimate with a Sample in memory, or {alternative}. If it is a "
        "quadratic form, set is_quadratic = True in its class."
    )


def unknowns(problem: Problem) -> tuple[int, int]:
    """Count the coefficients of a linear problem, and those of them without a penalty."""
    check_linear(problem)
    points = (problem.x, problem.score)
    total, free = 0, 0
    for term, penalty in zip(problem.family.terms, problem.penalties, strict=True):
        state = jax.eval_shape(term.setup, *points)
        size = term.size(state, problem.x.shape[1])  # type: ignore[attr-defined]
        total += size
        free += size if isinstance(penalty, NoPenalty) else 0
    return total, free


def has_mean_square(problem: Problem) -> bool:
    """Whether a penalty is on the values of g, which has no dual form."""
    return any(isinstance(penalty, MeanSquare) for penalty in problem.penalties)


class Exact(AbstractSolver):
    r"""The exact minimiser for a linear family, by one factorisation.

    In dual form there is one unknown per draw, in primal form one per coefficient; the smaller is
    taken, at a cost of $O(\min(n, p)^3 + n p \min(n, p))$ for all integrands together.
    Cross-fitting needs no refit: see `docs/math.md`.

    Args:
        dual: True or False to decide the form; by default the smaller one.
        sigma: of a control functional with the kernel $k_0 + \sigma^2$, in units of the integrands: the
            intercept $c$ has the penalty $\lambda c^2 / \sigma^2$, where $\lambda$ is that of the kernel.
            Infinite by default: no penalty.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 100, 2))
    >>> sx.fit(lambda x: x[0] ** 2, sx.Sample(x, -x), sx.Polynomial(2), solver=Exact())
    ControlVariate(Polynomial(2), 1 integrand, exact, primal: 5 coefficients, 400 draws)
    """

    dual: bool | None = eqx.field(static=True, default=None)
    sigma: float = eqx.field(static=True, default=math.inf)

    def __check_init__(self) -> None:
        if not self.sigma > 0:
            raise ValueError(
                f"sigma is {self.sigma}: it must be positive; math.inf means no penalty."
            )

    def solve(self, problem: Problem, key: Key | None = None) -> Solution:
        dual_form, note = self.plan(problem, problem.x.shape[0])
        terms = linear_terms(problem)
        system = LinearSystem.of(terms, problem, dual_form, self.sigma)
        intercept, coef = system.solve(problem.f)
        return linear_solution(problem, system.states, coef, intercept, note)

    def crossfit(self, problem: Problem, folds: Folds, key: Key | None = None) -> HeldOut:
        return self.crossfitted(problem, folds).leave_out(problem.f)

    def crossfitted(self, problem: Problem, folds: Folds) -> "CrossFitted":
        """Factorise the cross-fit of a problem, for any integrands."""
        largest = max(stop - start for start, stop in folds)
        n = problem.x.shape[0]
        dual_form, note = self.plan(problem, n - largest)
        if one_factorisation(problem):
            terms = linear_terms(problem, count=n - n / len(folds))
            regression = LinearSystem.of(terms, problem, dual_form, self.sigma).regression
            return CrossFitted((regression,), folds, note, problem.draw)
        regressions = (_without(problem, dual_form, fold, self.sigma) for fold in folds)
        return CrossFitted(tuple(regressions), folds, note, problem.draw)

    def plan(self, problem: Problem, train: int) -> tuple[bool, str]:
        """Decide whether to fit `train` draws in dual form, and describe the fit in a note."""
        p, free = unknowns(problem)
        primal_only = has_mean_square(problem)
        dual_form = p + 1 > train if self.dual is None else self.dual
        if free + 1 >= train:
            raise ValueError(
                f"{free} coefficients without a penalty cannot be found from {train} draws: give "
                "that term a penalty, such as NativeNorm(1e-3), or use a lower degree."
            )
        if primal_only and self.dual:
            raise ValueError("MeanSquare has no dual form: use Exact(), or another penalty.")
        sizes = f"{counted(p, 'coefficient')}, {counted(train, 'draw')}"
        if dual_form and not primal_only:
            return True, f"exact, dual: {sizes}"
        return False, f"exact, primal: {sizes}"


def one_factorisation(problem: Problem) -> bool:
    """Whether one factorisation serves all folds: only the data depend on the training draws.

    A mean square of g is a mean over the training draws, and a function centred on a held-out draw depends
    on that draw. A control functional penalised by its own norm gives such centres no weight.
    """
    if has_mean_square(problem):
        return False
    pairs = zip(problem.family.terms, problem.penalties, strict=True)
    return all(
        not term.centres_on_draws or (term.is_whole_space and isinstance(penalty, NativeNorm))
        for term, penalty in pairs
        if isinstance(term, AbstractLinearFamily)
    )


@dataclass(frozen=True)
class LinearSystem:
    """The regression of a linear problem, with the map back to the family's coefficients.

    Attributes:
        regression: on the columns of terms without a penalty, and on the kernel or the whitened columns
            of the penalised terms.
        terms: the family's terms, set up.
        parts: the columns of each term in primal form; None in dual form.
        points: the draws and scores.
    """

    regression: Regression
    terms: tuple[Term, ...]
    parts: tuple[TermColumns, ...] | None
    points: tuple[AnyArray, AnyArray]

    @staticmethod
    def of(
        terms: tuple[Term, ...], problem: Problem, dual_form: bool, sigma: float = math.inf
    ) -> "LinearSystem":
        """Build and factorise the system on the draws of a problem."""
        x, score = problem.x, problem.score
        if dual_form and not all(term.is_free for term in terms):
            free = _joined([t.family.feature_matrix(t.state, x, score) for t in terms if t.is_free])
            penalised = tuple(term for term in terms if not term.is_free)
            kernel = kernel_of(penalised, x, score, x, score)
            regression = _regression(free, kernel, None, problem.weights, terms, sigma)
            return LinearSystem(regression, terms, None, (x, score))
        parts = tuple(term_columns(term, x, score) for term in terms)
        pairs = list(zip(terms, parts, strict=True))
        free = _joined([columns.matrix for term, columns in pairs if term.is_free])
        penalised = _joined([columns.matrix for term, columns in pairs if not term.is_free])
        regression = _regression(free, None, penalised, problem.weights, terms, sigma)
        return LinearSystem(regression, terms, parts, (x, score))

    @property
    def states(self) -> tuple:
        """The state of every term."""
        return tuple(term.state for term in self.terms)

    def solve(self, f: Values) -> tuple[AnyArray, AnyArray]:
        """Compute the intercepts (k,), and the coefficients of all terms one below the other (p, k)."""
        fit = self.regression.solve(_all_rows(f, self.regression))
        if self.parts is None:
            assert fit.kernel is not None
            return fit.intercept, gather_coefficients(
                self.terms, *self.points, fit.columns, fit.kernel[: len(f)]
            )
        blocks, offsets = [], {True: 0, False: 0}
        for term, columns in zip(self.terms, self.parts, strict=True):
            coef, start = fit.columns if term.is_free else fit.features, offsets[term.is_free]
            offsets[term.is_free] = stop = start + columns.matrix.shape[1]
            blocks.append(columns.coefficients(coef[start:stop]))
        return fit.intercept, namespace(*blocks).concat(blocks, axis=0)


def _joined(parts: list[AnyArray]) -> AnyArray | None:
    return namespace(*parts).concat(parts, axis=1) if parts else None


def _regression(
    free: AnyArray | None,
    kernel: AnyArray | None,
    features: AnyArray | None,
    weights: Weights,
    terms: tuple[Term, ...],
    sigma: float,
) -> Regression:
    r"""Build the regression, with a row below for a finite $\sigma$.

    The penalty $\lambda c^2 / \sigma^2$ is the square of a row in which all is zero but the intercept.
    """
    if math.isinf(sigma):
        return Regression(free, kernel, features, weights=weights)
    strengths = [term.weight for term in terms if not term.is_free]
    if len(strengths) != 1:
        raise ValueError(
            f"sigma={sigma:g} needs the penalty of one kernel, and {len(strengths)} terms have "
            "a penalty: give one term NativeNorm or Ridge and the others NoPenalty."
        )
    xp = namespace(free, kernel, features)
    given = next(array for array in (free, kernel, features) if array is not None)
    ones = xp.ones(given.shape[0], dtype=given.dtype) if weights is None else weights
    row = xp.reshape(xp.asarray(strengths[0] ** 0.5 / sigma, dtype=given.dtype), (1,))

    def longer(matrix: AnyArray | None) -> AnyArray | None:
        if matrix is None:
            return None
        return xp.concat([matrix, xp.zeros((1, matrix.shape[1]), dtype=matrix.dtype)])

    if kernel is not None:
        kernel = longer(xp.asarray(longer(kernel)).T)
    return Regression(longer(free), kernel, longer(features), weights=xp.concat([ones, row]))


def _all_rows(f: AnyArray, regression: Regression) -> AnyArray:
    """The integrands, zero in the row that a finite sigma adds."""
    if regression.basis.shape[0] == f.shape[0]:
        return f
    xp = namespace(f)
    return xp.concat([f, xp.zeros((1, f.shape[1]), dtype=f.dtype)])


def _without(problem: Problem, dual_form: bool, fold: tuple[int, int], sigma: float) -> Regression:
    """Build the regression whose terms are set up without one fold; the fold's rows come first."""
    start, stop = fold
    others = np.r_[0:start, stop : problem.x.shape[0]]
    train = problem.take(others)
    terms = linear_terms(train)
    if has_mean_square(problem):  # a mean over the training draws
        terms = tuple(replace(t, back=term_columns(t, train.x, train.score).back) for t in terms)
    order = np.r_[start:stop, others]
    return LinearSystem.of(terms, problem.take(order), dual_form, sigma).regression


class Widened(Regression):
    """A regression on columns with a few further columns, at the cost of a few products.

    Args:
        narrow: the regression to widen, without a kernel.
        columns: further columns without a penalty, of the same rows, (n, q).

    >>> x = np.random.default_rng(0).normal(size=(50, 3))
    >>> wide, whole = Widened(Regression(x[:, :2]), x[:, 2:]), Regression(x)
    >>> np.allclose(wide.solve(x[:, :1] ** 2).columns, whole.solve(x[:, :1] ** 2).columns)
    True
    """

    def __init__(self, narrow: Regression, columns: AnyArray):
        cached = ("tau", "_first_row", "pushed")
        vars(self).update({k: v for k, v in vars(narrow).items() if k not in cached})
        rows = scaled(np.asarray(columns), narrow.weights)
        size = np.linalg.norm(rows, axis=0)
        along = np.zeros((narrow.basis.shape[1], rows.shape[1]))
        length = size
        for _ in range(2):
            part = narrow.basis.T @ rows
            rows, along = rows - narrow.basis @ part, along + part
            length = np.linalg.norm(rows, axis=0)
            if (length > MUCH * size).all():  # otherwise rounding needs another pass
                break
        self.further, upper, sound = orthonormal(rows)
        below = np.zeros((len(upper), narrow.upper.shape[1]))
        self.upper = np.block([[narrow.upper, along], [below, upper]])
        self.basis = np.concatenate([narrow.basis, self.further], axis=1)
        self.narrow, self.shared, self.known = narrow, {}, None
        self.free = narrow.free + rows.shape[1]
        self.sound = narrow.sound & sound & (length > SAME * size).all()

    def _made_blocks(self, folds: Folds) -> Blocks:
        r"""Compute the blocks from those of the narrow regression: they are $P_{FF} - q_F q_F^\top$."""
        inside = self.narrow.blocks(folds)
        q = fold_rows(self.further, folds)
        solved = fold_rows(inside.solve(self.further[: folds[-1][1]]), folds)
        factor = cholesky(np.eye(q.shape[-1]) - q.mT @ solved)
        safe = np.min(np.linalg.diagonal(factor)) > LEVERAGE  # False for NaN
        if inside.weak is not None or not safe:
            return super()._made_blocks(folds)
        pushed = solved @ inverse_triangular(factor).mT
        fields = (inside.matrix, inside.factor, inside.inner, None, folds)
        return _WidenedBlocks(*fields, narrow=inside, pushed=pushed)


@dataclass(frozen=True)
class _WidenedBlocks(Blocks):
    r"""Blocks $M - q q^\top$ of a regression with further columns $q$.

    Their inverses are $M^{-1} + w w^\top$ with $w = M^{-1} q\, (1 - q^\top M^{-1} q)^{-1/2}$.
    """

    narrow: Blocks = field(kw_only=True)  # M
    pushed: AnyArray = field(kw_only=True)  # w of each fold, (fold, size, q)

    def solve(self, right: AnyArray) -> AnyArray:
        part = self.pushed @ (self.pushed.mT @ fold_rows(right, self.folds))
        return self.narrow.solve(right) + unfolded(part, self.folds)

    @cached_property
    def diagonal(self) -> AnyArray:
        part = np.sum(self.pushed**2, axis=-1)[..., None]
        return self.narrow.diagonal + unfolded(part, self.folds)[..., 0]


@dataclass(frozen=True)
class CrossFitted:
    """A factorised cross-fit of a linear problem, in which further integrands cost a few products.

    Attributes:
        regressions: one for all folds, or one per fold, in which the rows of the fold come first.
        folds: where each fold starts and stops.
        note: how the regressions are fitted.
        draw: which rows are draws, (n,); None if all are.
    """

    regressions: tuple[Regression, ...]
    folds: Folds
    note: str = ""
    draw: np.ndarray | None = None

    def leave_out(self, f: Values) -> HeldOut:
        """Compute the held-out residual of every draw, from the fit without its fold."""
        whole = _all_rows(f, self.regressions[0])
        draw = self.draw
        if len(whole) > len(f):  # the row of sigma is no draw
            draw = np.append(np.ones(len(f), bool) if draw is None else draw, False)
        if len(self.regressions) == 1:
            held = self.regressions[0].leave_out(whole, self.folds, draw=draw)
            return replace(held, note=self.note)
        held_out = []
        for fit, fold in zip(self.regressions, self.folds, strict=True):
            order, first = self._order(fold, len(whole)), ((0, fold[1] - fold[0]),)
            own = None if draw is None else draw[order]
            held_out.append(fit.leave_out(whole[order], first, draw=own))
        xp = namespace(held_out[0].residual)
        residual, intercepts, variance = (
            xp.concat([getattr(fold_result, name) for fold_result in held_out], axis=0)
            for name in ("residual", "intercepts", "variance")
        )
        return HeldOut(residual, self.note, intercepts, variance, self.folds)

    def averaging(self) -> AnyArray:
        r"""The weights $w$ with which the mean of the residuals is $w^\top f$: (n,)."""
        if len(self.regressions) == 1:
            return self.regressions[0].averaging(self.folds)
        rows = self.regressions[0].basis.shape[0]
        total, total_share = np.zeros(rows), 0.0
        for fit, fold in zip(self.regressions, self.folds, strict=True):
            size = fold[1] - fold[0]
            share = size if fit.weights is None else float(np.sum(np.asarray(fit.weights)[:size]))
            fold_weights = np.asarray(fit.averaging(((0, size),)))
            total[self._order(fold, rows)] += share * fold_weights
            total_share += share
        return total / total_share

    def _order(self, fold: tuple[int, int], rows: int) -> np.ndarray:
        """The indices of the rows of a fold, followed by all others."""
        start, stop = fold
        return np.r_[start:stop, 0:start, stop:rows]
