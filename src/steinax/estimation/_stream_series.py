"""The third pass over a stream: f and f - g on every draw, of which only sums are kept."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .._precision import precision
from ..chains import ChainStatistics
from ..chains._streamed import streamed_controlled, streamed_statistics
from ..chains._sums import Adding, ChainSums, Sums
from ..data import Sample
from ..data._integrands import IntegrandSpec
from ..data._lazy import LazySample
from ..solvers import Folds
from ._stability import moves_of_means
from ._stream_features import Features
from ._stream_moments import Fits
from ._stream_runs import AbstractPass, Run


class Summed(NamedTuple):
    """The sums of f and of f - g over a run."""

    plain: Sums
    rest: Sums


@dataclass(frozen=True)
class SeriesPass(AbstractPass[Summed]):
    """Adds up f and f - g over a run, with g fitted to the other folds."""

    source: LazySample | None
    f: IntegrandSpec
    features: Features
    fits: Fits
    length: int
    batch: int

    @property
    def size(self) -> np.ndarray:
        """The units of each integrand: its largest entry."""
        return np.where(self.fits.largest > 0, self.fits.largest, 1.0)

    @property
    def centre(self) -> np.ndarray:
        """What f - g is near to, (k,)."""
        return self.fits.intercepts.mean(axis=0)

    def over(self, run: Run, blocks: Iterator[Sample]) -> Summed:
        """The sums of a run whose draws are these."""
        k, coef = len(self.size), self.fits.coef[run.fold]
        plain, rest = (Adding(run.start, run.stop, self.length, self.batch, k) for _ in range(2))
        with precision(np.float64):
            for a, wanted in self.features.tiles(self.f, blocks, k):
                values = wanted.values[0]
                plain.add((values - self.fits.mean) / self.size)
                rest.add((values - a @ coef - self.centre) / self.size)
        return Summed(plain.sums(), rest.sums())

    def statistics(
        self, parts: Iterator[tuple[Run, Summed]], chains: int, folds: Folds
    ) -> tuple[ChainStatistics, ChainStatistics]:
        """Of f - g, with the variance that the fits' moves add, and of f."""
        k = len(self.size)
        plain, rest = (ChainSums(chains, self.length, self.batch, k) for _ in range(2))
        by_fold = np.zeros((len(folds), k))
        for run, part in parts:
            plain.add(run.chain, part.plain)
            rest.add(run.chain, part.rest)
            by_fold[run.fold] += part.rest.powers[:, 0].sum(axis=0)
        sizes = np.diff(folds, axis=1)
        means = self.centre + self.size * by_fold / sizes
        unseen = (moves_of_means(means, self.fits.intercepts, folds) ** 2).sum(axis=0)
        better = streamed_controlled(rest, self.centre, self.size, unseen)
        return better, streamed_statistics(plain, self.fits.mean, self.size)
