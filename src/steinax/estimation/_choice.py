"""Mixtures of the best candidates for each integrand, and the disagreement between candidates."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace

import equinox as eqx
import numpy as np

from .._show import html_table
from .._types import AnyArray
from ..chains import chain_statistics, pareto_khat
from ..citing import references_of
from ..solvers import Folds, HeldOut, moves
from ._candidates import (
    MARGIN,
    MIXED,
    NEAR,
    UNSTABLE,
    Candidate,
)
from ._draws import CandidateFit

# k-hat of expected variances from which, and to which, more of the jackknife counts
TAIL = (1.5, 2.0)
MANY = (100, 1000)  # numbers of rows from which, and to which, less of it counts
WEIGHT_STEPS = 200  # iterations that determine the weights of a mixture


class Candidates(eqx.Module):
    """Table of the candidates of an automatic estimate, with their variances and weights: print it.

    Attributes:
        left: the held-out variance of the residuals relative to the plain variance, (candidate, k); NaN
            if the search for an integrand did not lead to the candidate.
        mixture: the weight of each candidate in each integrand's control variate, (candidate, k).
        names: the names of the candidates, plain Monte Carlo first.
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
        """Select the candidates that were tried for some of the integrands."""
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
        """The geometric mean of `left` over the integrands that a candidate was tried for, (candidate,)."""
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
        """Format the name, residual variance and weight of each candidate, the best first."""
        mean, weight = self.mean, 100 * np.asarray(self.mixture).mean(axis=1)
        return [(self.names[i], f"{mean[i]:.3g}", f"{weight[i]:.0f}%") for i in mean.argsort()]


@dataclass(frozen=True)
class Choice:
    """Mixture of candidates for each integrand.

    Attributes:
        candidates: all candidates that were tried on all draws.
        variance: the variance of the residuals on held-out draws, (candidate, k).
        usable: which integrands may use each candidate, (candidate, k).
        mixture: the weight of each candidate, (candidate, k).
        held: the residuals of the mixtures, (n, k). Their `unseen` variance is that of the moves of the
            fits and of the disagreement between candidates.
        error: the variance of the estimates, (k,).
    """

    candidates: list[Candidate]
    variance: np.ndarray
    usable: np.ndarray
    mixture: np.ndarray
    held: HeldOut
    error: np.ndarray

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
        """The variance of the residuals relative to the plain variance, (candidate, k)."""
        return self.variance / self.variance[0]

    def table(self) -> Candidates:
        """Return the table of candidates, with variances relative to the plain one."""
        names, papers = tuple(map(str, self.candidates)), tuple(map(references_of, self.candidates))
        left = np.where(self.usable, self.left, np.nan)
        return Candidates(left, self.mixture, names, papers)


def choose(
    tried: Iterable[CandidateFit], autocorrelation: AnyArray, folds: Folds, chains: int
) -> Choice:
    """Mix the candidates of least held-out variance for each integrand.

    Plain Monte Carlo alone is chosen unless the mixture is clearly better, judged by its whole variance:
    that of its residuals, of the moves of its fits and of the disagreement between candidates. Both are
    variances of averages over chains: NUTS draws are often antithetic, and residuals need not be.

    Args:
        tried: the candidates; the first is plain Monte Carlo.
        autocorrelation: draws per independent draw, (k,).
        folds: the start and stop of each fold.
        chains: the number of chains, one after the other among the draws.
    """
    fits = iter(tried)
    pool = Pool(next(fits), autocorrelation, folds)
    deque(map(pool.add, fits), maxlen=0)  # keeps no candidate while the next is fitted
    weights = _mixed(pool)
    mixture = np.zeros((len(pool.candidates), len(weights)))
    np.add.at(mixture, (pool.place, np.arange(len(weights))[:, None]), weights)
    rows = np.einsum("kj,kjn->nk", weights, pool.series)
    n = len(pool.plain)
    beside = rows[n:] if len(rows) > n else None
    held = HeldOut(rows[:n], folds=folds, beside=beside, share=pool.share)
    residual, variance, errors = held.residual, np.array(pool.variance), np.array(pool.error)
    unstable = _instability(pool, weights, residual)
    unstable += held.excess * pool.per_draw
    mixture_variance = _of_average(residual, pool.per_draw, chains) + unstable
    apart = _disagreement(np.array(pool.mean) - residual.mean(axis=0), errors, mixture_variance)
    clearly = 1 - MARGIN / np.sqrt(len(residual))
    plain_variance = _of_average(pool.plain, pool.per_draw, chains)
    plain = mixture_variance + apart > clearly * plain_variance
    plain |= pool.least.min(axis=1) >= clearly * variance[0]
    mixture[:, plain] = np.eye(len(mixture))[:, :1]
    residual[:, plain] = pool.plain[:, plain]
    unseen = np.where(plain, 0.0, unstable + apart)
    held = replace(held, residual=residual, unseen=unseen)
    error = np.where(plain, plain_variance, mixture_variance + apart)
    return Choice(pool.candidates, variance, np.array(pool.usable), mixture, held, error)


def _of_average(series: np.ndarray, per_draw: np.ndarray, chains: int) -> np.ndarray:
    """Compute the variance of the average of a series, (k,); from its spread if chains are short."""
    error = chain_statistics(series.reshape(chains, -1, series.shape[1])).mcse
    return np.where(np.isfinite(error), error**2, series.var(axis=0) * per_draw)


class Pool:
    """Statistics of all candidates, and the residuals of the best few for each integrand.

    A candidate may be added again for integrands whose search leads to it later.

    Attributes:
        candidates: all candidates, plain Monte Carlo first.
        plain: the residuals of plain Monte Carlo, (n, k).
        share: of draws and training points in the spread of residuals, (rows,); None without these.
        variance: the variance of each candidate's residuals, usable or not, (candidate, k).
        usable: which integrands may use each candidate, (candidate, k).
        error: the variance of the estimates, with the moves of the fits; infinite if not usable,
            (candidate, k).
        mean: the estimates, 0 if not usable, (candidate, k).
        place: the indices of the best few candidates of each integrand, (k, few).
        least: the variances of these, larger if fits are `UNSTABLE`, infinite in empty slots, (k, few).
        series: the residuals of these on the draws, followed by those on the training points, (k, few, rows).
        moved: how far the fits of these candidates move, (k, few, fold).
        changes: how far their estimates move, see `jackknife_moves`; NaN if not known, (k, few, fold).
        counted: the fraction of their jackknife variance that counts, (k, few).
    """

    def __init__(self, plain: CandidateFit, autocorrelation: AnyArray, folds: Folds):
        n, k = plain.held.residual.shape
        self.plain, self.folds, self.share = plain.held.residual, folds, plain.held.share
        self.per_draw = np.asarray(autocorrelation) / n
        self.candidates: list[Candidate] = []
        self.variance: list[np.ndarray] = []
        self.usable: list[np.ndarray] = []
        self.error: list[np.ndarray] = []
        self.mean: list[np.ndarray] = []
        self.rows: dict[Candidate, int] = {}
        self.place = np.zeros((k, MIXED), int)
        self.least = np.full((k, MIXED), np.inf)
        training = 0 if plain.held.beside is None else len(plain.held.beside)
        self.series = np.zeros((k, MIXED, n + training))
        self.moved = np.zeros((k, MIXED, len(folds)))
        self.changes = np.zeros((k, MIXED, len(folds)))
        self.counted = np.ones((k, MIXED))
        self.add(plain)

    def add(self, fit: CandidateFit) -> None:
        """Add a candidate, or one that was added before for other integrands."""
        usable = fit.usable
        if self.candidates and not usable.any():
            return
        residual = fit.held.residual
        moved = moves(residual, fit.held.intercepts, self.folds)
        if not self.candidates:
            moved[:] = 0.0  # the moves of plain averages are in their variance
        changes = np.full_like(moved, np.nan)
        if fit.held.without is not None:
            changes = jackknife_moves(residual, fit.held.without, self.folds)
        counted = counted_of(fit.held)
        excess = jackknife_excess(changes, residual, self.folds, counted)
        excess = np.where(np.isfinite(excess), excess, (moved**2).sum(axis=0))
        error = fit.variance * self.per_draw + excess
        row = self._row(fit, usable)
        self.error[row] = np.where(usable, error, self.error[row])
        self.mean[row] = np.where(usable, residual.mean(axis=0), self.mean[row])
        slot = self.least.argmax(axis=1)
        worst = np.take_along_axis(self.least, slot[:, None], axis=1)[:, 0]
        pessimistic = np.fmax(fit.open_variance, error / (UNSTABLE * self.per_draw))
        better = np.flatnonzero(pessimistic < worst)
        at = (better, slot[better])
        self.place[at], self.least[at] = row, pessimistic[better]
        self.moved[at], self.changes[at] = moved[:, better].T, changes[:, better].T
        self.counted[at] = counted
        self.series[*at, : len(residual)] = residual[:, better].T
        if fit.held.beside is not None:
            self.series[*at, len(residual) :] = fit.held.beside[:, better].T

    def _row(self, fit: CandidateFit, usable: np.ndarray) -> int:
        """Return the row of a candidate in the lists, appending one if needed."""
        row = self.rows.get(fit.candidate)
        if row is not None and not (self.usable[row] & usable).any():
            self.usable[row] = self.usable[row] | usable
            return row
        self.rows[fit.candidate] = len(self.candidates)
        self.candidates.append(fit.candidate)
        self.variance.append(fit.variance)
        self.usable.append(usable)
        self.error.append(np.full(len(usable), np.inf))
        self.mean.append(np.zeros(len(usable)))
        return len(self.candidates) - 1


def _instability(pool: Pool, weights: np.ndarray, residual: np.ndarray) -> np.ndarray:
    """Compute the variance that a mixture's changes of fit between folds add to its series, (k,)."""
    used = np.where((weights > 0)[..., None], pool.changes, 0.0)
    changes = np.einsum("kj,kjb->bk", weights, used)
    counted = (weights * pool.counted).sum(axis=1)
    excess = jackknife_excess(changes, residual, pool.folds, counted)
    moved = np.einsum("kj,kjb->bk", weights, pool.moved)
    return np.where(np.isfinite(excess), excess, (moved**2).sum(axis=0))


def jackknife_moves(residual: AnyArray, without: AnyArray, folds: Folds) -> np.ndarray:
    r"""Compute how the estimate changes without each fold, beyond the change of the series: (fold, k).

    Without fold $B$ the estimate is $c_{(B)}$. If fits did not change, it would be the mean
    $\bar r_{(B)}$ of the series without the fold. The changes are $u_B = c_{(B)} - \bar r_{(B)}$, centred.
    In contrast, `solvers.moves` is about the intercepts of single fits.

    Args:
        residual: f - g on every draw, g fitted to the other folds, (n, k).
        without: $c_{(B)}$, (fold, k).
        folds: where each starts and stops.
    """
    without = np.asarray(without, np.float64)
    return without - without.mean(axis=0) - _without_each(residual, folds)


def jackknife_excess(
    moved: AnyArray, residual: AnyArray, folds: Folds, counted: float | AnyArray
) -> np.ndarray:
    r"""Compute the variance of the jackknife beyond that of the series, (k,).

    $$ \max\Bigl(0, \frac{K - 1}{K} \sum_B \bigl[\gamma (\bar r_{(B)} + u_B)^2 - \bar r_{(B)}^2\bigr]\Bigr) $$

    with $\bar r_{(B)}$ centred.

    Args:
        moved: $u_B$, (fold, k): see `jackknife_moves`.
        residual: the series, (n, k).
        folds: where each starts and stops.
        counted: $\gamma$, (k,) or a number: see `counted_of`.
    """
    alone = _without_each(residual, folds)
    excess = counted * ((moved + alone) ** 2).sum(axis=0) - (alone**2).sum(axis=0)
    return np.maximum((1 - 1 / len(folds)) * excess, 0.0)


def counted_of(held: HeldOut) -> float:
    r"""Compute the fraction of the jackknife's variance that counts, from a half to 1.

    The jackknife counts errors that depend on two draws at a time twice, and most of the error of a
    flexible fit, one with a penalty, is of this kind. So half of its variance counts, unless the expected
    variance of the errors has such a heavy tail, $\hat k$ above `TAIL`, that a few draws determine the
    fit. With few draws and training points (see `MANY`) a larger fraction counts, to allow for the choice
    among many candidates.
    """
    if not held.penalised or held.variance is None:
        return 1.0
    rows = len(held.residual) + (0 if held.beside is None else len(held.beside))
    k = np.nan_to_num(pareto_khat(np.asarray(held.variance, np.float64)[:, None])[0])
    of_tail = np.interp(k, TAIL, (0.5, 1.0))
    return float(max(of_tail, np.interp(np.log(rows), np.log(MANY), (1.0, 0.5))))


def _without_each(residual: AnyArray, folds: Folds) -> np.ndarray:
    """Compute the mean of a series without each fold, (fold, k), centred."""
    start, stop = np.array(folds).T
    sums, count = np.add.reduceat(np.asarray(residual, np.float64), start), (stop - start)[:, None]
    found = (sums.sum(axis=0) - sums) / (count.sum() - count)
    return found - found.mean(axis=0)


def _disagreement(
    apart: np.ndarray, errors: np.ndarray, mixture_variance: np.ndarray
) -> np.ndarray:
    r"""Compute the excess variance due to the disagreement between candidates, (k,).

    All candidates estimate the same numbers from the same draws. If they differ by more than their
    errors explain, a region of the target that was hardly visited matters more than any of them can
    detect, and the difference is the only sign of it. With estimates $c_j$ of variances $v_j$, and
    the mixture $c$ of variance $v$, the variance of $c$ is increased by

    $$ \max\Bigl(0, \sum_j w_j \bigl[(c_j - c)^2 - 2 (v_j + v)\bigr]\Bigr), \qquad
       w_j \propto v_j^{-3/2} . $$

    Args:
        apart: $c_j - c$, (candidate, k).
        errors: $v_j$, infinite if a candidate is not usable, (candidate, k).
        mixture_variance: $v$, (k,).
    """
    weight = (errors.min(axis=0) / errors) ** 1.5
    beyond = np.where(np.isfinite(errors), apart**2 - 2 * (errors + mixture_variance), 0.0)
    excess = (weight * beyond).sum(axis=0) / weight.sum(axis=0)
    return np.maximum(excess, 0.0)


def _mixed(pool: Pool) -> np.ndarray:
    """Compute the weights of the best few candidates of each integrand, (k, few)."""
    usable = pool.least <= NEAR * pool.least.min(axis=1, keepdims=True)
    variance = np.where(np.isfinite(pool.least), pool.least, 1.0)
    moments = [_moments(*pair) for pair in zip(pool.series, variance, strict=True)]
    return _mix(np.array(moments), usable)


def _moments(series: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Compute the covariance of residuals, scaled up to given variances, (few, few)."""
    centred = series - series.mean(axis=1, keepdims=True)
    moments = centred @ centred.T / centred.shape[1]
    observed = np.diag(moments)
    scale = np.sqrt(np.maximum(variance / np.where(observed > 0, observed, variance), 1.0))
    return moments * np.outer(scale, scale)


def _mix(moments: np.ndarray, usable: np.ndarray) -> np.ndarray:
    r"""Compute the non-negative weights of least variance by exponentiated gradients, (k, few).

    The step size is the inverse of the largest moment, $w \propto w \exp(-M w / \max |M|)$, so that no
    step increases the variance, and weights depend smoothly on the moments. Longer steps overshoot:
    rounding errors grow until they determine the weights.

    Args:
        moments: the covariances of the candidates of each integrand, (k, few, few).
        usable: the candidates that may have a weight, (k, few).
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
