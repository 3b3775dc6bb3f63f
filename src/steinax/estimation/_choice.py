"""The best candidates for each integrand, mixed, and how far all of them disagree."""

from dataclasses import dataclass

import numpy as np

from .._types import AnyArray
from ..solvers import Folds
from ._arena import Trial
from ._candidates import Candidates
from ._stability import moves

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
        instability: the variance of the estimate that comes from how far the fits move, (k,).
        disagreement: the variance of the estimate that comes from the choice, (k,).
        note: how the choice was made.
    """

    trials: list[Trial]
    mixture: np.ndarray
    rest: np.ndarray
    instability: np.ndarray
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


def choose(trials: list[Trial], autocorrelation: AnyArray, folds: Folds) -> Choice:
    """Mix the candidates of least held-out variance for each integrand.

    Plain Monte Carlo alone is the choice unless the mixture is clearly better, judged by all of the
    variance that is to be reckoned with: its series, its fits' moves and the disagreement.

    Args:
        trials: the candidates; the first is plain Monte Carlo.
        autocorrelation: draws per independent draw, (k,).
        folds: where each starts and stops.
    """
    variance = np.array([trial.variance for trial in trials])
    series = np.array([trial.rest for trial in trials])
    _, n, k = series.shape
    clearly = 1 - MARGIN / np.sqrt(n)
    mixture = np.zeros((len(trials), k))
    for i in range(k):
        usable = _usable(variance[:, i], clearly)
        mixture[usable, i] = _mix(series[usable, :, i], variance[usable, i])
    rest = np.einsum("jk,jnk->nk", mixture, series)
    moved = moves(series, np.array([trial.intercepts for trial in trials]), folds)
    moved[0] = 0.0  # plain averages move as averages do
    unstable = (np.einsum("jk,jbk->bk", mixture, moved) ** 2).sum(axis=0)
    errors = variance * autocorrelation / n + (moved**2).sum(axis=1)
    own = rest.var(axis=0) * autocorrelation / n + unstable
    apart = series.mean(axis=1) - rest.mean(axis=0)
    apart = _disagreement(apart, errors, own)
    plain = own + apart > clearly * errors[0]
    mixture[:, plain] = np.eye(len(trials))[:, :1]
    rest[:, plain] = series[0][:, plain]
    unstable, apart = (np.where(plain, 0.0, one) for one in (unstable, apart))
    return Choice(trials, mixture, rest, unstable, apart)


def _disagreement(apart: np.ndarray, errors: np.ndarray, own: np.ndarray) -> np.ndarray:
    r"""The variance of the mixture that candidates disagree by, beyond their own, (k,).

    All candidates estimate the same numbers from the same draws. Where they differ by more than
    their errors explain, a part of the target that was hardly visited weighs more than any of them
    can see, and the difference is the only sign of it. With estimates $c_j$ of variances $v_j$,
    and $c$ of variance $v$ the mixture, the variance of $c$ is taken to be larger by

    $$ \max\Bigl(0, \sum_j w_j \bigl[(c_j - c)^2 - 2 (v_j + v)\bigr]\Bigr), \qquad
       w_j \propto v_j^{-3/2} . $$

    Args:
        apart: $c_j - c$, (trial, k).
        errors: $v_j$, (trial, k).
        own: $v$, (k,).
    """
    weight = (errors.min(axis=0) / errors) ** 1.5
    excess = (weight * (apart**2 - 2 * (errors + own))).sum(axis=0) / weight.sum(axis=0)
    return np.maximum(excess, 0.0)


def _usable(variance: np.ndarray, ratio: float) -> np.ndarray:
    """The best few candidates; plain Monte Carlo alone where nothing is clearly better."""
    order = np.argsort(variance)[:MIXED]
    if variance[order[0]] >= ratio * variance[0]:
        return np.array([0])
    return order[variance[order] <= NEAR * variance[order[0]]]


def _mix(series: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Weights, none negative, of least variance, by exponentiated gradients."""
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
    return weights
