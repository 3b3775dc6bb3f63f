"""Splits of the draws: cross-fitting, holding out and in-sample fits, and cross-validation."""

import abc
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import ClassVar

import equinox as eqx
import numpy as np

from .._numerics import few_threads, precision
from .._show import Described, bare_table, counted, describe, plain_text, progress
from .._types import AnyArray, Key
from ..chains import linearised
from ..data import Integrands, IntegrandSpec, Sample, integrands
from ..families import AbstractFamily
from ..objectives import AbstractObjective, AbstractPenalty
from ..solvers import (
    AbstractSolver,
    Auto,
    Folds,
    HeldOut,
    Problem,
    instability,
    prepare,
    typical_share,
    with_training,
)


class AbstractSplit(Described):
    """Base class of splits, which decide on which draws a control variate is fitted and on which it is used.

    A split also decides whether there is a standard error: none is valid on draws that g was fitted to.

    >>> isinstance(CrossFit(), AbstractSplit)
    True
    """

    @abc.abstractmethod
    def control(
        self, problem: Problem, chains: int, solver: AbstractSolver, key: Key | None = None
    ) -> HeldOut:
        """Fit the control variates, and subtract them from f.

        If draws have weights the residuals are linearised, so that their plain average is the weighted
        one.
        """


class InSample(AbstractSplit):
    """Fit and average on the same draws: accurate for very few draws, but with unknown error.

    >>> InSample()
    InSample()
    """

    def control(
        self, problem: Problem, chains: int, solver: AbstractSolver, key: Key | None = None
    ) -> HeldOut:
        solution, draws = solver.solve(problem, key), problem.take(problem.draws)
        values = solution.evaluate(draws.x, draws.score)
        why = (
            "in-sample, the control variate was fitted to the draws it is averaged over; use CrossFit() "
            "to have one"
        )
        residual = linearised(np.asarray(draws.f - values), draws.weights)
        return HeldOut(residual, solution.note, reason=why)


class HoldOut(AbstractSplit):
    """Fit to the first part of every chain, and average over the remaining draws.

    Args:
        fraction: the fraction of each chain that is fitted to.

    >>> HoldOut(0.5)
    HoldOut(0.5)
    """

    fraction: float = eqx.field(static=True, default=0.5)

    def __check_init__(self) -> None:
        if not 0 < self.fraction < 1:
            raise ValueError(f"HoldOut({self.fraction}): the fraction must lie between 0 and 1.")

    def control(
        self, problem: Problem, chains: int, solver: AbstractSolver, key: Key | None = None
    ) -> HeldOut:
        index = problem.draws.reshape(chains, -1)
        cut = round(self.fraction * index.shape[1])
        if not 0 < cut < index.shape[1]:
            raise ValueError(
                f"HoldOut({self.fraction}) leaves no draws on one side of chains of {index.shape[1]}: "
                "use another fraction, or CrossFit()."
            )
        train = np.r_[index[:, :cut].ravel(), problem.training]
        solution = solver.solve(problem.take(train), key)
        held = problem.take(index[:, cut:].ravel())
        values = solution.evaluate(held.x, held.score)
        return HeldOut(linearised(np.asarray(held.f - values), held.weights), solution.note)


class CrossFit(AbstractSplit):
    """Fit to all draws outside a fold and use the fit on that fold, for each fold in turn.

    Folds are whole chains, or contiguous blocks of chains, never scattered draws: neighbouring draws of a
    chain resemble each other, so a fit to one would also follow the other.

    Args:
        folds: the number of folds. By default folds are whole chains if there are 8 or more (at most 10
            groups of them); otherwise blocks that divide each chain equally, 8 or a few more in all.

    >>> CrossFit().boundaries(chains=4, length=250)[:3]
    ((0, 125), (125, 250), (250, 375))
    >>> CrossFit(4).boundaries(chains=4, length=250)[:2]
    ((0, 250), (250, 500))
    """

    references: ClassVar[tuple[str, ...]] = ("chernozhukov2018double",)
    folds: int | None = eqx.field(static=True, default=None)

    def __check_init__(self) -> None:
        if self.folds is not None and self.folds < 2:
            raise ValueError(f"CrossFit({self.folds}): at least two folds are needed.")

    def boundaries(self, chains: int, length: int) -> Folds:
        """Return the start and stop of each fold among all draws, chains concatenated."""
        n = chains * length
        folds = self.folds
        if folds is None:
            folds = min(chains, 10) if chains >= 8 else chains * -(-8 // chains)
        if folds > n and self.folds is None:
            raise ValueError(
                f"{n} draws ({chains} x {length}) are too few for control variates: give {folds} at least. "
                "If these are (chain, draw) of a one-dimensional target, add an axis: draws[..., None]."
            )
        if folds > n:
            raise ValueError(f"{folds} folds of {n} draws: use fewer folds, or more draws.")
        if folds <= chains:
            groups = np.array_split(np.arange(chains), folds)
            return tuple((int(group[0]) * length, int(group[-1] + 1) * length) for group in groups)
        edges = np.linspace(0, n, folds + 1).round().astype(int)
        return tuple((int(a), int(b)) for a, b in pairwise(edges))

    def control(
        self, problem: Problem, chains: int, solver: AbstractSolver, key: Key | None = None
    ) -> HeldOut:
        order, folds = self.row_folds(problem, chains)
        problem = problem if problem.draw is None else problem.take(order)
        return moved(solver.crossfit(problem, folds, key), problem)

    def row_folds(self, problem: Problem, chains: int) -> tuple[np.ndarray, Folds]:
        """Order the rows of a problem by folds, each with its share of the training points."""
        folds = self.boundaries(chains, len(problem.draws) // chains)
        order, row_folds, _ = with_training(folds, len(problem.training))
        return order, row_folds


def moved(held: HeldOut, problem: Problem) -> HeldOut:
    """Separate training points, and add the variance due to the moves of the fits: see `with_moves`.

    Args:
        held: the residuals of all rows of a problem.
        problem: the rows, in the order of the residuals.
    """
    draw, weights = problem.draw, problem.weights
    if draw is not None and weights is not None:
        weights = np.asarray(weights)[draw]
    return with_moves(held.on_draws(draw, typical_share(problem.x, draw)), weights)


def with_moves(held: HeldOut, weights: AnyArray | None) -> HeldOut:
    """Linearise the residuals of a cross-fit, and add the variance due to the moves of its fits.

    Of residuals on training points, only their variance beyond that of the draws is added.
    """
    residual, unseen = linearised(np.asarray(held.residual), weights), None
    assert held.folds is not None
    if held.intercepts is not None:
        unseen = instability(residual, held.intercepts, held.folds) + held.excess / len(residual)
    note = f"{len(held.folds)} folds, {held.note}"
    return replace(held, residual=residual, note=note, unseen=unseen)


GROUPS = 8  # of folds: what shapes the features of draws is computed outside of their group


def groups_of(folds: Folds) -> list[tuple[int, int]]:
    """Join neighbouring folds to at most `GROUPS` groups, and return where each starts and stops."""
    edges = np.linspace(0, len(folds), min(GROUPS, len(folds)) + 1).astype(int)
    return [(folds[i][0], folds[j - 1][1]) for i, j in pairwise(edges)]


type Penalty = (
    AbstractPenalty | Sequence[AbstractPenalty]
)  # one for all terms of a family, or one for each
SHOWN = 10  # candidates in a printed table


@dataclass(frozen=True)
class Validation:
    """The variance of integrands that remains with families and penalties, on held-out draws.

    Attributes:
        candidates: the pairs of a family and a penalty; None is the solver's own.
        left: the variance of $f - g$ over that of $f$, (candidate, k).
        names: of the integrands.

    >>> from steinax import Polynomial
    >>> candidates = tuple((Polynomial(degree), None) for degree in (1, 2))
    >>> Validation(candidates, np.array([[0.5], [0.1]]), ("mu",)).best
    1
    """

    candidates: tuple[tuple[AbstractFamily, Penalty | None], ...]
    left: np.ndarray
    names: tuple[str, ...]

    @property
    def best(self) -> int:
        """The index of the best candidate, by the geometric mean of `left` over integrands."""
        return int(np.argmin(self._mean))

    @property
    def family(self) -> AbstractFamily:
        """The best family."""
        return self.candidates[self.best][0]

    @property
    def penalty(self) -> Penalty | None:
        """The penalty that is best with it."""
        return self.candidates[self.best][1]

    @property
    def _mean(self) -> np.ndarray:
        return np.exp(np.log(np.maximum(self.left, np.finfo(float).tiny)).mean(axis=1))

    def __str__(self) -> str:
        table = bare_table()
        for heading in ("family", "penalty", "left"):
            table.add_column(heading, justify="right" if heading == "left" else "left")
        for i in np.argsort(self._mean)[:SHOWN]:
            family, penalty = self.candidates[i]
            shown = "the solver's" if penalty is None else str(penalty)
            table.add_row(describe(family), shown, f"{self._mean[i]:.2g}")
        hidden = len(self.candidates) - SHOWN
        more = f"and {hidden} more; " if hidden > 0 else ""
        over = counted(len(self.names), "integrand")
        below = f"{more}left: fraction of the variance that remains, geometric mean over {over}"
        return f"{plain_text(table, 100)}\n{below}"


def cross_validate(
    f: IntegrandSpec | Integrands,
    sample: Sample,
    families: AbstractFamily | Iterable[AbstractFamily],
    *,
    penalties: AbstractPenalty | Iterable[Penalty] | None = None,
    folds: int | None = 5,
    objective: AbstractObjective | None = None,
    solver: AbstractSolver | None = None,
    key: Key | None = None,
    standardise: bool = True,
) -> Validation:
    r"""Compare families and penalties by the variance that remains on draws they were not fitted to.

    Each candidate is fitted to all draws except a fold, and judged on that fold. So it is fitted to fewer
    draws than in the end. If there are about as many coefficients as draws, use as many folds as draws,
    which is hardly slower for linear families. In chains, however, a draw resembles its neighbours:
    there, leave out longer stretches.

    Args:
        f: the integrands: a name, a function of one draw, an array, or a dict of these.
        sample: the draws and scores.
        families: one family or several, such as kernels of different length-scales.
        penalties: to try with each family, each of them one for all terms or a tuple with one for each term;
            the solver's own by default.
        folds: the number of folds; None for those of `CrossFit()`.
        objective: `LeastSquares()` by default.
        solver: `Auto()` by default.
        key: for solvers that draw random numbers; a fixed one by default.
        standardise: as for `fit`.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 50, 2))
    >>> penalties = [sx.Ridge(strength) for strength in (1e-8, 1e-4, 1.0)]
    >>> sample = sx.Sample(x, -x)
    >>> found = sx.cross_validate(
    ...     lambda x: x[0] * x[1], sample, sx.Polynomial(2), penalties=penalties
    ... )
    >>> found.penalty
    Ridge(1e-08)
    """
    if isinstance(families, Mapping):
        raise TypeError(
            "cross_validate: give the families as a list, [Polynomial(1), Polynomial(2)]."
        )
    several = (families,) if isinstance(families, AbstractFamily) else tuple(families)
    tried = (penalties,) if isinstance(penalties, AbstractPenalty) else tuple(penalties or (None,))
    if not several:
        raise ValueError("cross_validate: give one family at least, such as Polynomial(2).")
    wanted, candidates = integrands(f, sample), tuple(product(several, tried))
    solver, split = Auto() if solver is None else solver, CrossFit(folds)
    left = []
    with precision(sample.dtype), few_threads(sample), progress("cross-validating"):
        for family, penalty in candidates:
            own = solver.penalty if penalty is None else penalty
            problem, _ = prepare(wanted, sample, family, own, objective, standardise)
            held = split.control(problem, sample.chains, solver, key)
            left.append(np.asarray(held.residual, np.float64).var(axis=0))
    plain = linearised(np.asarray(wanted.values, np.float64), sample.weights).var(axis=(0, 1))
    ratio = np.array(left) / np.where(plain > 0, plain, 1.0)
    return Validation(candidates, np.where(np.isfinite(ratio), ratio, np.inf), wanted.names)
