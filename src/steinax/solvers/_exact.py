"""Least squares by one factorisation, and every cross-fit of it."""

from dataclasses import dataclass, replace
from typing import cast

import equinox as eqx
import jax
import numpy as np

from .._linalg import namespace, whitening
from .._types import AnyArray, Key, OtherPoints, Points, PyTree, Values
from ..families import AbstractLinearFamily
from ..objectives import AbstractPenalty, MeanSquare, NativeNorm, NoPenalty
from ._base import AbstractSolver, Problem, Solution, linear_solution
from ._regression import Folds, HeldOut, Regression


class Term(eqx.Module):
    r"""One term of a linear problem, in units in which the loss is a plain sum of squares.

    The problem $\frac1m \sum_i r_i^2 + \lambda \Omega(\theta)$ is $\sum_i r_i^2 + m \lambda
    \Omega(\theta)$, so `weight` is $m \lambda$ (times what the objective makes of it).
    """

    family: AbstractLinearFamily
    state: PyTree
    penalty: AbstractPenalty
    weight: AnyArray
    back: AnyArray | None = None  # what whitens its columns, where that is known from other draws

    @property
    def is_free(self) -> bool:
        """Whether nothing holds the coefficients back."""
        return isinstance(self.penalty, NoPenalty)

    @property
    def has_kernel(self) -> bool:
        """Whether a penalty on the coefficients holds it, so that it is the span of a kernel."""
        return not isinstance(self.penalty, (NoPenalty, MeanSquare))

    def size(self, dim: int) -> int:
        """The number of coefficients."""
        return self.family.size(self.state, dim)

    def gram(self, dim: int) -> AnyArray | None:
        """The matrix of the penalty, without its strength; None if it is 1."""
        return self.penalty.gram(self.family, self.state, dim)

    def form(self, dim: int) -> np.ndarray:
        """The matrix of the penalty with its strength, (p, p)."""
        gram = self.gram(dim)
        return float(self.weight) * (np.eye(self.size(dim)) if gram is None else np.asarray(gram))

    def kernel(self, x: Points, score_x: Points, y: OtherPoints, score_y: OtherPoints) -> AnyArray:
        r"""The kernel $\psi(x)^\top \Omega^{-1} \psi(y) / m \lambda$ of a penalised term."""
        if isinstance(self.penalty, NativeNorm):
            gram = self.family.cross_gram(self.state, x, score_x, y, score_y)
        else:
            left = self.family.feature_matrix(self.state, x, score_x)
            gram = left @ self._divide(self.family.feature_matrix(self.state, y, score_y).T, y)
        return gram / self.weight

    def from_dual(self, x: Points, score: Points, dual: Values) -> AnyArray:
        """The coefficients of a combination of the kernel's translates."""
        if isinstance(self.penalty, NativeNorm):
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


class Columns(eqx.Module):
    r"""Columns $A$ of a term in units of its penalty, which is then $\|w\|^2$: none, for a free one.

    `back` takes $w$ to the term's own coefficients, a matrix or a number.
    """

    matrix: AnyArray
    back: AnyArray

    def coefficients(self, w: AnyArray) -> AnyArray:
        """The term's own coefficients."""
        return self.back * w if self.back.ndim == 0 else self.back @ w


def columns(term: Term, x: Points, score: Points) -> Columns:
    """All features of a term, whitened by its own norm."""
    features = term.family.feature_matrix(term.state, x, score)
    xp = namespace(features)
    if term.is_free:
        return Columns(features, xp.ones((), dtype=features.dtype))
    back = term.back
    if back is None:
        scale = xp.asarray(1 / xp.sqrt(xp.asarray(term.weight)))
        square = isinstance(term.penalty, MeanSquare)
        gram = features.T @ features / x.shape[0] if square else term.gram(x.shape[1])
        back = scale if gram is None else whitening(xp.asarray(gram)) * scale
    return Columns(features * back if back.ndim == 0 else features @ back, back)


def gather(
    terms: tuple[Term, ...],
    x: Points,
    score: Points,
    own: AnyArray,
    dual: AnyArray,
    by_dual: tuple[bool, ...] | None = None,
) -> AnyArray:
    """The coefficients of all terms, from those of columns and of the kernel.

    Args:
        terms: in order.
        x: the points that the kernel is taken at.
        score: there.
        own: the coefficients of terms that have columns, one term below the other.
        dual: the coefficients of the kernel's translates to the points.
        by_dual: which terms go by the kernel; by default all that a penalty holds.
    """
    parts, used = [], 0
    by_dual = tuple(not term.is_free for term in terms) if by_dual is None else by_dual
    for term, dually in zip(terms, by_dual, strict=True):
        if dually:
            parts.append(term.from_dual(x, score, dual))
        else:
            size = term.size(x.shape[1])
            parts.append(own[used : used + size])
            used += size
    return namespace(*parts).concat(parts, axis=0)


def linear_terms(problem: Problem, count: float | None = None) -> tuple[Term, ...]:
    """The terms of a problem whose family is linear.

    Args:
        problem: with the draws that the family is set up on.
        count: the number of draws $m$ in the objective's mean; all of them, unless some are to be
            held out later.
    """
    check_linear(problem)
    _check_quadratic(problem)
    m = problem.x.shape[0] if count is None else count
    factor = m * problem.objective.penalty_factor(m)
    each = zip(problem.family.terms, problem.penalties, strict=True)
    return tuple(
        Term(
            cast(AbstractLinearFamily, term),
            term.setup(problem.x, problem.score),
            penalty,
            namespace(problem.x).asarray(penalty.strength * factor),
        )
        for term, penalty in each
    )


def check_linear(problem: Problem) -> None:
    """Refuse a family that has no linear system."""
    if not isinstance(problem.family, AbstractLinearFamily):
        raise TypeError(
            f"{type(problem.family).__name__} is not linear in its parameters, so there is no linear "
            "system to solve: use the Stochastic solver."
        )


def not_quadratic(problem: Problem) -> str | None:
    """The name of a loss or penalty that is no quadratic form, so that there is no linear system."""
    parts = (problem.objective, *problem.penalties)
    return next((type(part).__name__ for part in parts if not part.is_quadratic), None)


def _check_quadratic(problem: Problem) -> None:
    name = not_quadratic(problem)
    if name is None:
        return
    instead = "objective=LeastSquares()"
    if problem.objective.is_quadratic:
        instead = "a penalty such as Ridge or NativeNorm"
    raise TypeError(
        f"{name} is not declared as a quadratic form, so there is no linear system to solve: use the "
        f"Stochastic solver, in fit or estimate with a Sample in memory, or {instead}. If it is a quadratic "
        "form, set is_quadratic = True in its class."
    )


def unknowns(problem: Problem) -> tuple[int, int]:
    """How many coefficients a linear problem has, and how many of them are free of penalty."""
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
    """Whether a penalty is on the values of g, which only the primal form knows."""
    return any(isinstance(penalty, MeanSquare) for penalty in problem.penalties)


class Exact(AbstractSolver):
    r"""The exact minimiser for a linear family, by one factorisation.

    In dual form there is one unknown per draw, in primal form one per coefficient; the smaller is
    taken, at a cost of $O(\min(n, p)^3 + n p \min(n, p))$ for all integrands together.
    Cross-fitting needs no refit: see `docs/math.md`.

    Args:
        dual: True or False to decide the form; by default the smaller one.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 100, 2))
    >>> sx.fit(lambda x: x[0] ** 2, sx.Sample(x, -x), sx.Polynomial(2), solver=Exact())
    ControlVariate(Polynomial(2), 1 integrand, exact, primal: 5 coefficients, 400 draws)
    """

    dual: bool | None = eqx.field(static=True, default=None)

    def solve(self, problem: Problem, key: Key | None = None) -> Solution:
        dual_form, note = self.plan(problem, problem.x.shape[0])
        terms = linear_terms(problem)
        system = LinearSystem.of(terms, problem, dual_form)
        intercept, coef = system.solve(problem.f)
        return linear_solution(problem, system.states, coef, intercept, note)

    def crossfit(self, problem: Problem, folds: Folds, key: Key | None = None) -> HeldOut:
        return self.crossfitted(problem, folds).leave_out(problem.f)

    def crossfitted(self, problem: Problem, folds: Folds) -> "CrossFitted":
        """The cross-fit of a problem, factorised, for any integrands."""
        largest = max(stop - start for start, stop in folds)
        n = problem.x.shape[0]
        dual_form, note = self.plan(problem, n - largest)
        if one_factorisation(problem):
            terms = linear_terms(problem, count=n - n / len(folds))
            whole = LinearSystem.of(terms, problem, dual_form).regression
            return CrossFitted((whole,), folds, note)
        each = (_without(problem, dual_form, fold) for fold in folds)
        return CrossFitted(tuple(each), folds, note)

    def plan(self, problem: Problem, train: int) -> tuple[bool, str]:
        """Whether the dual form is taken for so many draws to fit to, and a note that says so."""
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
        sizes = f"{p} coefficients, {train} draws"
        if dual_form and not primal_only:
            return True, f"exact, dual: {sizes}"
        return False, f"exact, primal: {sizes}"


def one_factorisation(problem: Problem) -> bool:
    """Whether leaving draws out of the data leaves them out of everything else too.

    A mean square of g is a mean over the training draws; a function centred on a held-out draw would know
    where it is used. In its own norm a control functional gives such centres no weight.
    """
    if has_mean_square(problem):
        return False
    each = zip(problem.family.terms, problem.penalties, strict=True)
    return all(
        not term.centres_on_draws or (term.is_whole_space and isinstance(penalty, NativeNorm))
        for term, penalty in each
        if isinstance(term, AbstractLinearFamily)
    )


@dataclass(frozen=True)
class LinearSystem:
    """The regression of a problem whose family is linear, and the way back to the family's coefficients.

    Attributes:
        regression: on the columns of terms without a penalty, and on the kernel or the whitened columns
            of others.
        terms: of the family, set up.
        parts: the columns of each term in primal form; None in dual form.
        points: the draws and scores.
    """

    regression: Regression
    terms: tuple[Term, ...]
    parts: tuple[Columns, ...] | None
    points: tuple[AnyArray, AnyArray]

    @staticmethod
    def of(terms: tuple[Term, ...], problem: Problem, dual_form: bool) -> "LinearSystem":
        """Build and factorise the system on the draws of a problem."""
        x, score = problem.x, problem.score
        weights = None if problem.root is None else problem.root**2
        if dual_form and not all(term.is_free for term in terms):
            free = _joined([t.family.feature_matrix(t.state, x, score) for t in terms if t.is_free])
            held = tuple(term for term in terms if not term.is_free)
            made = Regression(free, kernel_of(held, x, score, x, score), weights=weights)
            return LinearSystem(made, terms, None, (x, score))
        parts = tuple(columns(term, x, score) for term in terms)
        each = list(zip(terms, parts, strict=True))
        free = _joined([part.matrix for term, part in each if term.is_free])
        held = _joined([part.matrix for term, part in each if not term.is_free])
        made = Regression(free, features=held, weights=weights)
        return LinearSystem(made, terms, parts, (x, score))

    @property
    def states(self) -> tuple:
        """The state of every term."""
        return tuple(term.state for term in self.terms)

    def solve(self, f: Values) -> tuple[AnyArray, AnyArray]:
        """The intercepts (k,), and the coefficients of all terms one below the other (p, k)."""
        found = self.regression.solve(f)
        if self.parts is None:
            return found.intercept, gather(self.terms, *self.points, found.columns, found.kernel)
        done, used = [], {True: 0, False: 0}
        for term, part in zip(self.terms, self.parts, strict=True):
            coef, start = found.columns if term.is_free else found.features, used[term.is_free]
            used[term.is_free] = stop = start + part.matrix.shape[1]
            done.append(part.coefficients(coef[start:stop]))
        return found.intercept, namespace(*done).concat(done, axis=0)


def _joined(parts: list[AnyArray]) -> AnyArray | None:
    return namespace(*parts).concat(parts, axis=1) if parts else None


def _without(problem: Problem, dual_form: bool, fold: tuple[int, int]) -> Regression:
    """The regression whose terms are set up without one fold: its rows first, then all others."""
    start, stop = fold
    others = np.r_[0:start, stop : problem.x.shape[0]]
    train = problem.take(others)
    terms = linear_terms(train)
    if has_mean_square(problem):  # a mean over the draws that are fitted to
        terms = tuple(replace(t, back=columns(t, train.x, train.score).back) for t in terms)
    order = np.r_[start:stop, others]
    return LinearSystem.of(terms, problem.take(order), dual_form).regression


@dataclass(frozen=True)
class CrossFitted:
    """A cross-fit of a linear problem, factorised: further integrands cost a few products.

    Attributes:
        regressions: one for all folds, or one for each, in which its rows come first.
        folds: where each starts and stops.
        note: how it is fitted.
    """

    regressions: tuple[Regression, ...]
    folds: Folds
    note: str = ""

    def leave_out(self, f: Values) -> HeldOut:
        """The residuals on every draw of the fit that left its fold out."""
        if len(self.regressions) == 1:
            return replace(self.regressions[0].leave_out(f, self.folds), note=self.note)
        parts = [
            made.leave_out(f[self._order(fold)], ((0, fold[1] - fold[0]),))
            for made, fold in zip(self.regressions, self.folds, strict=True)
        ]
        xp = namespace(parts[0].residual)
        residual, intercepts, variance = (
            xp.concat([getattr(part, name) for part in parts], axis=0)
            for name in ("residual", "intercepts", "variance")
        )
        return HeldOut(residual, self.note, intercepts, variance, self.folds)

    def averaging(self) -> AnyArray:
        r"""The weights $w$ with which the mean of the residuals is $w^\top f$: (n,)."""
        if len(self.regressions) == 1:
            return self.regressions[0].averaging(self.folds)
        n = self.folds[-1][1]
        total, weight = np.zeros(n), 0.0
        for made, fold in zip(self.regressions, self.folds, strict=True):
            size = fold[1] - fold[0]
            share = size if made.root is None else float(np.sum(np.asarray(made.root)[:size]))
            own = np.asarray(made.averaging(((0, size),)))
            total[self._order(fold)] += share * own
            weight += share
        return total / weight

    def _order(self, fold: tuple[int, int]) -> np.ndarray:
        """The rows of a fold, then all others."""
        start, stop = fold
        return np.r_[start:stop, 0:start, stop : self.folds[-1][1]]
