"""The second pass over a stream: the moments of each fold, and from them a fit without each."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import numpy as np

from .._precision import precision
from ..auditing import heavy
from ..data import Sample
from ..data._integrands import IntegrandSpec
from ..data._lazy import LazySample
from ..families import AbstractFamily
from ..solvers import Folds
from ..solvers._moments import Moments, gathered_moments
from ._stability import moves_of_means
from ._stream_features import Features
from ._stream_runs import AbstractPass, Run
from ._tails import BETTER, left_out, may_be_heavy

JUDGED, LEAST = 10_000, 1000  # draws by which tails are judged, at most and at least
JUDGED_NUMBERS = 2**23  # in their columns: 64 MB


class Gathered(NamedTuple):
    """What is known of some draws.

    Attributes:
        moments: of columns and integrands.
        some: the columns of a few of the draws, (m, p), by which tails are judged.
        squares: the sum of the squares of each integrand about its mean, (k,).
        largest: |f|, (k,).
        names: of the integrands.
    """

    moments: Moments
    some: np.ndarray
    squares: np.ndarray
    largest: np.ndarray
    names: tuple[str, ...]

    def merge(self, other: "Gathered") -> "Gathered":
        """Those of both sets of draws together."""
        here, there = self.moments, other.moments
        between = here.n * there.n / (here.n + there.n) * (there.mean_f - here.mean_f) ** 2
        squares = self.squares + other.squares + between
        largest = np.maximum(self.largest, other.largest)
        some = np.concatenate([self.some, other.some])
        return Gathered(here.merge(there), some, squares, largest, self.names)

    def left(self, coef: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of f - g on these draws the mean and the sum of squares about it, (k,), to rounding."""
        one = self.moments
        explained = (coef * (2 * one.cross - one.gram @ coef)).sum(axis=0)
        return one.mean_f - one.mean @ coef, np.maximum(self.squares - explained, 0.0)


@dataclass(frozen=True)
class MomentsPass(AbstractPass[Gathered]):
    """Gathers the moments of columns and integrands over a run.

    Args:
        source: of the draws.
        f: the integrands.
        features: that make the columns.
        k: how many integrands there are, if that is known.
        step: of how many draws of a chain one is kept to judge the tails of the columns; None for none.
    """

    source: LazySample | None
    f: IntegrandSpec
    features: Features
    k: int | None
    step: int | None = None

    def over(self, run: Run, blocks: Iterator[Sample]) -> Gathered:
        """The moments of a run whose draws are these."""
        largest, names, seen = np.zeros(()), (), _Squares()
        some, place = [np.zeros((0, self.features.size))], run.start

        def tiles() -> Iterator[tuple[np.ndarray, np.ndarray]]:
            nonlocal largest, names, place
            for a, wanted in self.features.tiles(self.f, blocks, self.k):
                names = wanted.names
                largest = np.maximum(largest, np.abs(wanted.values[0]).max(axis=0))
                seen.add(wanted.values[0])
                if self.step is not None:
                    some.append(a[-place % self.step :: self.step])
                place += len(a)
                yield a, wanted.values[0]

        with precision(np.float64):
            found = gathered_moments(tiles())
        return Gathered(found, np.concatenate(some), seen.squares, largest, names)


def judging_step(family: AbstractFamily, p: int, chains: int, length: int) -> int | None:
    """Of how many draws of a chain one is kept to judge the tails of p columns; None for none.

    It depends on nothing else, and so neither does what is left out.
    """
    if not may_be_heavy(family):
        return None
    return -(-chains * length // min(max(JUDGED_NUMBERS // p, LEAST), JUDGED))


class _Squares:
    """The sums of the squares of columns about their means, as their rows come."""

    def __init__(self) -> None:
        self.squares = self._mean = np.zeros(())
        self._count = 0

    def add(self, values: np.ndarray) -> None:
        mean, n, before = values.mean(axis=0), len(values), self._count
        step, self._count = mean - self._mean, before + n
        between = before * n / self._count * step**2
        self.squares = self.squares + np.square(values - mean).sum(axis=0) + between
        self._mean = self._mean + n / self._count * step


class Fits(NamedTuple):
    """Fits to all folds but one, for each fold, and what is known of f by now.

    Attributes:
        coef: (fold, p, k).
        intercepts: (fold, k).
        mean: of f over all draws, (k,).
        largest: |f|, (k,).
        names: of the integrands.
    """

    coef: np.ndarray
    intercepts: np.ndarray
    mean: np.ndarray
    largest: np.ndarray
    names: tuple[str, ...]


def fits_without_each(parts: list[Gathered], penalty: np.ndarray) -> Fits:
    """Cross-fitting by subtraction: the moments of all draws, less those of a fold, give its fit."""
    return _fits(parts, penalty, np.ones(len(penalty), bool))


def fits_without_heavy(
    parts: list[Gathered], penalty: np.ndarray, folds: Folds
) -> tuple[Fits, str]:
    """The same without columns of heavy tails, unless the fit with them is far better (`without_heavy`).

    Args:
        parts: of each fold.
        penalty: (p, p).
        folds: where each starts and stops.

    Returns:
        The fits, and a note that says how many columns were left out.
    """
    whole = fits_without_each(parts, penalty)
    some = np.concatenate([one.some for one in parts])
    bad = heavy(some, errors=0.0) if len(some) else np.zeros(len(penalty), bool)
    if not bad.any():
        return whole, ""
    light = _fits(parts, penalty, ~bad)
    keep = _variance(parts, whole, folds) < BETTER * _variance(parts, light, folds)
    if keep.all():
        return whole, ""
    mixed = whole._replace(
        coef=np.where(keep, whole.coef, light.coef),
        intercepts=np.where(keep, whole.intercepts, light.intercepts),
    )
    return mixed, left_out(bad, keep)


def _fits(parts: list[Gathered], penalty: np.ndarray, used: np.ndarray) -> Fits:
    """Fits of some of the columns; the coefficients of the others are zero."""
    total, inside = reduce(Gathered.merge, parts), penalty[np.ix_(used, used)]
    solved = [total.moments.without(one.moments).only(used).solve(inside) for one in parts]
    intercepts = np.stack([intercept for intercept, _ in solved])
    coef = np.zeros((len(parts), len(used), len(total.names)))
    coef[:, used] = [found for _, found in solved]
    return Fits(coef, intercepts, total.moments.mean_f, total.largest, total.names)


def _variance(parts: list[Gathered], fits: Fits, folds: Folds) -> np.ndarray:
    """Of the estimates, autocorrelation left aside, (k,)."""
    each = [one.left(coef) for one, coef in zip(parts, fits.coef, strict=True)]
    means, squares = (np.stack(one) for one in zip(*each, strict=True))
    sizes = np.diff(folds, axis=1)
    n = sizes.sum()
    between = sizes * (means - (sizes * means).sum(axis=0) / n) ** 2
    moved = (moves_of_means(means, fits.intercepts, folds) ** 2).sum(axis=0)
    return (squares + between).sum(axis=0) / n**2 + moved
