"""Several related posteriors of few draws each: what one fit learns serves the others."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import equinox as eqx
import jax
import numpy as np
from numpy.typing import ArrayLike

from ..citing import references_of
from ..data import AffineMap, Sample
from ..estimation import AuditMode, CrossFit, Estimate, with_audit
from ..families import AbstractFamily, KernelTranslates, Polynomial
from ..kernels import MedianHeuristic, SquaredExponential
from ..solvers import HeldOut
from .coupling import (
    PARTS,
    Coupling,
    CrossFitted,
    Points,
    Terms,
    cross_fit,
    kernels_of,
    standardised,
    system_of,
    terms_of,
)
from .tasks import Specs, Tasks, tasks_of

RANK = 2  # columns of W
MARGIN = 3.0  # standard errors below the leading fit's variance that another must be, roughly
PLAIN = "plain Monte Carlo"


class Related(eqx.Module):
    """The estimates of several related tasks: one `Estimate` for each, and how the tasks are related.

    An index gives a task's `Estimate`; numbers of all of them are arrays (task, k).

    Attributes:
        estimates: one for each task, in order; `chosen` says which fit each integrand got.
        relation: the matrix between tasks that was learned, scaled to correlations, (task, task).

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(3, 1, 20, 1))
    >>> found = sx.contrib.estimate_related("x", [sx.Sample(one, -one) for one in x])
    >>> len(found), found.value.shape, found.relation.shape
    (3, (3, 1), (3, 3))
    """

    references: ClassVar[tuple[str, ...]] = ("sun2021vector",)
    estimates: tuple[Estimate, ...]
    relation: np.ndarray

    @property
    def value(self) -> np.ndarray:
        """The estimates, (task, k)."""
        return self._stacked("value")

    @property
    def mcse(self) -> np.ndarray:
        """Their Monte Carlo standard errors, (task, k)."""
        return self._stacked("mcse")

    @property
    def plain_value(self) -> np.ndarray:
        """The averages of f, (task, k)."""
        return self._stacked("plain_value")

    @property
    def plain_mcse(self) -> np.ndarray:
        """Their Monte Carlo standard errors, (task, k)."""
        return self._stacked("plain_mcse")

    @property
    def worth(self) -> np.ndarray:
        """How many times as many plain draws would be as accurate, (task, k)."""
        return self._stacked("worth")

    @property
    def chosen(self) -> tuple[tuple[str, ...], ...]:
        """The fit that each integrand of each task got."""
        return tuple(one.chosen for one in self.estimates)

    def interval(self, level: float = 0.95) -> np.ndarray:
        """Intervals that cover the expectations with this probability, (task, k, 2)."""
        return np.stack([one.interval(level) for one in self.estimates])

    def _stacked(self, name: str) -> np.ndarray:
        return np.stack([getattr(one, name) for one in self.estimates])

    def __len__(self) -> int:
        return len(self.estimates)

    def __getitem__(self, index: int) -> Estimate:
        return self.estimates[index]

    def __iter__(self) -> Iterator[Estimate]:
        return iter(self.estimates)

    def __repr__(self) -> str:
        flat = [name for row in self.chosen for name in row]
        counts = ", ".join(f"{flat.count(name)} {name}" for name in dict.fromkeys(flat))
        low, middle, high = np.nanquantile(self.worth, [0.05, 0.5, 0.95])
        return (
            f"Related({len(self)} tasks, {len(self.estimates[0].names)} integrands: {counts})\n"
            f"  worth {middle:.3g} times as many draws ({low:.3g} to {high:.3g})"
        )


def estimate_related(
    f: Specs,
    samples: Sequence[Any],
    family: AbstractFamily | None = None,
    *,
    relation: ArrayLike | None = None,
    rank: int = RANK,
    audit: AuditMode = "raise",
) -> Related:
    r"""Estimate expectations under several related posteriors of few draws each, together.

    The control variates $g_t$ of all tasks are one vector-valued function, with the kernel

    $$ K\big((x, t), (y, t')\big) = B_{tt'}\, \sum_j w_j\, k_j(x, y) , $$

    where $k_j$ are Stein kernels, each with the scores of the tasks that $x$ and $y$ come from, so
    that $g_t$ has mean zero under its own target. What the tasks share,
    $B = W W^\top + \operatorname{diag}(v)$, the weights $w_j$ and the noise are learned by the likelihood
    of a Gaussian process, without the draws that the fit is used on. Every task keeps its own intercept,
    estimate and error bar. A task for which this is no better has its own fit, or the plain average:
    `chosen` says which.

    Args:
        f: the integrands, as for `estimate`, for all tasks; or a list with those of each task.
        samples: one for each task, of one dimension; chains and lengths may differ.
        family: a linear family, whose terms are the $k_j$; polynomials and two kernels by default.
        relation: $B$, (task, task), if it is known.
        rank: the number of columns of $W$.
        audit: as for `estimate`, for every sample.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(5, 1, 20, 1))
    >>> x = x + np.arange(5).reshape(5, 1, 1, 1) / 5
    >>> samples = [sx.Sample(one, t / 5 - one) for t, one in enumerate(x)]
    >>> found = sx.contrib.estimate_related(lambda x: x[0] ** 3, samples)
    >>> bool(np.median(found.worth) > 100)
    True
    """
    if rank < 1:
        raise ValueError(f"rank={rank}: give 1 or more.")
    tasks, family = tasks_of(f, samples, audit), family or default_family()
    known = None if relation is None else covariance(relation, tasks.number)
    rank = min(rank, tasks.number)
    fits = {
        "alone": cross_fit(tasks, family, False, rank, np.eye(tasks.number)),
        "related": cross_fit(tasks, family, True, rank, known),
        "related, in own coordinates": cross_fit(tasks, family, False, rank, known),
    }
    papers = (*Related.references, *references_of(family, CrossFit()))
    return Related(estimates_of(tasks, fits, audit, papers), fits["related"].correlation())


def fit_related(
    f: Specs,
    samples: Sequence[Sample],
    relation: ArrayLike,
    family: AbstractFamily,
    *,
    penalty: float = 1e-3,
) -> "CoupledFit":
    r"""Fit the control variates of several tasks together, to all draws, with a relation that is known.

    With $A = B_{tt'} \sum_j k_j / \text{penalty} + 1$ and an intercept for each task, one factorisation
    serves all tasks and integrands. `estimate_related` learns the relation and leaves out folds.

    Args:
        f: the integrands, as for `estimate_related`.
        samples: one for each task.
        relation: $B$, (task, task).
        family: a linear family; its terms, each divided by its mean variance under all tasks, are
            averaged.
        penalty: on the norm of the kernel, relative to the mean variance of the kernel.
    """
    tasks = tasks_of(f, samples)
    known = covariance(relation, tasks.number)
    with jax.enable_x64(True):
        x, score, coordinates = standardised(*tasks.rows)
        terms = terms_of(family, x)
        grams = kernels_of(terms, (x, score), (x, score))
    sizes = np.diagonal(grams, axis1=1, axis2=2).mean(axis=1)
    coupling = Coupling(known, 1 / penalty, np.full(len(terms), 1 / len(terms)))
    kernel = coupling.kernel(grams / sizes[:, None, None], tasks.task, tasks.task)
    intercept, alpha = system_of(kernel, tasks.task, tasks.number).coefficients(tasks.f)
    return CoupledFit(coupling, terms, coordinates, (x, score), tasks.task, sizes, alpha, intercept)


class CoupledFit(eqx.Module):
    r"""Control variates of several tasks, fitted together: $g_t$ has mean zero under target $t$.

    Call it with the number of a task and draws with scores of that task's target.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(2, 1, 30, 1))
    >>> samples = [sx.Sample(one, -one) for one in x]
    >>> g = sx.contrib.fit_related("x", samples, np.ones((2, 2)), sx.KernelTranslates())
    >>> g(1, x[0, 0], -x[0, 0]).shape
    (30, 1)
    """

    coupling: Coupling
    terms: Terms
    coordinates: AffineMap
    points: Points  # all draws and scores, in these coordinates
    task: np.ndarray
    sizes: np.ndarray  # mean variances of the terms' kernels, (term,)
    alpha: np.ndarray
    intercept: np.ndarray  # of each task, (task, k)

    def __call__(self, task: int, draws: ArrayLike, scores: ArrayLike) -> np.ndarray:
        """The control variates of one task at some draws: (n, k)."""
        x, score = (np.asarray(part, np.float64) for part in (draws, scores))
        with jax.enable_x64(True):
            grams = kernels_of(self.terms, self.coordinates(x, score), self.points)
        grams = grams / self.sizes[:, None, None]
        return self.coupling.kernel(grams, np.full(len(x), task), self.task) @ self.alpha


def estimates_of(
    tasks: Tasks, fits: dict[str, CrossFitted], audit: AuditMode, papers: tuple[str, ...] = ()
) -> tuple[Estimate, ...]:
    """The estimate of every task.

    The leading fit of an integrand has the least held-out variance over all tasks, in the geometric
    mean: of one task alone 20 draws say little. A task has another fit only where that is clearly
    better, and the plain average where the leading fit's error bar is longer.
    """
    names, each = tuple(fits), tuple(fits.values())
    variance = np.array([_variances(tasks, fit) for fit in each])  # (fit, task, k)
    leading = np.log(variance).mean(axis=1).argmin(axis=0)
    note = f"{tasks.number} related tasks, relation learned {PARTS} times"
    estimates = []
    for t, folds in enumerate(tasks.folds()):
        ours, k = variance[:, t], np.arange(variance.shape[-1])
        best, enough = ours.argmin(axis=0), 1 - MARGIN / np.sqrt(tasks.samples[t].size)
        picked = np.where(ours[best, k] < enough * ours[leading, k], best, leading)
        residual = np.array([fit.residual[tasks.task == t] for fit in each])
        intercepts = np.array([fit.intercepts[: len(folds), t] for fit in each])
        held = HeldOut(
            residual[picked, :, k].T,
            f"{len(folds)} folds, {note}",
            intercepts[picked, :, k].T,
            folds=folds,
        )
        used = tuple(names[place] for place in picked)
        found = Estimate.from_held_out(held, tasks.wanted[t], used, references=papers)
        mode = audit if audit == "unadjusted" else "off"
        estimates.append(with_audit(_plain_where_better(found), tasks.reports[t], mode))
    return tuple(estimates)


def _variances(tasks: Tasks, fit: CrossFitted) -> np.ndarray:
    """Held out, about the mean of the fits' intercepts, so that a shift of the series counts: (task, k)."""
    found = []
    for t, folds in enumerate(tasks.folds()):
        error = fit.residual[tasks.task == t] - fit.intercepts[: len(folds), t].mean(axis=0)
        found.append(np.maximum((error**2).mean(axis=0), 1e-300))
    return np.array(found)


def _plain_where_better(found: Estimate) -> Estimate:
    """The plain average of every integrand whose error bar it shortens."""
    better = found.mcse < found.plain_mcse
    fields = ("value", "mcse", "residual_ess", "rhat", "batches", "freedom")
    usual = (f"plain_{name.removeprefix('residual_')}" for name in fields)
    both = ((getattr(found, a), getattr(found, b)) for a, b in zip(fields, usual, strict=True))
    arrays = [np.where(better, ours, plain) for ours, plain in both]
    names = tuple(name if ok else PLAIN for name, ok in zip(found.chosen, better, strict=True))
    worth = (found.plain_mcse / arrays[1]) ** 2
    return replace(found, worth=worth, chosen=names, **dict(zip(fields, arrays, strict=True)))


def default_family() -> AbstractFamily:
    """Polynomials of degree 1 and 2 and two length-scales: likelihood weighs them."""
    near, far = (KernelTranslates(SquaredExponential(MedianHeuristic(a))) for a in (1.0, 2.0))
    return Polynomial(1) + Polynomial(2) + near + far


def covariance(relation: ArrayLike, count: int) -> np.ndarray:
    """A relation that is given, if it is a covariance matrix of the tasks."""
    matrix = np.asarray(relation, np.float64)
    if matrix.shape != (count, count) or not np.allclose(matrix, matrix.T):
        raise ValueError(
            f"the relation has shape {matrix.shape}: give a symmetric matrix of ({count}, {count})."
        )
    if np.linalg.eigvalsh(matrix)[0] < -1e-8 * np.abs(matrix).max():
        raise ValueError(
            "the relation has a negative eigenvalue, and is no covariance: give a positive "
            "semi-definite matrix, such as W @ W.T + np.diag(v)."
        )
    return matrix
