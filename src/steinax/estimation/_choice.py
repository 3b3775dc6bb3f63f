"""The best candidates for each integrand, mixed, and how far all of them disagree."""

from dataclasses import dataclass

import numpy as np

from .._types import AnyArray
from ._arena import Trial
from ._candidates import Candidates

MARGIN = 3.0  # standard errors below the plain variance that a control variate must be, roughly
MIXED = 8  # candidates at most in a mixture
NEAR = 4.0  # times the least variance: what a candidate of a mixture may have
STEPS = 200  # of the search for the weights of a mixture


@dataclass(frozen=True)
class Choice:
    """For each integrand a mixture of candidates, and the variance that its series does not show.

    Attributes:
        trials: all candidates that were tried on all draws.
        mixture: the weight of each candidate, (trial, k).
        rest: the mixed series f - g, (n, k).
        inflation: the variance to reckon with over the variance of that series, (k,).
        disagreement: the variance of the estimate that comes from the choice, (k,).
        note: how the choice was made.
    """

    trials: list[Trial]
    mixture: np.ndarray
    rest: np.ndarray
    inflation: np.ndarray
    disagreement: np.ndarray
    note: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The leading candidate of each integrand, and how many are mixed with it."""
        return tuple(self._name(weights) for weights in self.mixture.T)

    def _name(self, weights: np.ndarray) -> str:
        more = int((weights > 0.05).sum()) - 1
        leading = str(self.trials[int(weights.argmax())].recipe)
        return leading if more < 1 else f"{leading}, mixed with {more} more"

    def candidates(self) -> Candidates:
        """What was tried, in terms of the plain variance."""
        variance = np.array([trial.variance for trial in self.trials])
        names = tuple(str(trial.recipe) for trial in self.trials)
        return Candidates(variance / variance[0], self.mixture, names)


def choose(trials: list[Trial], autocorrelation: AnyArray) -> Choice:
    r"""Mix the candidates of least held-out variance for each integrand.

    All candidates estimate the same numbers from the same draws. Where they differ by more than
    their errors explain, a part of the target that was hardly visited weighs more than any of them
    can see, and the difference is the only sign of it. With estimates $c_j$ of variances $v_j$,
    and $c$ of variance $v$ the mixture, the variance of $c$ is taken to be larger by

    $$ \max\Bigl(0, \sum_j w_j \bigl[(c_j - c)^2 - \tfrac12 (v_j + v)\bigr]\Bigr), \qquad
       w_j \propto v_j^{-3/2} . $$

    Args:
        trials: the candidates; the first is plain Monte Carlo.
        autocorrelation: draws per independent draw, (k,).
    """
    variance = np.array([trial.variance for trial in trials])
    series = np.array([trial.rest for trial in trials])
    _, n, k = series.shape
    mixture, rest, mixed = np.zeros((len(trials), k)), np.empty((n, k)), np.empty(k)
    for i in range(k):
        usable = _usable(variance[:, i], 1 - MARGIN / np.sqrt(n))
        part = series[usable, :, i]
        weights, mixed[i] = _mix(part, variance[usable, i])
        mixture[usable, i] = weights
        rest[:, i] = weights @ part
    shown = rest.var(axis=0)
    inflation = np.maximum(np.where(shown > 0, mixed / np.where(shown > 0, shown, 1.0), 1.0), 1.0)
    error, own = variance * autocorrelation / n, mixed * autocorrelation / n
    weight = (error.min(axis=0) / error) ** 1.5
    apart = (series.mean(axis=1) - rest.mean(axis=0)) ** 2 - 0.5 * (error + own)
    disagreement = np.maximum((weight * apart).sum(axis=0) / weight.sum(axis=0), 0.0)
    return Choice(trials, mixture, rest, inflation, disagreement)


def _usable(variance: np.ndarray, ratio: float) -> np.ndarray:
    """The best few candidates; plain Monte Carlo alone where nothing is clearly better."""
    order = np.argsort(variance)[:MIXED]
    if variance[order[0]] >= ratio * variance[0]:
        return np.array([0])
    return order[variance[order] <= NEAR * variance[order[0]]]


def _mix(series: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, float]:
    """Weights, none negative, of least variance by exponentiated gradients, and that variance."""
    centred = series - series.mean(axis=1, keepdims=True)
    moments = centred @ centred.T / centred.shape[1]
    shown = np.diag(moments)
    scale = np.sqrt(np.maximum(variance / np.where(shown > 0, shown, variance), 1.0))
    moments = moments * np.outer(scale, scale)
    weights = np.full(len(series), 1 / len(series))
    for _ in range(STEPS if len(series) > 1 else 0):
        slope = moments @ weights
        level = weights @ slope
        weights = weights * np.exp(-0.5 * (slope / max(level, np.finfo(float).tiny) - 1))
        weights = weights / weights.sum()
    return weights, float(weights @ moments @ weights)
