from collections.abc import Sequence
from typing import Any

import numpy as np

from .._precision import precision
from .._progress import progress
from .._types import AnyArray
from ..estimation._audited import AuditMode, audited, noted, with_audit
from ..families import AbstractFamily, AbstractLinearFamily, KernelTranslates, Polynomial
from ..kernels import MedianHeuristic, SquaredExponential
from ..working._blas import one_blas_thread
from ._coupling import AbstractRelation, Given, related
from ._crossfit import PARTS, Trial, cross_fit
from ._gate import judge
from ._result import Related
from ._tasks import Specs, Tasks, tasks_of

RANK = 2
ALONE, SHARED, ALIGNED = "alone", "related", "related, in own coordinates"


def estimate_related(
    f: Specs,
    samples: Sequence[Any],
    family: AbstractFamily | None = None,
    *,
    relation: AnyArray | None = None,
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
    >>> x = (
    ...     np.random.default_rng(0).normal(size=(5, 1, 20, 1))
    ...     + np.arange(5).reshape(5, 1, 1, 1) / 5
    ... )
    >>> samples = [sx.Sample(one, t / 5 - one) for t, one in enumerate(x)]
    >>> found = sx.estimate_related(lambda x: x[0] ** 3, samples)
    >>> bool(np.median(found.worth) > 100)
    True
    """
    tasks = tasks_of(f, samples)
    family = checked(default_family() if family is None else family)
    start = start_of(relation, rank, tasks.number)
    reports = [audited(sample, audit) for sample in tasks.samples]
    with precision(np.float64), progress("relating the tasks"), one_blas_thread():
        trials = {
            ALONE: cross_fit(tasks, family, Given(np.eye(tasks.number)), shared=False),
            SHARED: cross_fit(tasks, family, start, shared=True),
            ALIGNED: cross_fit(tasks, family, start, shared=False),
        }
        found = judge(tasks, trials, noted(_note(tasks), audit))
        between = _correlation(trials[SHARED])
    estimates = (with_audit(one, report, "off") for one, report in zip(found, reports, strict=True))
    return Related(tuple(estimates), between)


def default_family() -> AbstractLinearFamily:
    """Polynomials of degree 1 and 2 and two length-scales: likelihood weighs them."""
    kernels = [KernelTranslates(SquaredExponential(MedianHeuristic(a))) for a in (1.0, 2.0)]
    family = Polynomial(1) + Polynomial(2) + kernels[0] + kernels[1]
    assert isinstance(family, AbstractLinearFamily)
    return family


def checked(family: AbstractFamily) -> AbstractLinearFamily:
    if not isinstance(family, AbstractLinearFamily):
        raise TypeError(
            f"the family is {family!r}: give a linear one, such as Polynomial(2) + KernelTranslates()."
        )
    return family


def start_of(relation: AnyArray | None, rank: int, count: int) -> AbstractRelation:
    if relation is None:
        if rank < 1:
            raise ValueError(f"rank={rank}: give 1 or more.")
        return related(count, min(rank, count))
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
    return Given(matrix)


def _note(tasks: Tasks) -> str:
    folds = max(map(len, tasks.folds()))
    return f"{tasks.number} related tasks, {folds} folds, relation learned {PARTS} times"


def _correlation(trial: Trial) -> np.ndarray:
    between = np.mean([np.asarray(one.relation.matrix()) for one in trial.couplings], axis=0)
    size = np.sqrt(np.maximum(np.diag(between), 1e-300))
    return between / np.outer(size, size)
