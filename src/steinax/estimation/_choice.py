"""The best candidates for each integrand, mixed, and how far all of them disagree."""

from dataclasses import dataclass

import numpy as np

from .._types import AnyArray
from ..solvers import Folds
from ._candidates import Candidates
from ._stability import moves
from ._trials import Tried

MARGIN = 3.0  # standard errors below the plain variance that a control variate must be, roughly
MIXED = 8  # candidates at most in a mixture
NEAR = 4.0  # times the least variance: what a candidate of a mixture may have
STEPS = 200  # of the search for the weights of a mixture


@dataclass(frozen=True)
class Choice[R]:
    """For each integrand a mixture of candidates, and the variance that its series does not show.

    Attributes:
        trials: all candidates that were tried on all draws.
        mixture: the weight of each candidate, (trial, k).
        rest: the mixed series f - g, (n, k).
        instability: the variance of the estimate that comes from how far the fits move, (k,).
        disagreement: the variance of the estimate that comes from the choice, (k,).
        note: how the choice was made.
    """

    trials: list[Tried[R]]
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


def choose[R](trials: list[Tried[R]], autocorrelation: AnyArray, folds: Folds) -> Choice[R]:
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
    n = series.shape[1]
    clearly = 1 - MARGIN / np.sqrt(n)
    mixture = np.zeros_like(variance)
    order, usable = _best(variance, clearly)
    moments = np.array(
        [_moments(series[own, :, i], variance[own, i]) for i, own in enumerate(order.T)]
    )
    np.put_along_axis(mixture, order, _mix(moments, usable.T).T, axis=0)
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


def _best(variance: np.ndarray, ratio: float) -> tuple[np.ndarray, np.ndarray]:
    """The best few candidates of each integrand, the best first, and which of them are good enough.

    Both (few, k). Where nothing is clearly better than plain Monte Carlo, it comes first, alone.
    """
    order = np.argsort(variance, axis=0)[:MIXED]
    sorted_ = np.take_along_axis(variance, order, axis=0)
    usable = sorted_ <= NEAR * sorted_[0]
    plain = sorted_[0] >= ratio * variance[0]
    order[:, plain] = np.arange(len(order))[:, None]
    usable[:, plain] = np.arange(len(order))[:, None] == 0
    return order, usable


def _moments(series: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """The covariance of some candidates' series, (few, few), each as large as it is to be feared."""
    centred = series - series.mean(axis=1, keepdims=True)
    moments = centred @ centred.T / centred.shape[1]
    shown = np.diag(moments)
    scale = np.sqrt(np.maximum(variance / np.where(shown > 0, shown, variance), 1.0))
    return moments * np.outer(scale, scale)


def _mix(moments: np.ndarray, usable: np.ndarray) -> np.ndarray:
    """Weights of least variance, none negative, by exponentiated gradients: (k, few).

    Args:
        moments: the covariances of the candidates of each integrand, (k, few, few).
        usable: those that may have a weight, (k, few).
    """
    weights = usable / usable.sum(axis=1, keepdims=True)
    both = usable[:, :, None] & usable[:, None, :]
    moments = np.where(both, moments, 0.0)
    for _ in range(STEPS):
        slope = (moments @ weights[..., None])[..., 0]
        level = np.maximum((weights * slope).sum(axis=1, keepdims=True), np.finfo(float).tiny)
        weights = weights * np.exp(-0.5 * (slope / level - 1))
        weights /= weights.sum(axis=1, keepdims=True)
    return weights
