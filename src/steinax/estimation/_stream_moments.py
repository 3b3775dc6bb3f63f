"""The second pass over a stream: the moments of each fold, and from them a fit without each."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import numpy as np

from .._precision import precision
from ..data import Sample
from ..data._integrands import IntegrandSpec
from ..data._lazy import LazySample
from ..solvers._moments import Moments, gathered_moments
from ._stream_features import Features
from ._stream_runs import AbstractPass, Run


class Gathered(NamedTuple):
    """The moments of some draws, the largest |f| among them, (k,), and the integrands' names."""

    moments: Moments
    largest: np.ndarray
    names: tuple[str, ...]

    def merge(self, other: "Gathered") -> "Gathered":
        """Those of both sets of draws together."""
        largest = np.maximum(self.largest, other.largest)
        return Gathered(self.moments.merge(other.moments), largest, self.names)


@dataclass(frozen=True)
class MomentsPass(AbstractPass[Gathered]):
    """Gathers the moments of columns and integrands over a run."""

    source: LazySample | None
    f: IntegrandSpec
    features: Features
    k: int | None

    def over(self, run: Run, blocks: Iterator[Sample]) -> Gathered:
        """The moments of a run whose draws are these."""
        largest, names = np.zeros(()), ()

        def tiles() -> Iterator[tuple[np.ndarray, np.ndarray]]:
            nonlocal largest, names
            for a, wanted in self.features.tiles(self.f, blocks, self.k):
                names = wanted.names
                largest = np.maximum(largest, np.abs(wanted.values[0]).max(axis=0))
                yield a, wanted.values[0]

        with precision(np.float64):
            found = gathered_moments(tiles())
        return Gathered(found, largest, names)


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
    total = reduce(Gathered.merge, parts)
    solved = [total.moments.without(part.moments).solve(penalty) for part in parts]
    intercepts, coef = (np.stack(one) for one in zip(*solved, strict=True))
    return Fits(coef, intercepts, total.moments.mean_f, total.largest, total.names)
