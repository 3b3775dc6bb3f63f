"""A kernel that couples tasks: learned by likelihood, every fold left out of one factorisation.

Rows are the draws of all tasks, one task below the other. jax gives the kernels of the terms; all else is
NumPy and SciPy.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, cast

import equinox as eqx
import jax
import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize
from scipy.special import softmax

from ..data import AffineMap, standardise
from ..families import AbstractFamily, AbstractLinearFamily
from ..kernels import resolve
from ..solvers import Regression
from .tasks import Tasks

type Points = tuple[Any, Any]  # draws and scores, (n, dim) each
type Terms = tuple[AbstractLinearFamily, ...]

SPREAD = 0.5  # prior standard deviation of the loadings of tasks around their mean
ALONE = 0.2  # prior share of a task's variance that no other task has
LOG_GAIN = np.log(100.0)  # the logarithm of signal over noise from which learning starts
LIMIT = 25.0  # of every parameter: a line search may ask for much more
STEPS = 60  # of L-BFGS
PARTS = 4  # the relation is learned so often, each time without a part of the draws
EPS = float(np.finfo(np.float64).eps)


class Coupling(NamedTuple):
    r"""The kernel $a\, B_{tt'} \sum_j w_j\, k_j(x, y)$ of all tasks, where the noise has variance 1."""

    relation: np.ndarray  # B, (task, task)
    gain: float  # a
    weights: np.ndarray  # w, (term,), of sum 1

    def kernel(self, grams: np.ndarray, task: np.ndarray, other: np.ndarray) -> np.ndarray:
        """The kernel on rows of some tasks and columns of others, (n, m), from those of all terms."""
        mixed = np.tensordot(self.weights, grams, 1)
        return self.gain * self.relation[np.ix_(task, other)] * mixed


class System(NamedTuple):
    """The fit of a kernel and an intercept for each task to all rows, factorised once."""

    rows: np.ndarray  # the transposed inverse of the Cholesky factor of A = K + 1, (n, n)
    basis: np.ndarray  # an orthonormal basis of the whitened intercepts, (n, task)
    upper: np.ndarray  # their triangular factor, (task, task)

    @property
    def half_log_determinant(self) -> float:
        r"""Half of $\log |A| + \log |H^\top A^{-1} H|$, where $H$ has a column for each intercept."""
        upper, rows = (np.abs(np.diag(one)) for one in (self.upper, self.rows))
        return float(np.log(upper).sum() - np.log(rows).sum())

    def coefficients(self, f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The intercepts (task, k) and the coefficients of the kernel's columns (n, k)."""
        white = self.rows.T @ f
        along = self.basis.T @ white
        return solve_triangular(self.upper, along), self.rows @ (white - self.basis @ along)

    def projection(self) -> np.ndarray:
        """The matrix P that takes f to the coefficients."""
        free = self.rows @ self.basis
        return self.rows @ self.rows.T - free @ free.T


def system_of(kernel: np.ndarray, task: np.ndarray, count: int) -> System:
    """Factorise the fit of a kernel matrix, where the noise has variance 1."""
    noise = max(1.0, 8 * EPS * float(np.trace(kernel)))  # rounding must not make it indefinite
    lower = cholesky(kernel + noise * np.eye(len(kernel)), lower=True)
    inverse = solve_triangular(lower, np.eye(len(kernel)), lower=True)
    basis, upper = np.linalg.qr(inverse @ np.eye(count)[task])
    return System(inverse.T, basis, upper)


class Likelihood(NamedTuple):
    r"""Minus the logarithm of the posterior density of a coupling, as a function of its parameters.

    The likelihood is that of the contrasts of $f$ that no intercept touches, with the size of the noise
    at its best value. With $P$ the matrix that gives the coefficients, $q = \sum f^\top P f$ over $k$
    integrands and $m = k (n - T)$,

    $$ \tfrac{k}{2} \left( \log |A| + \log |H^\top A^{-1} H| \right) + \tfrac{m}{2} \log q , $$

    whose gradient is that of $\tfrac12 \operatorname{tr}(S A)$ with $S = k P - \tfrac{m}{q} P f f^\top P$
    held fixed. The relation is $B = W W^\top + \operatorname{diag}(v)$ unless it is given; by the prior the
    rows of $W$ are near their mean and the $\log v_t$ near theirs, so that a task of few draws resembles
    the others.

    The parameters are $\log a$, then $\log w$, and then $W$ and $\log v$ where they are learned.
    """

    grams: np.ndarray  # (term, n, n)
    task: np.ndarray  # (n,)
    f: np.ndarray  # (n, k), of variance about 1
    tasks: int  # how many
    rank: int  # columns of W
    given: np.ndarray | None = None  # B, where it is known

    def start(self) -> np.ndarray:
        """All terms of equal weight; tasks much alike, further columns of W vary along their order."""
        first = np.r_[LOG_GAIN, np.zeros(len(self.grams))]
        if self.given is not None:
            return first
        place = (np.arange(self.tasks) + 0.5) / self.tasks
        waves = [np.cos(np.pi * j * place) * (0.3 if j else 1.0) for j in range(self.rank)]
        loadings = np.sqrt(1 - ALONE) * np.stack(waves, axis=1)
        return np.r_[first, loadings.ravel(), np.full(self.tasks, np.log(ALONE))]

    def coupling(self, parameters: np.ndarray) -> Coupling:
        """The coupling with these parameters."""
        weights = softmax(parameters[1 : 1 + len(self.grams)])
        if self.given is not None:
            return Coupling(self.given, float(np.exp(parameters[0])), weights)
        loadings, log_alone = self._loadings(parameters)
        relation = loadings @ loadings.T + np.diag(np.exp(log_alone))
        return Coupling(relation, float(np.exp(parameters[0])), weights)

    def __call__(self, parameters: np.ndarray) -> tuple[float, np.ndarray]:
        """The value and its gradient."""
        coupling, (n, k) = self.coupling(parameters), self.f.shape
        system = system_of(coupling.kernel(self.grams, self.task, self.task), self.task, self.tasks)
        _, alpha = system.coefficients(self.f)
        m, q = k * (n - self.tasks), max(float(np.sum(self.f * alpha)), 1e-300)
        slope = k * system.projection() - m / q * alpha @ alpha.T
        value = k * system.half_log_determinant + m / 2 * np.log(q)
        by_weights, by_relation = self._by_parts(coupling, slope)
        logits = parameters[1 : 1 + len(self.grams)]
        total = coupling.weights @ by_weights
        gradient = [[total], coupling.weights * (by_weights - total) + logits / 9]
        value += np.sum(logits**2) / 18
        if self.given is None:
            prior, *slopes = self._of_relation(parameters, by_relation)
            value, gradient = value + prior, [*gradient, *slopes]
        return float(value), np.concatenate(gradient)

    def _by_parts(self, coupling: Coupling, slope: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The gradient by the weights, (term,), and by the relation, (task, task)."""
        member = np.eye(self.tasks)[self.task]
        mixed = np.tensordot(coupling.weights, self.grams, 1)
        by_relation = coupling.gain / 2 * member.T @ (slope * mixed) @ member
        between = slope * coupling.relation[np.ix_(self.task, self.task)]
        return coupling.gain / 2 * np.tensordot(self.grams, between, 2), by_relation

    def _of_relation(
        self, parameters: np.ndarray, by_relation: np.ndarray
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """The prior of W and log v, and the gradient of the whole by them."""
        loadings, log_alone = self._loadings(parameters)
        alone = np.exp(log_alone)
        away, apart = loadings - loadings.mean(axis=0), log_alone - log_alone.mean()
        level = (np.sum(loadings**2) + alone.sum()) / self.tasks
        size = np.log(level)  # the gain says how large the kernel is, not this
        prior = (np.sum((away / SPREAD) ** 2) + np.sum(apart**2) + size**2) / 2
        by_relation = by_relation + size / level / self.tasks * np.eye(self.tasks)
        by_loadings = 2 * by_relation @ loadings + away / SPREAD**2
        return float(prior), by_loadings.ravel(), np.diag(by_relation) * alone + apart

    def _loadings(self, parameters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        both = parameters[1 + len(self.grams) :]
        return both[: -self.tasks].reshape(self.tasks, self.rank), both[-self.tasks :]


def learn(likelihood: Likelihood) -> Coupling:
    """The most probable coupling, by L-BFGS."""
    start = likelihood.start()
    bounds = [(-LIMIT, LIMIT)] * len(start)
    found = minimize(
        likelihood,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": STEPS, "ftol": 1e-6},
    )
    return likelihood.coupling(found.x)


def leave_out(
    kernel: np.ndarray, task: np.ndarray, count: int, f: np.ndarray, blocks: Sequence[np.ndarray]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Leave out each block of rows: f - g there, (rows, k), and the intercepts of that fit, (task, k)."""
    others = np.setdiff1d(np.arange(len(f)), np.concatenate(blocks))
    order = np.concatenate([*blocks, others])
    folds = tuple(pairwise(np.cumsum([0, *map(len, blocks)]).tolist()))
    member = np.eye(count)[task][
        :, 1:
    ]  # the intercept of each task but the first, less the first's
    made = Regression(member[order], kernel[np.ix_(order, order)])
    ordered = f[order]
    held = made.leave_out(ordered, folds, expected=False)
    for block, fold, fit in zip(blocks, folds, made.without_each(ordered, folds), strict=True):
        moved = np.concatenate([fit.intercept[None], fit.intercept + fit.columns])
        yield held.residual[slice(*fold)] + member[block] @ fit.columns, moved


class CrossFitted(NamedTuple):
    """The fits of all tasks that leave out each fold."""

    residual: np.ndarray  # f - g on all rows, (n, k)
    intercepts: np.ndarray  # of the fits without each fold, (fold, task, k)
    relations: list[np.ndarray]  # one for each part

    def correlation(self) -> np.ndarray:
        """The mean of the relations, scaled to correlations."""
        mean = np.mean(self.relations, axis=0)
        size = np.sqrt(np.maximum(np.diag(mean), 1e-300))
        return mean / np.outer(size, size)


def cross_fit(
    tasks: Tasks, family: AbstractFamily, shared: bool, rank: int, known: np.ndarray | None
) -> CrossFitted:
    """Learn the coupling without some folds of every task, fit without each, and evaluate there.

    Args:
        tasks: the draws and integrands.
        family: whose terms are mixed.
        shared: whether coordinates are the same for all tasks, or each task's own.
        rank: of the relation that is learned.
        known: the relation, if it is not learned.
    """
    task, f, count, blocks = tasks.task, tasks.f, tasks.number, tasks.blocks()
    grams = scaled_kernels(tasks, family, shared)
    residual, intercepts, relations = np.empty_like(f), [], []
    for part in np.array_split(np.arange(len(blocks)), min(PARTS, len(blocks))):
        held = [blocks[j] for j in part]
        seen = np.setdiff1d(np.arange(len(f)), np.concatenate(held))
        centre, scale = units(f[seen], task[seen], count)
        unit = (f - centre[task]) / scale[task]
        some = grams[:, seen][:, :, seen]
        coupling = learn(Likelihood(some, task[seen], unit[seen], count, rank, known))
        kernel = coupling.kernel(grams, task, task)
        for block, (left, moved) in zip(
            held, leave_out(kernel, task, count, unit, held), strict=True
        ):
            residual[block] = left * scale[task[block]] + centre[task[block]]
            intercepts.append(moved * scale + centre)
        relations.append(coupling.relation)
    return CrossFitted(residual, np.array(intercepts), relations)


def scaled_kernels(tasks: Tasks, family: AbstractFamily, shared: bool) -> np.ndarray:
    """The Stein kernel of every term on all pairs of rows, (term, n, n).

    Each is divided by its mean variance under the tasks, so that no task counts for more because its
    scores are larger.
    """
    task, (x, score) = tasks.task, tasks.rows
    with jax.enable_x64(True):
        for some in [slice(None)] if shared else [task == t for t in range(tasks.number)]:
            x[some], score[some], _ = standardised(x[some], score[some])
        grams = kernels_of(terms_of(family, x), (x, score), (x, score))
    sizes = [np.bincount(task, np.diag(gram)) / np.bincount(task) for gram in grams]
    scale = np.sqrt(np.maximum(sizes, 1e-300))[:, task]
    return grams / (scale[:, :, None] * scale[:, None, :])


def standardised(x: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray, AffineMap]:
    """Draws and scores in coordinates of mean 0 and covariance (or variances) 1, and those."""
    coordinates = jax.tree.map(np.asarray, standardise(x))
    z, moved = coordinates(x, score)
    return np.asarray(z), np.asarray(moved), coordinates


def units(f: np.ndarray, task: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The mean and the standard deviation of the integrands under each task, (task, k)."""
    by_task = [f[task == t] for t in range(count)]
    centre, scale = (np.array([of(one, axis=0) for one in by_task]) for of in (np.mean, np.std))
    return centre, np.where(scale > 0, scale, 1.0)


def terms_of(family: AbstractFamily, x: np.ndarray) -> Terms:
    """The terms of a linear family, their hyper-parameters found."""
    if not isinstance(family, AbstractLinearFamily):
        raise TypeError(
            f"the family is {family!r}: give a linear one, such as Polynomial(2) + KernelTranslates()."
        )
    return tuple(cast(AbstractLinearFamily, term) for term in resolve(family, x).terms)


def kernels_of(terms: Terms, left: Points, right: Points) -> np.ndarray:
    """The Stein kernel of every term on some points and the fitted ones: (term, n, m)."""
    return np.stack([np.asarray(_gram(term, left, right)) for term in terms])


@eqx.filter_jit
def _gram(term: AbstractLinearFamily, left: Points, right: Points) -> jax.Array:
    return term.cross_gram(term.setup(*right), *left, *right)
