"""What every choice of a control variate starts from and ends with."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from .._types import AnyArray
from ..chains import chain_statistics, linearised
from ..data import Integrands, Sample
from ..solvers import Folds
from ._arena import WHOLE
from ._choice import Choice, choose
from ._splits import CrossFit
from ._trials import Tried

FOLDS = 24  # or a few more, so that each chain has as many
SEPARATION = 4  # autocorrelation times that a fold should last


@dataclass(frozen=True)
class Question:
    """Integrands, and the folds on which candidates are tried.

    Attributes:
        f: the integrands, (n, k).
        plain: the same, linearised where draws have weights.
        scale: the standard deviation of each, by which candidates divide it, (k,).
        autocorrelation: draws per independent draw, (k,).
        folds: where each starts and stops.
    """

    f: np.ndarray
    plain: np.ndarray
    scale: np.ndarray
    autocorrelation: np.ndarray
    folds: Folds

    def settle[R](self, tried: Iterable[Tried[R]]) -> Choice[R]:
        """The choice for each integrand among candidates for `f / scale`, plain Monte Carlo first."""
        choice = choose(tried, self.autocorrelation, self.folds)
        plain = choice.mixture[0] == 1
        return replace(
            choice,
            variance=choice.variance * self.scale**2,
            rest=np.where(plain, self.plain, choice.rest * self.scale),  # plain to the last bit
            instability=choice.instability * self.scale**2,
            disagreement=choice.disagreement * self.scale**2,
            note=f"the best of {len(choice.recipes)} on all draws, {len(self.folds)} folds",
        )


def ask(wanted: Integrands, sample: Sample, ess: AnyArray) -> Question:
    """The question that integrands pose, with their effective sample sizes, (k,).

    The folds are those of the draws, whatever the integrands: no estimate depends on what else was
    asked for.
    """
    f = np.asarray(wanted.values, np.float64).reshape(sample.size, -1)
    plain = f if sample.weights is None else linearised(f, sample.weights.ravel())
    scale = np.where(np.ptp(f, axis=0) > 0, f.std(axis=0), 1.0)
    autocorrelation = np.fmax(sample.size / ess, 1.0)  # unknown, NaN, in chains of 3 draws
    length, chains = sample.length, sample.chains
    split = blocks(chains, length, autocorrelation_of(sample))
    return Question(f, plain, scale, autocorrelation, split.boundaries(chains, length))


def autocorrelation_of(sample: Sample) -> float:
    """Draws per independent draw: the median over the columns of draws and scores."""
    columns = np.concatenate([sample.draws, sample.scores], axis=-1, dtype=np.float64)
    ess = chain_statistics(linearised(columns, sample.weights)).ess
    return float(np.median(np.fmax(sample.size / ess, 1.0)))


def blocks(chains: int, length: int, autocorrelation: float) -> CrossFit:
    """Many folds, so that each fit has nearly all draws, but none shorter than draws depend."""
    longest = int(length / (SEPARATION * autocorrelation))
    many = FOLDS if chains * length <= WHOLE else 8  # each is then fitted anew
    folds = chains * min(-(-many // chains), max(longest, 1))
    return CrossFit(folds) if folds > 8 else CrossFit()
