"""The candidates at full size, the best of them for each integrand, and how far they disagree."""

from dataclasses import dataclass

import numpy as np

from .._types import AnyArray
from ._arena import Trial
from ._candidates import Candidates

POWER = 1.5  # of the variance, in the weights of the candidates when they disagree
MARGIN = 0.9  # of the plain variance: what a control variate must beat to be used at all


@dataclass(frozen=True)
class Choice:
    """For each integrand the chosen candidate, and the variance that its series does not show.

    Attributes:
        trials: all candidates that were tried on all draws.
        best: which was chosen for each integrand.
        inflation: the variance to reckon with over the variance of the chosen series, (k,).
        disagreement: the variance of the estimate that comes from the choice, (k,).
    """

    trials: list[Trial]
    best: np.ndarray
    inflation: np.ndarray
    disagreement: np.ndarray
    note: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """What was chosen for each integrand."""
        return tuple(str(self.trials[trial].recipe) for trial in self.best)

    def candidates(self) -> Candidates:
        """What was tried, in terms of the plain variance."""
        variance = np.array([trial.variance for trial in self.trials])
        plain = np.where(variance[0] > 0, variance[0], 1.0)
        names = tuple(str(trial.recipe) for trial in self.trials)
        return Candidates(variance / plain, self.best, names)

    @property
    def rest(self) -> np.ndarray:
        """The chosen series, (n, k)."""
        series = [self.trials[trial].rest[:, i] for i, trial in enumerate(self.best)]
        return np.stack(series, axis=1)


def choose(trials: list[Trial], autocorrelation: AnyArray) -> Choice:
    r"""Choose the candidate of least held-out variance for each integrand.

    All candidates estimate the same numbers from the same draws. Where they differ by more than
    their errors explain, a part of the target that was hardly visited weighs more than any of them
    can see, and the difference is the only sign of it. With estimates $c_j$ of variances
    $v_j$, the chosen one among them, the error bar grows by

    $$ \sum_j w_j \max(0, (c_j - c)^2 - v_j - v), \qquad w_j \propto v_j^{-3/2} . $$

    Args:
        trials: the candidates; the first is plain Monte Carlo.
        autocorrelation: draws per independent draw, (k,).
    """
    variance = np.array([trial.variance for trial in trials])
    gated = np.where(variance[1:] < MARGIN * variance[0], variance[1:], np.inf)
    best = np.argmin(np.concatenate([variance[:1], gated]), axis=0)
    own = np.arange(len(best))
    n = len(trials[0].rest)
    error = np.maximum(variance, np.finfo(float).tiny) * autocorrelation / n
    estimates = np.array([trial.rest.mean(axis=0) for trial in trials])
    weight = (error[best, own] / error) ** POWER
    beyond = (estimates - estimates[best, own]) ** 2 - error - error[best, own]
    disagreement = (weight * np.maximum(beyond, 0)).sum(axis=0) / weight.sum(axis=0)
    shown = np.array([trials[trial].rest[:, i].var() for i, trial in enumerate(best)])
    with np.errstate(divide="ignore", invalid="ignore"):
        inflation = np.where(shown > 0, variance[best, own] / shown, 1.0)
    return Choice(trials, best, np.maximum(inflation, 1.0), disagreement)
