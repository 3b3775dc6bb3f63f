"""Make integrands that jump continuous, with the same expectation, by control variates with kinks."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from .._types import AnyArray
from ..chains import chain_statistics
from ..data import Integrands, Sample, Step, links, on_the_reals, stacked
from ..families import along_of, corners_of, curved_of
from ..solvers import Folds, with_training
from ._choice import Choice
from ._splits import CrossFit, groups_of

SHAPING = 1500  # the most rows, about, that shape a control variate
ROWS = 1000  # by which the sensitivity to what shapes control variates is judged
# Over the degrees of freedom: the relative variance that choosing among candidates adds. For events of
# probabilities 0.011 and 0.05 (tests/estimation/test_kinks.py) 24 suits; without it, 95% intervals cover 86%.
LUCK = 24.0


class Kinked:
    """Control variates of jumps, each computed without the draw that it is used on and its neighbours.

    Args:
        shape: shapes control variates by draws and scores, (rows, dim) each.
        sample: the draws.
        folds: where folds of rows start and stop.
        order: the order of rows in the folds, among the draws and the training points below them.
    """

    def __init__(
        self,
        shape: Callable[[np.ndarray, np.ndarray], Any],
        sample: Sample,
        folds: Folds,
        order: np.ndarray,
    ):
        training = len(order) > sample.size
        x, score = (each[order] for each in stacked(sample, training, on_the_reals))
        self.groups = []
        for start, stop in groups_of(folds):
            others = np.r_[:start, stop : len(x)]
            others = others[:: max(len(others) // SHAPING, 1)]
            found = shape(x[others], score[others])
            self.groups.append((found, x[start:stop], score[start:stop]))
        self.judged = np.flatnonzero(order < sample.size)
        self.judged = self.judged[:: max(len(self.judged) // ROWS, 1)]
        self.judges = x[self.judged], score[self.judged]

    def images(self, thresholds: np.ndarray) -> np.ndarray:
        """Compute the control variates at thresholds, (..., J), in the order of the rows: (rows, J)."""
        return np.concatenate([s.images(x, score, thresholds) for s, x, score in self.groups])

    def fluxes(self, thresholds: np.ndarray) -> np.ndarray:
        """Compute integrands whose expectations are the densities at thresholds, (J,): (rows, J)."""
        return np.concatenate([s.fluxes(x, score, thresholds) for s, x, score in self.groups])

    def means(self, thresholds: np.ndarray, of: str = "images") -> np.ndarray:
        """Average some draws with the control variates, or fluxes, of each group, (groups, J)."""
        shapes = (shape for shape, *_ in self.groups)
        return np.array([getattr(s, of)(*self.judges, thresholds).mean(axis=0) for s in shapes])

    def sensitivity(self, means: np.ndarray, residual: np.ndarray) -> np.ndarray:
        r"""Compute the variance due to the shape of the control variates, relative to that of averages, (J,).

        It is the variance between the averages of all draws with the control variates of each group, as
        in `solvers.moves`. These averages differ where few draws, those in the tails, determine the
        shape. A jackknife counts errors that depend on two draws at a time twice, so half of it is
        returned.

        Args:
            means: of `means`, (groups, J).
            residual: indicators less their control variates, or the integrands of densities, (rows, J).
        """
        spread = residual[self.judged].var(axis=0)
        variance = len(means) * means.var(axis=0) * len(self.judged)
        return variance / np.where(spread > 0, spread, 1.0) / 2

    def density(self, thresholds: np.ndarray) -> np.ndarray:
        """Compute the approximate densities of the combinations at thresholds, (J,)."""
        return np.mean([shape.marginal.density(thresholds) for shape, *_ in self.groups], axis=0)


def _shaping(along: np.ndarray) -> Callable[[np.ndarray, np.ndarray], Any]:
    """Shape control variates of jumps of combinations, (J, 1, dim), or of pairs of them, (J, 2, dim)."""
    different, which = np.unique(along, axis=0, return_inverse=True)
    columns = np.moveaxis(different, 0, -1)
    if len(columns) == 1:
        return lambda x, score: along_of(x, score, columns[0]).of(which)
    return lambda x, score: corners_of(x, score, columns).of(which)


def continued(
    wanted: Integrands, sample: Sample, folds: Folds, order: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    r"""Make integrands that jump continuous, (rows, J); also return their `sensitivity`, (J,).

    With $1\{c > t\}$ the jump and $g$ its control variate from `Kinks`, the result is $1\{c > t\} - g$,
    which has the same expectation. Nothing is fitted to the integrand.

    Args:
        wanted: the integrands; only those with steps are treated.
        sample: the draws.
        folds: where folds of rows start and stop.
        order: the order of rows in the folds, among the draws and the training points below them.
    """
    which = wanted.jumping
    residual, means, kinked = wanted.rows[order][:, which], np.zeros(()), None
    for shape, some in _kinds([(j, s) for j, i in enumerate(which) for s in wanted.steps[i]]):
        kinked = Kinked(shape, sample, folds, order)
        thresholds = np.array([step.threshold for _, step in some]).T
        thresholds = thresholds if len(thresholds) > 1 else thresholds[0]
        share = np.zeros((len(some), len(which)))
        for row, (j, step) in enumerate(some):
            share[row, j] = step.size
        residual = residual - kinked.images(thresholds) @ share
        means = means + kinked.means(thresholds) @ share
    assert kinked is not None
    return residual, kinked.sensitivity(means, residual)


def _kinds(
    steps: list[tuple[int, Step]],
) -> Iterator[tuple[Callable[..., Any], list[tuple[int, Step]]]]:
    """Yield steps that are treated together, and what shapes their control variates."""
    flat = [isinstance(step.along, np.ndarray) for _, step in steps]
    for each in compress(steps, np.logical_not(flat)):
        yield partial(curved_of, function=each[1].along), [each]
    for count in (1, 2):
        some = [each for each in compress(steps, flat) if len(each[1].threshold) == count]
        if some:
            yield _shaping(np.array([step.along for _, step in some])), some


def continuous(wanted: Integrands, sample: Sample) -> tuple[Integrands, np.ndarray]:
    """Replace integrands whose jumps are known by continuous ones of the same expectations.

    Returns:
        The integrands, and the `sensitivity` of each, 0 for the others, (k,).
    """
    which, sensitive = wanted.jumping, np.zeros(len(wanted.names))
    if not len(which):
        return wanted, sensitive
    order, folds = _rows(sample, wanted.size - sample.size)
    rows = wanted.rows.copy()
    rows[np.ix_(order, which)], sensitive[which] = continued(wanted, sample, folds, order)
    values = rows[: sample.size].reshape(np.shape(wanted.values))
    training = None if wanted.training is None else rows[sample.size :]
    return Integrands(values, wanted.names, training), sensitive


def _rows(sample: Sample, training: int) -> tuple[np.ndarray, Folds]:
    """Return the order of draws and training points in folds, and where these start and stop."""
    folds = CrossFit().boundaries(sample.chains, sample.length)
    order, row_folds, _ = with_training(folds, training)
    return order, row_folds


def densities(
    values: AnyArray, grid: np.ndarray, sample: Sample
) -> tuple[np.ndarray, np.ndarray] | None:
    """Compute integrands whose expectations are the marginal density of a function on a grid.

    Args:
        values: of the function on the draws, (n,).
        grid: where the density is wanted, (J,).
        sample: the draws.

    Returns:
        The integrands, (n, J), and their `sensitivity`, (J,); None if the function is not one of a
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
    kinked = Kinked(_shaping(np.tile(link.along, (len(grid), 1, 1))), sample, folds, order)
    slope = np.array([link.derivative(float(c)) for c in at])
    found = kinked.fluxes(at)
    sensitive = kinked.sensitivity(kinked.means(at, "fluxes"), found)
    return found / slope, sensitive


class Crossings(NamedTuple):
    """Quantiles, and the quantities that their errors are computed from."""

    which: np.ndarray  # the integrands that are functions of a combination of coordinates, (m,)
    levels: np.ndarray  # of the quantiles, (levels,)
    value: np.ndarray  # the quantiles, (m, levels)
    below: np.ndarray  # continuous integrands of expectations `levels`, (chain, draw, m levels)
    density: np.ndarray  # the approximate densities there, NaN beyond the draws, (m, levels)
    sensitivity: np.ndarray  # of the integrands, see `Kinked`, (m, levels)

    def refined(self, mean: AnyArray, error: AnyArray) -> tuple[np.ndarray, np.ndarray]:
        """Compute quantiles by a Newton step from estimates of the levels, and their standard errors.

        Args:
            mean: estimates of the expectations of `below`, (m levels,).
            error: their standard errors, (m levels,).
        """
        mean, error = (np.reshape(each, self.value.shape) for each in (mean, error))
        value = self.value + (self.levels - mean) / self.density
        return value, error * np.sqrt(1 + self.sensitivity) / self.density


NEWTON = 3  # steps from a quantile of the draws to one of their continuous distribution function


def crossings(values: AnyArray, levels: np.ndarray, sample: Sample) -> Crossings:
    r"""Compute quantiles of integrands that are functions of a combination of coordinates.

    The distribution function is the average of indicators made continuous, as in `continued`. Its error
    is small, and so are the errors of the quantiles. It is smooth, so a few Newton steps invert it.

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
        return Crossings(which, levels, none, np.zeros((*shape[:2], 0)), none, none)
    repeated = [link for link in known for _ in levels]
    order, folds = _rows(sample, 0)
    along = np.array([link.along[None] for link in repeated])
    kinked = Kinked(_shaping(along), sample, folds, order)
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
    sensitive = kinked.sensitivity(kinked.means(at), below)
    below = below.reshape(*shape[:2], -1)
    value, density, sensitive = (each.reshape(size) for each in (value, density, sensitive))
    return Crossings(which, levels, value, below, density, sensitive)


def with_kinks(choice: Choice, which: np.ndarray, sensitive: np.ndarray, chains: int) -> Choice:
    r"""Choose between an integrand and its continuation, by the variance of the estimate.

    Few draws near a rare threshold decide which candidates look best, so the variance of a continuation
    is multiplied by $1 + 24 / \nu$, with $\nu$ the degrees of freedom of its residual.

    Args:
        choice: for all integrands, and after them for the continuations of some.
        which: the integrands that have a continuation, (J,).
        sensitive: the `sensitivity` of these, (J,); it counts twice, because candidates are chosen for
            the residual.
        chains: the number of chains, one after the other among the draws.
    """
    k = len(choice.error) - len(which)
    rows = choice.held.residual[:, k:].reshape(chains, -1, len(which))
    lucky = np.nan_to_num(LUCK / chain_statistics(rows).freedom)
    further = choice.error * np.concatenate([np.zeros(k), 2 * sensitive + lucky])
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
