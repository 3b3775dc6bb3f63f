"""What every choice of a control variate starts from and ends with."""

from dataclasses import dataclass, replace

import numpy as np

from .._types import AnyArray
from ..chains import linearised
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

    def settle[R](self, tried: list[Tried[R]]) -> Choice[R]:
        """The choice for each integrand among candidates for `f / scale`, plain Monte Carlo first."""
        trials = [one.scaled(self.scale) for one in tried if np.isfinite(one.variance).all()]
        trials[0] = replace(trials[0], rest=self.plain)  # to the last bit
        choice = choose(trials, self.autocorrelation, self.folds)
        note = f"the best of {len(trials)} on all draws, {len(self.folds)} folds"
        return replace(choice, note=note)


def ask(wanted: Integrands, sample: Sample, ess: AnyArray) -> Question:
    """The question that integrands pose, with their effective sample sizes, (k,)."""
    f = np.asarray(wanted.values, np.float64).reshape(sample.size, -1)
    plain = f if sample.weights is None else linearised(f, sample.weights.ravel())
    scale = np.where(np.ptp(f, axis=0) > 0, f.std(axis=0), 1.0)
    autocorrelation = np.fmax(sample.size / ess, 1.0)  # unknown, NaN, in chains of 3 draws
    length, chains = sample.length, sample.chains
    split = blocks(chains, length, float(np.median(autocorrelation)))
    return Question(f, plain, scale, autocorrelation, split.boundaries(chains, length))


def blocks(chains: int, length: int, autocorrelation: float) -> CrossFit:
    """Many folds, so that each fit has nearly all draws, but none shorter than draws depend."""
    longest = int(length / (SEPARATION * autocorrelation))
    many = FOLDS if chains * length <= WHOLE else 8  # each is then fitted anew
    folds = chains * min(-(-many // chains), max(longest, 1))
    return CrossFit(folds) if folds > 8 else CrossFit()
