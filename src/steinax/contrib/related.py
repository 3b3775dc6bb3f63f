"""Control variates for several related posteriors of few draws each, fitted together."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, cast

import equinox as eqx
import jax
import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize
from scipy.special import softmax

from ..auditing import AuditMode
from ..citing import references_of
from ..data import AffineMap, Sample, standardise
from ..estimation import CrossFit, Estimate, with_audit
from ..families import AbstractFamily, AbstractLinearFamily, KernelTranslates, Polynomial
from ..kernels import MedianHeuristic, SquaredExponential, resolve
from ..solvers import HeldOut, Regression
from .tasks import Specs, Tasks, tasks_of

type Points = tuple[Any, Any]  # draws and scores, (n, dim) each
type Terms = tuple[AbstractLinearFamily, ...]

SPREAD = 0.5  # prior standard deviation of the loadings of tasks around their mean
ALONE = 0.2  # initial share of a task's variance that is not shared with other tasks
LOG_GAIN = np.log(100.0)  # initial value of the log of signal over noise
LIMIT = 25.0  # bound on every parameter: a line search may try much larger values
STEPS = 60  # most iterations of L-BFGS
PARTS = 4  # how many times the relation is learned, each time with some folds held out
EPS = float(np.finfo(np.float64).eps)


class Coupling(NamedTuple):
    r"""The kernel $a\, B_{tt'} \sum_j w_j\, k_j(x, y)$ of all tasks, where the noise has variance 1."""

    relation: np.ndarray  # B, (task, task)
    gain: float  # a
    weights: np.ndarray  # w, (term,), of sum 1

    def kernel(self, grams: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Combine the kernels of all terms to (n, m), given the tasks of the rows and of the columns."""
        mixed = np.tensordot(self.weights, grams, 1)
        return self.gain * self.relation[np.ix_(rows, columns)] * mixed


class System(NamedTuple):
    """The factorised system to fit a kernel and an intercept per task to all rows."""

    rows: np.ndarray  # transposed inverse of the Cholesky factor of A = K + 1, (n, n)
    basis: np.ndarray  # orthonormal basis of the whitened intercepts, (n, task)
    upper: np.ndarray  # their triangular factor, (task, task)

    @property
    def half_log_determinant(self) -> float:
        r"""Half of $\log |A| + \log |H^\top A^{-1} H|$, where $H$ has a column for each intercept."""
        upper, rows = (np.abs(np.diag(matrix)) for matrix in (self.upper, self.rows))
        return float(np.log(upper).sum() - np.log(rows).sum())

    def coefficients(self, f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Compute the intercepts (task, k) and the coefficients of the kernel's columns (n, k)."""
        white = self.rows.T @ f
        along = self.basis.T @ white
        return solve_triangular(self.upper, along), self.rows @ (white - self.basis @ along)

    def projection(self) -> np.ndarray:
        """Compute the matrix P that maps f to the coefficients."""
        free = self.rows @ self.basis
        return self.rows @ self.rows.T - free @ free.T


def system_of(kernel: np.ndarray, task: np.ndarray, count: int) -> System:
    """Factorise the system of a kernel matrix with a penalty of 1."""
    penalty = max(1.0, 8 * EPS * float(np.trace(kernel)))  # rounding must not make it indefinite
    lower = cholesky(kernel + penalty * np.eye(len(kernel)), lower=True)
    inverse = solve_triangular(lower, np.eye(len(kernel)), lower=True)
    basis, upper = np.linalg.qr(inverse @ np.eye(count)[task])
    return System(inverse.T, basis, upper)


class Likelihood(NamedTuple):
    r"""The negative log posterior density of a coupling, as a function of its parameters.

    It is the restricted likelihood, of contrasts of $f$ that do not depend on intercepts, maximised over the
    variance of the noise. With $P$ the matrix that gives the coefficients, $q = \sum f^\top P f$ over $k$
    integrands and $m = k (n - T)$,

    $$ \tfrac{k}{2} \left( \log |A| + \log |H^\top A^{-1} H| \right) + \tfrac{m}{2} \log q , $$

    whose gradient is that of $\tfrac12 \operatorname{tr}(S A)$ with $S = k P - \tfrac{m}{q} P f f^\top P$
    held fixed. The relation is $B = W W^\top + \operatorname{diag}(v)$ unless it is given; the prior shrinks
    the rows of $W$ and the $\log v_t$ towards their means, so that a task of few draws resembles the others.

    The parameters are $\log a$, then $\log w$, and then $W$ and $\log v$ where they are learned.
    """

    grams: np.ndarray  # (term, n, n)
    task: np.ndarray  # (n,)
    f: np.ndarray  # (n, k), of variance about 1
    tasks: int  # number of tasks
    rank: int  # number of columns of W
    given: np.ndarray | None = None  # B, where it is known

    def start(self) -> np.ndarray:
        """Return initial parameters: equal weights, similar tasks, further columns of W as cosine waves."""
        common = np.r_[LOG_GAIN, np.zeros(len(self.grams))]
        if self.given is not None:
            return common
        place = (np.arange(self.tasks) + 0.5) / self.tasks
        waves = [np.cos(np.pi * j * place) * (0.3 if j else 1.0) for j in range(self.rank)]
        loadings = np.sqrt(1 - ALONE) * np.stack(waves, axis=1)
        return np.r_[common, loadings.ravel(), np.full(self.tasks, np.log(ALONE))]

    def coupling(self, parameters: np.ndarray) -> Coupling:
        """Return the coupling with these parameters."""
        weights = softmax(parameters[1 : 1 + len(self.grams)])
        if self.given is not None:
            return Coupling(self.given, float(np.exp(parameters[0])), weights)
        loadings, log_alone = self._loadings(parameters)
        relation = loadings @ loadings.T + np.diag(np.exp(log_alone))
        return Coupling(relation, float(np.exp(parameters[0])), weights)

    def __call__(self, parameters: np.ndarray) -> tuple[float, np.ndarray]:
        """Compute the negative log posterior density and its gradient."""
        coupling, (n, k) = self.coupling(parameters), self.f.shape
        system = system_of(coupling.kernel(self.grams, self.task, self.task), self.task, self.tasks)
        _, alpha = system.coefficients(self.f)
        m, q = k * (n - self.tasks), max(float(np.sum(self.f * alpha)), 1e-300)
        slope = k * system.projection() - m / q * alpha @ alpha.T
        value = k * system.half_log_determinant + m / 2 * np.log(q)
        by_weights, by_relation = self._gradients(coupling, slope)
        logits = parameters[1 : 1 + len(self.grams)]
        total = coupling.weights @ by_weights
        gradient = [[total], coupling.weights * (by_weights - total) + logits / 9]
        value += np.sum(logits**2) / 18
        if self.given is None:
            prior, *slopes = self._relation_prior(parameters, by_relation)
            value, gradient = value + prior, [*gradient, *slopes]
        return float(value), np.concatenate(gradient)

    def _gradients(self, coupling: Coupling, slope: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Compute the gradients with respect to the weights, (term,), and the relation, (task, task)."""
        member = np.eye(self.tasks)[self.task]
        mixed = np.tensordot(coupling.weights, self.grams, 1)
        by_relation = coupling.gain / 2 * member.T @ (slope * mixed) @ member
        between = slope * coupling.relation[np.ix_(self.task, self.task)]
        return coupling.gain / 2 * np.tensordot(self.grams, between, 2), by_relation

    def _relation_prior(
        self, parameters: np.ndarray, by_relation: np.ndarray
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """Compute the prior term of W and log v, and the gradients of the total with respect to them."""
        loadings, log_alone = self._loadings(parameters)
        alone = np.exp(log_alone)
        loading_deviation = loadings - loadings.mean(axis=0)
        alone_deviation = log_alone - log_alone.mean()
        level = (np.sum(loadings**2) + alone.sum()) / self.tasks
        log_level = np.log(level)  # kept near 0: the scale of the kernel is in the gain
        squares = np.sum((loading_deviation / SPREAD) ** 2) + np.sum(alone_deviation**2)
        prior = (squares + log_level**2) / 2
        by_relation = by_relation + log_level / level / self.tasks * np.eye(self.tasks)
        by_loadings = 2 * by_relation @ loadings + loading_deviation / SPREAD**2
        return float(prior), by_loadings.ravel(), np.diag(by_relation) * alone + alone_deviation

    def _loadings(self, parameters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return W, (task, rank), and log v, (task,), from the parameters."""
        both = parameters[1 + len(self.grams) :]
        return both[: -self.tasks].reshape(self.tasks, self.rank), both[-self.tasks :]


def learn(likelihood: Likelihood) -> Coupling:
    """Find the most probable coupling by L-BFGS."""
    start = likelihood.start()
    bounds = [(-LIMIT, LIMIT)] * len(start)
    optimum = minimize(
        likelihood,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": STEPS, "ftol": 1e-6},
    )
    return likelihood.coupling(optimum.x)


def leave_out(
    kernel: np.ndarray, task: np.ndarray, count: int, f: np.ndarray, blocks: Sequence[np.ndarray]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield f - g on each block, (rows, k), and the intercepts, (task, k), of a fit without that block."""
    others = np.setdiff1d(np.arange(len(f)), np.concatenate(blocks))
    order = np.concatenate([*blocks, others])
    folds = tuple(pairwise(np.cumsum([0, *map(len, blocks)]).tolist()))
    # columns of the intercepts of all tasks but the first, relative to that of the first
    member = np.eye(count)[task][:, 1:]
    regression = Regression(member[order], kernel[np.ix_(order, order)])
    ordered = f[order]
    held = regression.leave_out(ordered, folds, expected=False)
    fits = regression.without_each(ordered, folds)
    for block, fold, fit in zip(blocks, folds, fits, strict=True):
        intercepts = np.concatenate([fit.intercept[None], fit.intercept + fit.columns])
        yield held.residual[slice(*fold)] + member[block] @ fit.columns, intercepts


class CoupledCrossFit(NamedTuple):
    """The results of fits of all tasks without each fold in turn."""

    residual: np.ndarray  # f - g on all rows, (n, k)
    intercepts: np.ndarray  # intercepts of the fits without each fold, (fold, task, k)
    relations: list[np.ndarray]  # one for each group of folds that is held out

    def correlation(self) -> np.ndarray:
        """Compute the mean of the relations, scaled to correlations."""
        mean = np.mean(self.relations, axis=0)
        size = np.sqrt(np.maximum(np.diag(mean), 1e-300))
        return mean / np.outer(size, size)


def cross_fit(
    tasks: Tasks, family: AbstractFamily, shared: bool, rank: int, known: np.ndarray | None
) -> CoupledCrossFit:
    """Cross-fit the control variates of all tasks, with a coupling learned from other folds.

    Args:
        tasks: the draws and integrands.
        family: the family whose terms are mixed.
        shared: whether all tasks are standardised together, or each by itself.
        rank: the rank of the relation, if it is learned.
        known: the relation, if it is not learned.
    """
    task, f, count, blocks = tasks.task, tasks.f, tasks.number, tasks.blocks()
    grams = scaled_kernels(tasks, family, shared)
    residual, intercepts, relations = np.empty_like(f), [], []
    for group in np.array_split(np.arange(len(blocks)), min(PARTS, len(blocks))):
        held_out = [blocks[j] for j in group]
        train = np.setdiff1d(np.arange(len(f)), np.concatenate(held_out))
        centre, scale = task_moments(f[train], task[train], count)
        scaled = (f - centre[task]) / scale[task]
        train_grams = grams[:, train][:, :, train]
        coupling = learn(Likelihood(train_grams, task[train], scaled[train], count, rank, known))
        kernel = coupling.kernel(grams, task, task)
        fits = leave_out(kernel, task, count, scaled, held_out)
        for block, (block_residual, fit_intercepts) in zip(held_out, fits, strict=True):
            residual[block] = block_residual * scale[task[block]] + centre[task[block]]
            intercepts.append(fit_intercepts * scale + centre)
        relations.append(coupling.relation)
    return CoupledCrossFit(residual, np.array(intercepts), relations)


def scaled_kernels(tasks: Tasks, family: AbstractFamily, shared: bool) -> np.ndarray:
    """Compute the scaled Stein kernel of every term on all pairs of rows, (term, n, n).

    Each is divided by its mean variance under the tasks, so that tasks with larger scores do not dominate.
    """
    task, (x, score) = tasks.task, tasks.rows
    with jax.enable_x64(True):
        for rows in [slice(None)] if shared else [task == t for t in range(tasks.number)]:
            x[rows], score[rows], _ = standardised_tasks(x[rows], score[rows])
        grams = kernels_of(terms_of(family, x), (x, score), (x, score))
    sizes = [np.bincount(task, np.diag(gram)) / np.bincount(task) for gram in grams]
    scale = np.sqrt(np.maximum(sizes, 1e-300))[:, task]
    return grams / (scale[:, :, None] * scale[:, None, :])


def standardised_tasks(
    x: np.ndarray, score: np.ndarray
) -> tuple[np.ndarray, np.ndarray, AffineMap]:
    """Transform draws and scores to mean 0 and covariance (or variances) 1; also return the transform."""
    coordinates = jax.tree.map(np.asarray, standardise(x))
    z, score_z = coordinates(x, score)
    return np.asarray(z), np.asarray(score_z), coordinates


def task_moments(f: np.ndarray, task: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Compute the mean and standard deviation of the integrands under each task, (task, k)."""
    by_task = [f[task == t] for t in range(count)]
    centre, scale = (
        np.array([statistic(values, axis=0) for values in by_task])
        for statistic in (np.mean, np.std)
    )
    return centre, np.where(scale > 0, scale, 1.0)


def terms_of(family: AbstractFamily, x: np.ndarray) -> Terms:
    """Return the terms of a linear family, with heuristics resolved on the draws."""
    if not isinstance(family, AbstractLinearFamily):
        raise TypeError(
            f"the family is {family!r}: give a linear one, such as Polynomial(2) + KernelTranslates()."
        )
    return tuple(cast(AbstractLinearFamily, term) for term in resolve(family, x).terms)


def kernels_of(terms: Terms, left: Points, right: Points) -> np.ndarray:
    """Compute the Stein kernel of every term between new points and fitted points: (term, n, m)."""
    return np.stack([np.asarray(_gram(term, left, right)) for term in terms])


@eqx.filter_jit
def _gram(term: AbstractLinearFamily, left: Points, right: Points) -> jax.Array:
    """Compute the Stein kernel of one term, compiled: (n, m)."""
    return term.cross_gram(term.setup(*right), *left, *right)


RANK = 2  # number of columns of W
MARGIN = 3.0  # standard errors, roughly, by which a fit must beat the leading one to replace it
PLAIN = "plain Monte Carlo"


class Related(eqx.Module):
    """The estimates of several related tasks: one `Estimate` for each, and how the tasks are related.

    Indexing returns a task's `Estimate`; attributes for all tasks are arrays (task, k).

    Attributes:
        estimates: one for each task, in order; `chosen` tells which fit each integrand got.
        relation: the matrix between tasks that was learned, scaled to correlations, (task, task).

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(3, 1, 20, 1))
    >>> related = sx.contrib.estimate_related("x", [sx.Sample(draws, -draws) for draws in x])
    >>> len(related), related.value.shape, related.relation.shape
    (3, (3, 1), (3, 3))
    """

    references: ClassVar[tuple[str, ...]] = ("sun2021vector",)
    estimates: tuple[Estimate, ...]
    relation: np.ndarray

    @property
    def value(self) -> np.ndarray:
        """The estimates with control variates, (task, k)."""
        return self._stacked("value")

    @property
    def mcse(self) -> np.ndarray:
        """Monte Carlo standard errors of `value`, (task, k)."""
        return self._stacked("mcse")

    @property
    def plain_value(self) -> np.ndarray:
        """The plain averages of f, (task, k)."""
        return self._stacked("plain_value")

    @property
    def plain_mcse(self) -> np.ndarray:
        """Monte Carlo standard errors of `plain_value`, (task, k)."""
        return self._stacked("plain_mcse")

    @property
    def worth(self) -> np.ndarray:
        """How many times as many plain draws would be as accurate, (task, k)."""
        return self._stacked("worth")

    @property
    def chosen(self) -> tuple[tuple[str, ...], ...]:
        """The fit that each integrand of each task got."""
        return tuple(estimate.chosen for estimate in self.estimates)

    def interval(self, level: float = 0.95) -> np.ndarray:
        """Return intervals that cover the expectations with this probability, (task, k, 2)."""
        return np.stack([estimate.interval(level) for estimate in self.estimates])

    def _stacked(self, name: str) -> np.ndarray:
        """Stack an attribute of all estimates."""
        return np.stack([getattr(estimate, name) for estimate in self.estimates])

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
    that $g_t$ has mean zero under its own target. The relation $B = W W^\top + \operatorname{diag}(v)$, the
    weights $w_j$ and the noise are learned by maximising the likelihood of a Gaussian process, without the
    held-out draws. Every task keeps its own intercept, estimate and error bar. A task that does not gain
    from the others has its own fit, or the plain average: `chosen` tells which.

    Args:
        f: the integrands, as for `estimate`, for all tasks; or a list with those of each task.
        samples: one for each task, all of the same dimension; chains and lengths may differ.
        family: a linear family, whose terms are the $k_j$; polynomials and two kernels by default.
        relation: $B$, (task, task), if it is known.
        rank: the number of columns of $W$.
        audit: as for `estimate`, for every sample.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(5, 1, 20, 1))
    >>> x = x + np.arange(5).reshape(5, 1, 1, 1) / 5
    >>> samples = [sx.Sample(draws, t / 5 - draws) for t, draws in enumerate(x)]
    >>> related = sx.contrib.estimate_related(lambda x: x[0] ** 3, samples)
    >>> bool(np.median(related.worth) > 100)
    True
    """
    if rank < 1:
        raise ValueError(f"rank={rank}: give 1 or more.")
    tasks, family = tasks_of(f, samples, audit), family or default_family()
    known = None if relation is None else relation_covariance(relation, tasks.number)
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
    r"""Fit the control variates of several tasks together to all draws, with a known relation.

    With $A = B_{tt'} \sum_j k_j / \text{penalty} + 1$ and an intercept for each task, one factorisation
    serves all tasks and integrands. `estimate_related` learns the relation and cross-fits.

    Args:
        f: the integrands, as for `estimate_related`.
        samples: one for each task.
        relation: $B$, (task, task).
        family: a linear family; its terms, each divided by its mean variance under all tasks, are
            averaged.
        penalty: the penalty on the norm of the kernel, relative to the mean variance of the kernel.
    """
    tasks = tasks_of(f, samples)
    known = relation_covariance(relation, tasks.number)
    with jax.enable_x64(True):
        x, score, coordinates = standardised_tasks(*tasks.rows)
        terms = terms_of(family, x)
        grams = kernels_of(terms, (x, score), (x, score))
    sizes = np.diagonal(grams, axis1=1, axis2=2).mean(axis=1)
    coupling = Coupling(known, 1 / penalty, np.full(len(terms), 1 / len(terms)))
    kernel = coupling.kernel(grams / sizes[:, None, None], tasks.task, tasks.task)
    intercept, alpha = system_of(kernel, tasks.task, tasks.number).coefficients(tasks.f)
    return CoupledFit(coupling, terms, coordinates, (x, score), tasks.task, sizes, alpha, intercept)


class CoupledFit(eqx.Module):
    r"""Control variates of several tasks, fitted together: $g_t$ has mean zero under target $t$.

    Call it with the index of a task, and draws with scores of that task's target.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(2, 1, 30, 1))
    >>> samples = [sx.Sample(draws, -draws) for draws in x]
    >>> g = sx.contrib.fit_related("x", samples, np.ones((2, 2)), sx.KernelTranslates())
    >>> g(1, x[0, 0], -x[0, 0]).shape
    (30, 1)
    """

    coupling: Coupling
    terms: Terms
    coordinates: AffineMap
    points: Points  # all draws and scores, in `coordinates`
    task: np.ndarray
    sizes: np.ndarray  # mean variances of the terms' kernels, (term,)
    alpha: np.ndarray
    intercept: np.ndarray  # of each task, (task, k)

    def __call__(self, task: int, draws: ArrayLike, scores: ArrayLike) -> np.ndarray:
        """Evaluate the control variates of one task at given draws: (n, k)."""
        x, score = (np.asarray(array, np.float64) for array in (draws, scores))
        with jax.enable_x64(True):
            grams = kernels_of(self.terms, self.coordinates(x, score), self.points)
        grams = grams / self.sizes[:, None, None]
        return self.coupling.kernel(grams, np.full(len(x), task), self.task) @ self.alpha


def estimates_of(
    tasks: Tasks, fits: dict[str, CoupledCrossFit], audit: AuditMode, papers: tuple[str, ...] = ()
) -> tuple[Estimate, ...]:
    """Choose a fit for every task and integrand, and compute the estimates.

    The leading fit of an integrand has the smallest geometric mean over tasks of the held-out variance: the
    few draws of one task are not enough to choose. A task gets another fit only where that is clearly
    better, and the plain average where its error bar is shorter.
    """
    names, cross_fits = tuple(fits), tuple(fits.values())
    variance = np.array([_variances(tasks, fit) for fit in cross_fits])  # (fit, task, k)
    leading = np.log(variance).mean(axis=1).argmin(axis=0)
    note = f"{tasks.number} related tasks, relation learned {PARTS} times"
    estimates = []
    for t, folds in enumerate(tasks.folds()):
        task_variance, k = variance[:, t], np.arange(variance.shape[-1])
        best = task_variance.argmin(axis=0)
        threshold = 1 - MARGIN / np.sqrt(tasks.samples[t].size)
        better = task_variance[best, k] < threshold * task_variance[leading, k]
        picked = np.where(better, best, leading)
        residual = np.array([fit.residual[tasks.task == t] for fit in cross_fits])
        intercepts = np.array([fit.intercepts[: len(folds), t] for fit in cross_fits])
        held = HeldOut(
            residual[picked, :, k].T,
            f"{len(folds)} folds, {note}",
            intercepts[picked, :, k].T,
            folds=folds,
        )
        used = tuple(names[place] for place in picked)
        estimate = Estimate.from_held_out(held, tasks.wanted[t], used, references=papers)
        mode = audit if audit == "unadjusted" else "off"
        estimates.append(with_audit(_plain_where_better(estimate), tasks.reports[t], mode))
    return tuple(estimates)


def _variances(tasks: Tasks, fit: CoupledCrossFit) -> np.ndarray:
    """Compute the held-out mean squares about the fits' mean intercepts, shifts included: (task, k)."""
    variances = []
    for t, folds in enumerate(tasks.folds()):
        error = fit.residual[tasks.task == t] - fit.intercepts[: len(folds), t].mean(axis=0)
        variances.append(np.maximum((error**2).mean(axis=0), 1e-300))
    return np.array(variances)


def _plain_where_better(estimate: Estimate) -> Estimate:
    """Replace estimates by plain averages where these have a shorter error bar."""
    better = estimate.mcse < estimate.plain_mcse
    fields = ("value", "mcse", "residual_ess", "rhat", "batches", "freedom")
    plain_fields = (f"plain_{name.removeprefix('residual_')}" for name in fields)
    arrays = [
        np.where(better, getattr(estimate, name), getattr(estimate, plain_name))
        for name, plain_name in zip(fields, plain_fields, strict=True)
    ]
    names = tuple(name if ok else PLAIN for name, ok in zip(estimate.chosen, better, strict=True))
    worth = (estimate.plain_mcse / arrays[1]) ** 2
    return replace(estimate, worth=worth, chosen=names, **dict(zip(fields, arrays, strict=True)))


def default_family() -> AbstractFamily:
    """Return polynomials of degrees 1 and 2 and kernels of two length-scales, weighted by the likelihood."""
    near, far = (KernelTranslates(SquaredExponential(MedianHeuristic(a))) for a in (1.0, 2.0))
    return Polynomial(1) + Polynomial(2) + near + far


def relation_covariance(relation: ArrayLike, count: int) -> np.ndarray:
    """Convert a relation to an array, and check that it is a covariance matrix of the tasks."""
    matrix = np.asarray(relation, np.float64)
    if matrix.shape != (count, count) or not np.allclose(matrix, matrix.T):
        raise ValueError(
            f"the relation has shape {matrix.shape}: give a symmetric matrix of shape ({count}, {count})."
        )
    if np.linalg.eigvalsh(matrix)[0] < -1e-8 * np.abs(matrix).max():
        raise ValueError(
            "the relation has a negative eigenvalue, so it is not a covariance: give a positive "
            "semi-definite matrix, such as W @ W.T + np.diag(v)."
        )
    return matrix
