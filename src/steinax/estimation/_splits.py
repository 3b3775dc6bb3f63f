import abc
from itertools import pairwise

import equinox as eqx
import numpy as np

from .._types import AnyArray, Key, Series, Values
from ..chains import linearised
from ..solvers import AbstractSolver, Folds, Problem
from ._stability import instability


class Controlled(eqx.Module):
    """The series f - g on the draws that the estimate averages, and what may be said of it.

    Where draws have weights the series is linearised, so that its plain average is the weighted one.
    """

    rest: Series
    instability: AnyArray  # the variance that the fits' moves add to the estimate: (k,)
    no_error: str | None = eqx.field(static=True)  # why there is no standard error
    note: str = eqx.field(static=True)


class AbstractSplit(eqx.Module):
    """Which draws a control variate is fitted to, and on which it is used.

    The split owns the standard error: a series on which g was fitted has none that is honest.

    >>> isinstance(CrossFit(), AbstractSplit)
    True
    """

    @abc.abstractmethod
    def control(
        self, problem: Problem, chains: int, solver: AbstractSolver, key: Key
    ) -> Controlled:
        """Fit, and take the control variates away from f."""


class InSample(AbstractSplit):
    """Fit and average on the same draws: the smallest error for very few draws, but unknown.

    >>> InSample()
    InSample()
    """

    def control(
        self, problem: Problem, chains: int, solver: AbstractSolver, key: Key
    ) -> Controlled:
        solution = solver.solve(problem, key)
        values = solution.evaluate(problem.x, problem.score)
        why = (
            "in-sample, the control variate was fitted to the draws it is averaged over; use CrossFit() "
            "to have one"
        )
        rest = linearised(problem.f - values, problem.root)
        return Controlled(_by_chain(rest, chains), np.zeros(()), why, solution.note)


class HoldOut(AbstractSplit):
    """Fit to the first part of every chain, and average over the rest.

    Args:
        fraction: of each chain that is fitted to.

    >>> HoldOut(0.5)
    HoldOut(fraction=0.5)
    """

    fraction: float = eqx.field(static=True, default=0.5)

    def __check_init__(self) -> None:
        if not 0 < self.fraction < 1:
            raise ValueError(f"HoldOut({self.fraction}): the fraction must lie between 0 and 1.")

    def control(
        self, problem: Problem, chains: int, solver: AbstractSolver, key: Key
    ) -> Controlled:
        index = np.arange(problem.x.shape[0]).reshape(chains, -1)
        cut = round(self.fraction * index.shape[1])
        if not 0 < cut < index.shape[1]:
            raise ValueError(
                f"HoldOut({self.fraction}) leaves no draws on one side of chains of {index.shape[1]}: "
                "use another fraction, or CrossFit()."
            )
        solution = solver.solve(problem.take(index[:, :cut].ravel()), key)
        held = problem.take(index[:, cut:].ravel())
        values = solution.evaluate(held.x, held.score)
        rest = linearised(held.f - values, held.root)
        return Controlled(_by_chain(rest, chains), np.zeros(()), None, solution.note)


class CrossFit(AbstractSplit):
    """Fit to all draws but one fold's and use it on that fold, for each fold in turn.

    Folds are whole chains, or contiguous blocks of chains, never scattered draws: neighbours in a
    chain resemble each other, and a fit to one would be a fit to the other.

    Args:
        folds: how many. By default whole chains when there are 8 or more (at most 10 groups of
            them); otherwise blocks that divide each chain equally, 8 or a few more in all.

    >>> CrossFit().boundaries(chains=4, length=250)[:3]
    ((0, 125), (125, 250), (250, 375))
    >>> CrossFit(4).boundaries(chains=4, length=250)[:2]
    ((0, 250), (250, 500))
    """

    folds: int | None = eqx.field(static=True, default=None)

    def __check_init__(self) -> None:
        if self.folds is not None and self.folds < 2:
            raise ValueError(f"CrossFit({self.folds}): at least two folds are needed.")

    def boundaries(self, chains: int, length: int) -> Folds:
        """Where each fold starts and stops among all draws, chains one after the other."""
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
            return tuple((int(g[0]) * length, int(g[-1] + 1) * length) for g in groups)
        edges = np.linspace(0, n, folds + 1).round().astype(int)
        return tuple((int(a), int(b)) for a, b in pairwise(edges))

    def control(
        self, problem: Problem, chains: int, solver: AbstractSolver, key: Key
    ) -> Controlled:
        folds = self.boundaries(chains, problem.x.shape[0] // chains)
        held = solver.crossfit(problem, folds, key)
        rest, moved = linearised(held.rest, problem.root), np.zeros(())
        if held.intercepts is not None:
            moved = instability(rest, held.intercepts, folds)
        return Controlled(_by_chain(rest, chains), moved, None, f"{len(folds)} folds, {held.note}")


def _by_chain(rest: Values, chains: int) -> Series:
    return np.asarray(rest).reshape(chains, -1, rest.shape[-1])
