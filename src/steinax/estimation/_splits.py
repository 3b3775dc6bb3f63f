"""Splits of the draws: cross-fitting, holding out and in-sample fits."""

import abc
from dataclasses import replace
from itertools import pairwise
from typing import ClassVar

import equinox as eqx
import numpy as np

from .._types import AnyArray, Key
from ..chains import linearised
from ..solvers import (
    AbstractSolver,
    Folds,
    HeldOut,
    Problem,
    instability,
    typical_share,
    with_training,
)


class AbstractSplit(eqx.Module):
    """Split that decides which draws a control variate is fitted to, and on which it is used.

    It also decides whether there is a standard error: there is no valid one on draws that g was fitted to.

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
    HoldOut(fraction=0.5)
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

    Folds are whole chains, or contiguous blocks of chains, never scattered draws: neighbours in a
    chain resemble each other, and a fit to one would be a fit to the other.

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
    """Set training points apart, and add the variance due to the moves of the fits: see `with_moves`.

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
