"""The best candidates for each integrand, mixed, and how far all of them disagree."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from .._types import AnyArray
from ..solvers import Folds
from ._candidates import Candidates
from ._pool import Pool
from ._trials import Tried

MARGIN = 3.0  # standard errors below the plain variance that a control variate must be, roughly
NEAR = 4.0  # times the least variance: what a candidate of a mixture may have
STEPS = 200  # of the search for the weights of a mixture


@dataclass(frozen=True)
class Choice[R]:
    """For each integrand a mixture of candidates, and the variance that its series does not show.

    Attributes:
        recipes: of all candidates that were tried on all draws.
        variance: that each leaves of each integrand on held-out draws, (trial, k).
        usable: which integrands asked for it, (trial, k).
        mixture: the weight of each candidate, (trial, k).
        rest: the mixed series f - g, (n, k).
        instability: the variance of the estimate that comes from how far the fits move, (k,).
        disagreement: the variance of the estimate that comes from the choice, (k,).
        note: how the choice was made.
    """

    recipes: list[R]
    variance: np.ndarray
    usable: np.ndarray
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
        leading = str(self.recipes[int(weights.argmax())])
        return leading if more < 1 else f"{leading}, mixed with {more} more"

    @property
    def left(self) -> np.ndarray:
        """The variance that each candidate leaves, as a part of the plain one, (trial, k)."""
        return self.variance / self.variance[0]

    def candidates(self) -> Candidates:
        """What was tried, in terms of the plain variance."""
        names = tuple(map(str, self.recipes))
        return Candidates(np.where(self.usable, self.left, np.nan), self.mixture, names)


def choose[R](trials: Iterable[Tried[R]], autocorrelation: AnyArray, folds: Folds) -> Choice[R]:
    """Mix the candidates of least held-out variance for each integrand.

    Plain Monte Carlo alone is the choice unless the mixture is clearly better, judged by all of the
    variance that is to be reckoned with: its series, its fits' moves and the disagreement.

    Args:
        trials: the candidates; the first is plain Monte Carlo.
        autocorrelation: draws per independent draw, (k,).
        folds: where each starts and stops.
    """
    coming = iter(trials)
    pool = Pool(next(coming), autocorrelation, folds)
    deque(map(pool.add, coming), maxlen=0)  # no candidate is held while the next one is made
    weights = _mixed(pool)
    mixture = np.zeros((len(pool.recipes), len(weights)))
    np.add.at(mixture, (pool.place, np.arange(len(weights))[:, None]), weights)
    rest = np.einsum("kj,kjn->nk", weights, pool.series)
    variance, errors = np.array(pool.variance), np.array(pool.error)
    unstable = (np.einsum("kj,kjb->kb", weights, pool.moved) ** 2).sum(axis=1)
    own = rest.var(axis=0) * pool.per_draw + unstable
    apart = _disagreement(np.array(pool.mean) - rest.mean(axis=0), errors, own)
    clearly = 1 - MARGIN / np.sqrt(len(rest))
    plain = own + apart > clearly * errors[0]
    plain |= pool.least.min(axis=1) >= clearly * variance[0]
    mixture[:, plain] = np.eye(len(mixture))[:, :1]
    rest[:, plain] = pool.plain[:, plain]
    unstable, apart = (np.where(plain, 0.0, one) for one in (unstable, apart))
    return Choice(pool.recipes, variance, np.array(pool.usable), mixture, rest, unstable, apart)


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
        errors: $v_j$, infinite where a candidate has no say, (trial, k).
        own: $v$, (k,).
    """
    weight = (errors.min(axis=0) / errors) ** 1.5
    beyond = np.where(np.isfinite(errors), apart**2 - 2 * (errors + own), 0.0)
    excess = (weight * beyond).sum(axis=0) / weight.sum(axis=0)
    return np.maximum(excess, 0.0)


def _mixed(pool: Pool) -> np.ndarray:
    """The weights of the best few candidates of each integrand, (k, few)."""
    usable = pool.least <= NEAR * pool.least.min(axis=1, keepdims=True)
    variance = np.where(np.isfinite(pool.least), pool.least, 1.0)
    moments = [_moments(*one) for one in zip(pool.series, variance, strict=True)]
    return _mix(np.array(moments), usable)


def _moments(series: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """The covariance of some candidates' series, (few, few), each as large as it is to be feared."""
    centred = series - series.mean(axis=1, keepdims=True)
    moments = centred @ centred.T / centred.shape[1]
    shown = np.diag(moments)
    scale = np.sqrt(np.maximum(variance / np.where(shown > 0, shown, variance), 1.0))
    return moments * np.outer(scale, scale)


def _mix(moments: np.ndarray, usable: np.ndarray) -> np.ndarray:
    r"""Weights of least variance, none negative, by exponentiated gradients: (k, few).

    Steps are as long as the largest moment allows, $w \propto w \exp(-M w / \max |M|)$. No step
    then makes the variance larger, and weights depend smoothly on the moments. Longer ones overshoot:
    rounding errors grow until they decide about the weights.

    Args:
        moments: the covariances of the candidates of each integrand, (k, few, few).
        usable: those that may have a weight, (k, few).
    """
    weights = usable / usable.sum(axis=1, keepdims=True)
    both = usable[:, :, None] & usable[:, None, :]
    moments = np.where(both, moments, 0.0)
    largest = np.abs(moments).max(axis=(1, 2), keepdims=True)
    moments = moments / np.maximum(largest, np.finfo(float).tiny)
    for _ in range(STEPS):
        weights = weights * np.exp(-(moments @ weights[..., None])[..., 0])
        weights /= weights.sum(axis=1, keepdims=True)
    return weights
