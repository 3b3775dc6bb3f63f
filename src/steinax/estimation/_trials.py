"""What came of a candidate on held-out draws, and which candidates go on."""

from collections.abc import Sequence
from dataclasses import dataclass
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
    """

    recipe: R
    rest: np.ndarray
    variance: np.ndarray
    intercepts: np.ndarray

    def scaled(self, scale: np.ndarray) -> "Tried[R]":
        """The same for integrands that are larger by a factor each, (k,)."""
        variance = self.variance * scale**2
        return Tried(self.recipe, self.rest * scale, variance, self.intercepts * scale)


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


@runtime_checkable
class HasKernel(Protocol):
    """A recipe with at most one kind of kernel."""

    @property
    def kernel(self) -> type[AbstractKernel] | None: ...


def shortlist[R: HasKernel](trials: list[Tried[R]], length: int) -> list[R]:
    """The best recipe of each kernel over all integrands, then those that help the worst served.

    They are judged by the sum over integrands of the logarithm of the best variance among them.
    """
    scores = np.log(np.array([trial.variance for trial in trials]))
    by_kernel: dict[object, list[int]] = {}
    for i, trial in enumerate(trials):
        by_kernel.setdefault(trial.recipe.kernel, []).append(i)
    picked = [min(mine, key=lambda i: scores[i].sum()) for mine in by_kernel.values()]
    while picked and len(picked) < length:
        best = scores[picked].min(axis=0)
        gain = np.minimum(scores, best).sum(axis=1)
        if not gain.min() < best.sum():
            break
        picked.append(int(np.argmin(gain)))
    return [trials[i].recipe for i in picked]
