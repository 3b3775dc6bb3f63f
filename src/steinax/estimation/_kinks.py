"""Integrands that jump: made continuous, with the same expectation, by control variates with kinks."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from .._types import AnyArray
from ..data import Integrands, Sample, links, on_the_reals, stacked
from ..families import Marginal, marginals
from ..solvers import Folds, with_training
from ._choice import Choice
from ._splits import CrossFit, groups_of

SHAPING = 1500  # the most rows, about, that shape a control variate
ROWS = 1000  # by which the sensitivity to what shapes control variates is judged


def jumping(wanted: Integrands, sample: Sample) -> np.ndarray:
    """The integrands whose jumps are known, and that can be continued, (J,)."""
    if sample.weights is not None:
        return np.zeros(0, int)
    return np.array([i for i, step in enumerate(wanted.steps) if step is not None], int)


class Kinked:
    r"""Control variates of the jumps of $1\{a^\top x > t\}$, for several combinations $a^\top x$.

    What shapes them on a draw is computed without it and its neighbours.

    Args:
        along: the combinations $a$, (J, dim); they may repeat.
        sample: the draws.
        folds: where folds of rows start and stop.
        order: the order of rows in the folds, among the draws and the training points below them.
    """

    def __init__(self, along: np.ndarray, sample: Sample, folds: Folds, order: np.ndarray):
        training = len(order) > sample.size
        x, score = (each[order] for each in stacked(sample, training, on_the_reals))
        self.order, self.size = order, sample.size
        different, which = np.unique(along, axis=0, return_inverse=True)
        self.groups = []
        for start, stop in groups_of(folds):
            others = np.r_[:start, stop : len(x)]
            others = others[:: max(len(others) // SHAPING, 1)]
            found = marginals(x[others], score[others], different.T).of(which)
            self.groups.append((found, x[start:stop], score[start:stop]))

    def images(self, thresholds: np.ndarray) -> np.ndarray:
        """The control variates at thresholds, (J,), in the order of the rows: (rows, J)."""
        return np.concatenate([m.images(x, score, thresholds) for m, x, score in self.groups])

    def densities(self, thresholds: np.ndarray) -> np.ndarray:
        """Integrands whose expectations are the densities at thresholds, (J,): (rows, J)."""
        return np.concatenate([m.densities(x, score, thresholds) for m, x, score in self.groups])

    def sensitivity(
        self,
        thresholds: np.ndarray,
        residual: np.ndarray,
        of: Callable[..., AnyArray] = Marginal.images,
    ) -> np.ndarray:
        r"""The variance that comes from what shapes the control variates, relative to that of averages, (J,).

        It is that of the averages of all draws with the control variates of each group, as in
        `solvers.moves`: where they differ, the draws in the tails decide, and there are few of them. A
        jackknife counts twice what depends on two draws at a time, so half of it is used, except where
        candidates are chosen for what is left.

        Args:
            thresholds: of each combination, (J,).
            residual: indicators less their control variates, or the integrands of densities, (rows, J).
            of: gives control variates, or the integrands of densities.
        """
        parts = list(zip(*self.groups, strict=True))
        x, score = np.concatenate(parts[1]), np.concatenate(parts[2])
        rows = np.flatnonzero(self.order < self.size)
        rows = rows[:: max(len(rows) // ROWS, 1)]
        means = np.array(
            [of(each, x[rows], score[rows], thresholds).mean(axis=0) for each in parts[0]]
        )
        spread = residual[rows].var(axis=0)
        return len(means) * means.var(axis=0) * len(rows) / np.where(spread > 0, spread, 1.0)

    def density(self, thresholds: np.ndarray) -> np.ndarray:
        """The approximate densities of the combinations at thresholds, (J,)."""
        return np.mean([marginal.density(thresholds) for marginal, *_ in self.groups], axis=0)


def continued(
    wanted: Integrands, sample: Sample, folds: Folds, order: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    r"""Continuous integrands with the expectations of those that jump, (rows, J), and `sensitivity`, (J,).

    With $1\{c > t\}$ the jump and $g$ its control variate from `Kinks`, they are $1\{c > t\} - g$, and
    nothing is fitted to the integrand.

    Args:
        wanted: the integrands; those in question have a step.
        sample: the draws.
        folds: where folds of rows start and stop.
        order: the order of rows in the folds, among the draws and the training points below them.
    """
    steps = [step for step in wanted.steps if step is not None]
    kinked = Kinked(np.array([step.along for step in steps]), sample, folds, order)
    thresholds, size = (
        np.array(each) for each in zip(*((s.threshold, s.high - s.low) for s in steps), strict=True)
    )
    residual = wanted.rows[order][:, jumping(wanted, sample)] - size * kinked.images(thresholds)
    return residual, kinked.sensitivity(thresholds, residual / size)


def continuous(wanted: Integrands, sample: Sample) -> tuple[Integrands, np.ndarray]:
    """Replace integrands whose jumps are known by continuous ones of the same expectations.

    Returns:
        The integrands, and half of the `sensitivity` of each, 0 for the others, (k,).
    """
    which, sensitive = jumping(wanted, sample), np.zeros(len(wanted.names))
    if not len(which):
        return wanted, sensitive
    order, folds = _rows(sample, wanted.size - sample.size)
    rows = wanted.rows.copy()
    rows[np.ix_(order, which)], twice = continued(wanted, sample, folds, order)
    sensitive[which] = twice / 2
    values = rows[: sample.size].reshape(np.shape(wanted.values))
    training = None if wanted.training is None else rows[sample.size :]
    return Integrands(values, wanted.names, training), sensitive


def _rows(sample: Sample, training: int) -> tuple[np.ndarray, Folds]:
    """The order of draws and training points in folds, and where these start and stop."""
    folds = CrossFit().boundaries(sample.chains, sample.length)
    order, row_folds, _ = with_training(folds, training)
    return order, row_folds


def densities(
    values: AnyArray, grid: np.ndarray, sample: Sample
) -> tuple[np.ndarray, np.ndarray] | None:
    """Integrands whose expectations are the marginal density of a function of the draws on a grid.

    Args:
        values: of the function on the draws, (n,).
        grid: where the density is wanted, (J,).
        sample: the draws.

    Returns:
        The integrands, (n, J), and half of their `sensitivity`, (J,); None if the function is not one of a
        combination of coordinates.
    """
    (link,) = links(np.asarray(values).reshape(-1, 1), sample)
    if link is None or sample.weights is not None:
        return None
    at = np.array([link.combination(float(t)) for t in grid])
    if not np.isfinite(at).all():
        outside = grid[int(np.argmin(np.isfinite(at)))]
        raise ValueError(
            f"no draw can be at {outside:g}, where the density is 0: leave it out of the grid."
        )
    order, folds = _rows(sample, 0)
    kinked = Kinked(np.tile(link.along, (len(grid), 1)), sample, folds, order)
    slope = np.array([link.derivative(float(c)) for c in at])
    found = kinked.densities(at)
    sensitive = kinked.sensitivity(at, found, Marginal.densities) / 2
    return found / slope, sensitive


class Crossings(NamedTuple):
    """Quantiles, and what their errors are computed from."""

    which: np.ndarray  # the integrands that are functions of a combination of coordinates, (m,)
    value: np.ndarray  # the quantiles, (m, levels)
    below: (
        np.ndarray
    )  # continuous integrands whose expectations are the levels, (chain, draw, m levels)
    density: np.ndarray  # the approximate densities there, NaN beyond the draws, (m, levels)
    sensitivity: np.ndarray  # half of that of the integrands, see `Kinked`, (m, levels)


NEWTON = 3  # steps from a quantile of the draws to one of their continuous distribution function


def crossings(values: AnyArray, levels: np.ndarray, sample: Sample) -> Crossings:
    r"""Compute quantiles of integrands that are functions of a combination of coordinates.

    The distribution function is the average of indicators made continuous, as in `continued`. It has a small
    error, so that quantiles have one too, and it is smooth: a few Newton steps invert it.

    Args:
        values: of the integrands, (chain, draw, k).
        levels: of the quantiles, (levels,).
        sample: the draws.
    """
    shape, flat = np.shape(values), np.asarray(values, np.float64).reshape(sample.size, -1)
    found = links(flat, sample) if sample.weights is None else []
    which = np.array([i for i, link in enumerate(found) if link is not None], int)
    known = [link for link in found if link is not None]
    size = (len(which), len(levels))
    if not known:
        none = np.zeros(size)
        return Crossings(which, none, np.zeros((*shape[:2], 0)), none, none)
    repeated = [link for link in known for _ in levels]
    order, folds = _rows(sample, 0)
    kinked = Kinked(np.array([link.along for link in repeated]), sample, folds, order)
    x, _ = stacked(sample, False, on_the_reals)
    c = x @ np.array([link.along for link in known]).T
    at = np.quantile(c, levels, axis=0).T.ravel()
    first, last = (np.repeat(end(c, axis=0), len(levels)) for end in (np.min, np.max))
    wanted, c = np.tile(levels, len(known)), np.repeat(c, len(levels), axis=1)
    below = 1 - ((c > at) - kinked.images(at))
    for _ in range(NEWTON):
        at = np.clip(at + (wanted - below.mean(axis=0)) / kinked.density(at), first, last)
        below = 1 - ((c > at) - kinked.images(at))
    pairs = list(zip(repeated, at, strict=True))
    value = np.array([link.value(t) for link, t in pairs])
    slope = np.array([link.derivative(t) for link, t in pairs])
    # as without control variates, there is no quantile beyond the first and the last draw
    inside = (at > first) & (at < last) & (np.minimum(wanted, 1 - wanted) * sample.size >= 0.5)
    density = np.where(inside, kinked.density(at) / slope, np.nan)
    sensitive = kinked.sensitivity(at, below) / 2
    below = below.reshape(*shape[:2], -1)
    return Crossings(
        which, value.reshape(size), below, *(a.reshape(size) for a in (density, sensitive))
    )


def with_kinks(choice: Choice, which: np.ndarray, sensitive: np.ndarray) -> Choice:
    """Choose between an integrand and its continuation, by the variance of the estimate.

    Args:
        choice: for all integrands, and after them for the continuations of some.
        which: the integrands that have a continuation, (J,).
        sensitive: the `sensitivity` of these, (J,).
    """
    k = len(choice.error) - len(which)
    further = choice.error * np.concatenate([np.zeros(k), sensitive])
    error, unseen = choice.error + further, np.asarray(choice.held.unseen) + further
    candidates = [replace(candidate, kinks=True) for candidate in choice.candidates]
    variance, usable = np.full((len(candidates), k), np.inf), np.zeros((len(candidates), k), bool)
    variance[:, which], usable[:, which] = choice.variance[:, k:], choice.usable[:, k:]
    better = error[k:] < error[which]
    to, of = which[better], k + np.flatnonzero(better)
    weights = np.zeros((len(candidates), k))
    weights[:, to] = choice.mixture[:, of]
    mixture = choice.mixture[:, :k].copy()
    mixture[:, to] = 0.0
    source = np.arange(k)  # the column that is used for each integrand
    source[to] = of
    usable = np.concatenate([choice.usable[:, :k], usable])
    tried = usable.any(axis=1)
    held = choice.held
    return Choice(
        [each for each, one in zip([*choice.candidates, *candidates], tried, strict=True) if one],
        np.concatenate([choice.variance[:, :k], variance])[tried],
        usable[tried],
        np.concatenate([mixture, weights])[tried],
        replace(held, residual=held.residual[:, source], unseen=unseen[source]),
        error[source],
    )
