"""The best candidates for each integrand, mixed, and how far all of them disagree."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace

import equinox as eqx
import numpy as np

from .._show import html_table
from .._types import AnyArray
from ..citing import references_of
from ..data import Integrands, Sample
from ..solvers import CrossFitted, Folds, HeldOut
from ._candidates import (
    MARGIN,
    MIXED,
    NEAR,
    PERFECT,
    UNSTABLE,
    WEIGHED,
    WORST,
    Candidate,
)
from ._draws import AbstractDraws, Trial, integration
from ._search import trials
from ._splits import moves

WEIGHT_STEPS = 200  # of the search for the weights of a mixture


class Candidates(eqx.Module):
    """What an automatic estimate tried on all draws, how it scored and how it was mixed: print it.

    Attributes:
        left: the held-out variance that each leaves, as a part of the plain one, (candidate, k); NaN
            where an integrand's own search did not lead to it.
        mixture: the weight of each in each integrand's control variate, (candidate, k).
        names: of the candidates, plain Monte Carlo first.
        papers: the keys of the papers behind each candidate, for `citations`.

    >>> import numpy as np
    >>> print(
    ...     Candidates(np.array([[1.0], [0.01]]), np.array([[0], [1]]), ("plain", "Polynomial(1)"))
    ... )
    variance left (geometric mean)  weight  candidate
                              0.01     100%  Polynomial(1)
                                 1       0%  plain
    """

    left: AnyArray
    mixture: AnyArray
    names: tuple[str, ...] = eqx.field(static=True)
    papers: tuple[tuple[str, ...], ...] = eqx.field(static=True, default=())

    def of(self, some: list[int]) -> "Candidates":
        """What was tried for some of the integrands."""
        left = np.asarray(self.left)[:, some]
        rows = np.flatnonzero(~np.isnan(left).all(axis=1))
        mixture, names = np.asarray(self.mixture)[:, some], tuple(self.names[i] for i in rows)
        papers = tuple(self.papers[i] for i in rows) if self.papers else ()
        return Candidates(left[rows], mixture[rows], names, papers)

    @property
    def references(self) -> tuple[str, ...]:
        """The keys of the papers behind the candidates that have a weight."""
        used = np.asarray(self.mixture).any(axis=1)
        return tuple(key for keys, u in zip(self.papers, used, strict=False) if u for key in keys)

    @property
    def mean(self) -> np.ndarray:
        """The geometric mean of `left` over the integrands that it was tried for, (candidate,)."""
        return np.exp(np.nanmean(np.log(np.maximum(self.left, np.finfo(float).tiny)), axis=1))

    def __repr__(self) -> str:
        heading = "variance left (geometric mean)  weight  candidate"
        lines = [f"{left:>30}  {weight:>6}  {name}" for name, left, weight in self._rows()]
        return "\n".join([heading, *lines])

    __str__ = __repr__

    def _repr_html_(self) -> str:
        headings = ("candidate", "variance left (geometric mean)", "weight")
        return html_table(headings, self._rows(), [])

    def _rows(self) -> list[tuple[str, str, str]]:
        """Name, variance left and weight of each, the best first."""
        mean, weight = self.mean, 100 * np.asarray(self.mixture).mean(axis=1)
        return [(self.names[i], f"{mean[i]:.3g}", f"{weight[i]:.0f}%") for i in mean.argsort()]


@dataclass(frozen=True)
class Choice:
    """For each integrand a mixture of candidates.

    Attributes:
        candidates: all that were tried on all draws.
        variance: that each leaves of each integrand on held-out draws, (candidate, k).
        usable: which integrands asked for it, (candidate, k).
        mixture: the weight of each candidate, (candidate, k).
        held: the mixed residuals, (n, k). Unseen in them is how far the fits move, and how far
            candidates disagree.
    """

    candidates: list[Candidate]
    variance: np.ndarray
    usable: np.ndarray
    mixture: np.ndarray
    held: HeldOut

    @property
    def names(self) -> tuple[str, ...]:
        """The leading candidate of each integrand, and how many are mixed with it."""
        return tuple(self._name(weights) for weights in self.mixture.T)

    def _name(self, weights: np.ndarray) -> str:
        more = int((weights > 0.05).sum()) - 1
        leading = str(self.candidates[int(weights.argmax())])
        return leading if more < 1 else f"{leading}, mixed with {more} more"

    @property
    def left(self) -> np.ndarray:
        """The variance that each candidate leaves, as a part of the plain one, (candidate, k)."""
        return self.variance / self.variance[0]

    def table(self) -> Candidates:
        """What was tried, in terms of the plain variance."""
        names, papers = tuple(map(str, self.candidates)), tuple(map(references_of, self.candidates))
        left = np.where(self.usable, self.left, np.nan)
        return Candidates(left, self.mixture, names, papers)


def automatic(wanted: Integrands, sample: Sample, ess: AnyArray) -> tuple[Choice, AbstractDraws]:
    """Try candidates on the draws, and choose for each integrand.

    Args:
        wanted: the integrands.
        sample: the draws and scores.
        ess: the effective sample sizes of the integrands, (k,).
    """
    asked = integration(wanted, sample, ess)
    draws, scale = asked.draws, asked.scale
    choice = choose(trials(draws), asked.autocorrelation, draws.folds)
    held, plain = choice.held, choice.mixture[0] == 1
    straight = ", a funnel straightened" if draws.straightened else ""
    tried = f"chosen among {len(choice.candidates)} candidates"
    note = f"{tried}, cross-fitted in {len(draws.folds)} folds{straight}"
    residual = np.where(plain, asked.f, held.residual * scale)  # plain to the last bit
    held = HeldOut(residual, note, folds=draws.folds, unseen=held.unseen * scale**2)
    return replace(choice, held=held), draws


def for_all(
    wanted: Integrands, sample: Sample, ess: AnyArray
) -> tuple[CrossFitted, Candidate, str]:
    """The one candidate that serves all integrands best, fitted, itself, and how it was chosen.

    Among those that make no integrand much worse it leaves the least variance, in the geometric mean
    over integrands of parts of the plain one. What interpolates smooth integrands perfectly can
    multiply the variance of others by thousands.
    """
    if sample.size > WEIGHED:
        raise ValueError(
            f"{sample.size} draws: weights are chosen without a family for up to {WEIGHED}. Give one, such "
            "as weigh(sample, Polynomial(2)), or thin the draws."
        )
    choice, draws = automatic(wanted, sample, ess)
    own = np.array([candidate.own for candidate in choice.candidates])
    left = np.where(np.isfinite(choice.left), choice.left, np.inf)  # of all, whoever asked for it
    mean = np.log(np.maximum(left, PERFECT)).mean(axis=1)
    serves = (left.max(axis=1) <= WORST) & ~own
    candidate = choice.candidates[int(np.argmin(np.where(serves, mean, np.inf)))]
    return draws.fitted(candidate), candidate, choice.held.note


def choose(tried: Iterable[Trial], autocorrelation: AnyArray, folds: Folds) -> Choice:
    """Mix the candidates of least held-out variance for each integrand.

    Plain Monte Carlo alone is the choice unless the mixture is clearly better, judged by all of the
    variance that is to be reckoned with: its residuals, its fits' moves and the disagreement.

    Args:
        tried: the candidates; the first is plain Monte Carlo.
        autocorrelation: draws per independent draw, (k,).
        folds: where each starts and stops.
    """
    coming = iter(tried)
    pool = Pool(next(coming), autocorrelation, folds)
    deque(map(pool.add, coming), maxlen=0)  # no candidate is held while the next one is made
    weights = _mixed(pool)
    mixture = np.zeros((len(pool.candidates), len(weights)))
    np.add.at(mixture, (pool.place, np.arange(len(weights))[:, None]), weights)
    residual = np.einsum("kj,kjn->nk", weights, pool.series)
    variance, errors = np.array(pool.variance), np.array(pool.error)
    unstable = (np.einsum("kj,kjb->kb", weights, pool.moved) ** 2).sum(axis=1)
    own = residual.var(axis=0) * pool.per_draw + unstable
    apart = _disagreement(np.array(pool.mean) - residual.mean(axis=0), errors, own)
    clearly = 1 - MARGIN / np.sqrt(len(residual))
    plain = own + apart > clearly * errors[0]
    plain |= pool.least.min(axis=1) >= clearly * variance[0]
    mixture[:, plain] = np.eye(len(mixture))[:, :1]
    residual[:, plain] = pool.plain[:, plain]
    unseen = np.where(plain, 0.0, unstable + apart)
    held = HeldOut(residual, folds=folds, unseen=unseen)
    return Choice(pool.candidates, variance, np.array(pool.usable), mixture, held)


class Pool:
    """What the choice has to know of all candidates, in little memory.

    A candidate may come again, for other integrands that asked for it later.

    Attributes:
        candidates: the first is plain Monte Carlo.
        plain: the residuals of plain Monte Carlo, (n, k).
        variance: of each candidate, whoever asked for it, (candidate, k).
        usable: which integrands may use it, (candidate, k).
        error: the variance of its estimate, its moves included; infinite if not usable, (candidate, k).
        mean: its estimate, 0 if not usable, (candidate, k).
        place: the best few candidates of each integrand, (k, few).
        least: their variances, more where fits are `UNSTABLE`, and infinite where there are not so many,
            (k, few).
        series: their residuals, (k, few, n).
        moved: how far their fits move, (k, few, fold).
    """

    def __init__(self, plain: Trial, autocorrelation: AnyArray, folds: Folds):
        n, k = plain.held.residual.shape
        self.plain, self.folds = plain.held.residual, folds
        self.per_draw = np.asarray(autocorrelation) / n
        self.candidates: list[Candidate] = []
        self.variance: list[np.ndarray] = []
        self.usable: list[np.ndarray] = []
        self.error: list[np.ndarray] = []
        self.mean: list[np.ndarray] = []
        self.rows: dict[Candidate, int] = {}
        self.place = np.zeros((k, MIXED), int)
        self.least = np.full((k, MIXED), np.inf)
        self.series = np.zeros((k, MIXED, n))
        self.moved = np.zeros((k, MIXED, len(folds)))
        self.add(plain)

    def add(self, trial: Trial) -> None:
        """One more candidate, or one that other integrands asked for before."""
        usable = trial.usable
        if self.candidates and not usable.any():
            return
        residual = trial.held.residual
        moved = moves(residual, trial.held.intercepts, self.folds)
        if not self.candidates:
            moved[:] = 0.0  # plain averages move as averages do
        error = trial.variance * self.per_draw + (moved**2).sum(axis=0)
        row = self._row(trial, usable)
        self.error[row] = np.where(usable, error, self.error[row])
        self.mean[row] = np.where(usable, residual.mean(axis=0), self.mean[row])
        slot = self.least.argmax(axis=1)
        worst = np.take_along_axis(self.least, slot[:, None], axis=1)[:, 0]
        feared = np.fmax(trial.open_variance, error / (UNSTABLE * self.per_draw))
        better = np.flatnonzero(feared < worst)
        at = (better, slot[better])
        self.place[at], self.least[at] = row, feared[better]
        self.series[at], self.moved[at] = residual[:, better].T, moved[:, better].T

    def _row(self, trial: Trial, usable: np.ndarray) -> int:
        """Where the numbers of a candidate stand."""
        row = self.rows.get(trial.candidate)
        if row is not None and not (self.usable[row] & usable).any():
            self.usable[row] = self.usable[row] | usable
            return row
        self.rows[trial.candidate] = len(self.candidates)
        self.candidates.append(trial.candidate)
        self.variance.append(trial.variance)
        self.usable.append(usable)
        self.error.append(np.full(len(usable), np.inf))
        self.mean.append(np.zeros(len(usable)))
        return len(self.candidates) - 1


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
    for _ in range(WEIGHT_STEPS):
        weights = weights * np.exp(-(moments @ weights[..., None])[..., 0])
        weights /= weights.sum(axis=1, keepdims=True)
    return weights
