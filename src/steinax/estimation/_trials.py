"""What came of a candidate on held-out draws, and which candidates go on."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np

from ..chains import linearised
from ..kernels import AbstractKernel
from ..solvers import Folds
from ..solvers._problem import LeftOut
from ..solvers._rows import Root
from ._recipes import Recipe
from ._scores import held_out_variance

LEAST = 1e-35  # variance of an integrand of variance 1: less is rounding error


@dataclass(frozen=True)
class Tried[R]:
    """A candidate's f - g on all draws, each held out, and what may be said of it.

    Attributes:
        recipe: of the candidate.
        rest: f - g, (n, k), linearised where draws have weights.
        variance: to reckon with, (k,).
        intercepts: of the fits that left out one fold each, (fold, k).
        asked: the integrands whose own search led to it, (k,); None for all.
    """

    recipe: R
    rest: np.ndarray
    variance: np.ndarray
    intercepts: np.ndarray
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


Trial = Tried[Recipe]


def plain_trial[R](recipe: R, f: np.ndarray, folds: Folds, root: Root = None) -> Tried[R]:
    """Plain Monte Carlo: f itself, linearised where draws have weights."""
    rest = linearised(f, root)
    mean = np.broadcast_to(rest.mean(axis=0), (len(folds), rest.shape[1]))
    return Tried(recipe, rest, np.maximum(rest.var(axis=0), LEAST), mean)


def trial_of[R](recipe: R, found: LeftOut, root: Root = None) -> Tried[R]:
    """A candidate, from what leaving out each fold in turn gave.

    Args:
        recipe: of the candidate.
        found: f - g, and what is expected of it.
        root: of the weights of the squares, where draws have weights.
    """
    rest, expected, intercepts = map(np.asarray, found)
    if root is not None:
        rest, expected = linearised(rest, root), expected * np.asarray(root) ** 2
    variance = np.maximum(held_out_variance(rest, expected), LEAST)
    return Tried(recipe, rest, variance, intercepts)


def side_by_side(trials: Sequence[Trial]) -> Trial:
    """One candidate for all integrands, from one for each."""
    rest, intercepts = (
        np.concatenate([getattr(trial, part) for trial in trials], axis=1)
        for part in ("rest", "intercepts")
    )
    variance = np.concatenate([trial.variance for trial in trials])
    return Trial(trials[0].recipe, rest, variance, intercepts)


def no_trial[R](recipe: R, n: int, folds: Folds) -> Tried[R]:
    """In the place of a candidate that one integrand cannot have."""
    return Tried(recipe, np.zeros((n, 1)), np.full(1, np.inf), np.zeros((len(folds), 1)))


@runtime_checkable
class HasKernel(Protocol):
    """A recipe with at most one kind of kernel."""

    @property
    def kernel(self) -> type[AbstractKernel] | None: ...


def for_those[R](trials: Iterable[Tried[R]], asked: np.ndarray) -> Iterator[Tried[R]]:
    """Candidates that only some integrands asked for, (k,)."""
    for trial in trials:
        yield replace(trial, asked=asked)


def noted[R](trials: Iterable[Tried[R]], best: np.ndarray) -> Iterator[Tried[R]]:
    """The same candidates; the least variance of each integrand is written to an array, (k,)."""
    for trial in trials:
        np.minimum(best, trial.open_variance, out=best)
        yield trial


def shortlist[R: HasKernel](trials: Iterable[Tried[R]]) -> list[tuple[R, np.ndarray]]:
    """The best recipe of each kernel for each integrand, and which integrands it is best for, (k,)."""
    by_kernel: dict[object, list[tuple[R, np.ndarray]]] = {}
    for trial in trials:
        found = by_kernel.setdefault(trial.recipe.kernel, [])
        found.append((trial.recipe, trial.open_variance))
    picked = []
    for found in by_kernel.values():
        variance = np.array([one for _, one in found])
        best = np.where(np.isfinite(variance.min(axis=0)), variance.argmin(axis=0), -1)
        picked += [(found[i][0], best == i) for i in np.unique(best[best >= 0])]
    return picked
