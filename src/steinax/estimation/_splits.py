"""Cross-fitting and holding out: the folds, and how far fits move between them."""

import abc
from dataclasses import replace
from itertools import pairwise
from typing import ClassVar

import equinox as eqx
import numpy as np

from .._types import AnyArray, Key, Values
from ..chains import linearised
from ..solvers import AbstractSolver, Folds, HeldOut, Problem


def moves(rest: AnyArray, intercepts: AnyArray, folds: Folds) -> np.ndarray:
    r"""How the fits that leave out one fold each move, beyond what averages do: (..., fold, k).

    The intercept $c_B$ of the fit without fold $B$ estimates $E f$ too. If the control variate hardly
    depended on single draws, leaving out $B$ would move it by $-h_B$ with $h_B = \frac{n_B}{n}
    (\bar r_B - c_B)$, where $\bar r_B$ is the mean of $f - g$ on $B$, and the standard error of that
    series would tell all. A fit that nearly interpolates depends on the few draws far from the
    others. Then the series is small on all draws that were seen, and what it moves by,

    $$ u_B = c_B - \bar c + h_B - \bar h , $$

    is not. As in the jackknife, $\sum_B u_B^2$ is the variance that this adds to the estimate.

    Args:
        rest: f - g on every draw, g fitted to the other folds, (..., n, k).
        intercepts: $c_B$, (..., fold, k).
        folds: where each starts and stops.
    """
    rest = np.asarray(rest, np.float64)
    start, stop = np.array(folds).T
    means = np.add.reduceat(rest, start, axis=-2) / (stop - start)[:, None]
    return moves_of_means(means, intercepts, folds)


def moves_of_means(means: AnyArray, intercepts: AnyArray, folds: Folds) -> np.ndarray:
    r"""The same from the means $\bar r_B$ of $f - g$ on each fold, (..., fold, k)."""
    start, stop = np.array(folds).T
    share = ((stop - start) / stop[-1])[:, None]
    intercepts = np.asarray(intercepts, np.float64)
    moved = intercepts + share * (means - intercepts)
    return moved - moved.mean(axis=-2, keepdims=True)


def instability(rest: Values, intercepts: AnyArray, folds: Folds) -> np.ndarray:
    r"""The variance $\sum_B u_B^2$ that the fits' moves add to the estimate, (k,)."""
    return (moves(rest, intercepts, folds) ** 2).sum(axis=0)


class AbstractSplit(eqx.Module):
    """Which draws a control variate is fitted to, and on which it is used.

    The split owns the standard error: a series on which g was fitted has none that is honest.

    >>> isinstance(CrossFit(), AbstractSplit)
    True
    """

    @abc.abstractmethod
    def control(
        self, problem: Problem, chains: int, solver: AbstractSolver, key: Key | None = None
    ) -> HeldOut:
        """Fit, and take the control variates away from f.

        Where draws have weights the residuals are linearised, so that their plain average is the
        weighted one.
        """


class InSample(AbstractSplit):
    """Fit and average on the same draws: the smallest error for very few draws, but unknown.

    >>> InSample()
    InSample()
    """

    def control(
        self, problem: Problem, chains: int, solver: AbstractSolver, key: Key | None = None
    ) -> HeldOut:
        solution = solver.solve(problem, key)
        values = solution.evaluate(problem.x, problem.score)
        why = (
            "in-sample, the control variate was fitted to the draws it is averaged over; use CrossFit() "
            "to have one"
        )
        residual = linearised(np.asarray(problem.f - values), problem.root)
        return HeldOut(residual, solution.note, reason=why)


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
        self, problem: Problem, chains: int, solver: AbstractSolver, key: Key | None = None
    ) -> HeldOut:
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
        return HeldOut(linearised(np.asarray(held.f - values), held.root), solution.note)


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

    references: ClassVar[tuple[str, ...]] = ("chernozhukov2018double",)
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
        self, problem: Problem, chains: int, solver: AbstractSolver, key: Key | None = None
    ) -> HeldOut:
        folds = self.boundaries(chains, problem.x.shape[0] // chains)
        return with_moves(solver.crossfit(problem, folds, key), problem.root)


def with_moves(held: HeldOut, root: AnyArray | None) -> HeldOut:
    """Residuals of a cross-fit, linearised, with the variance that the moves of its fits add."""
    residual, unseen = linearised(np.asarray(held.residual), root), None
    assert held.folds is not None
    if held.intercepts is not None:
        unseen = instability(residual, held.intercepts, held.folds)
    note = f"{len(held.folds)} folds, {held.note}"
    return replace(held, residual=residual, note=note, unseen=unseen)
