"""Batches of posteriors of one shape, estimated together where possible and otherwise one by one."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import equinox as eqx
import numpy as np

from .._types import AnyArray
from ..auditing import CHAINS, AuditMode, audit
from ..data import Integrands, IntegrandSpec, Sample, integrands
from ..estimation import estimate
from ..families import AbstractFamily, Polynomial
from ._batched import NUMBERS, Slice, batched, compute
from ._result import OK, ResultRows, failures

type Status = tuple[str, str]  # a status and its reason

FAILED = "failed"
NO_PROBLEM: Status = (OK, "")


def audit_status(sample: Sample, mode: AuditMode) -> tuple[Status, bool]:
    """Audit a sample: return a status with its reason, and whether the audit forbids an estimate."""
    if mode == "off":
        return NO_PROBLEM, False
    report = audit(sample)
    if report.passed:
        return NO_PROBLEM, False
    chains = any(finding.kind in CHAINS for finding in report.fatal)
    if mode == "unadjusted" and not chains:
        return NO_PROBLEM, False
    worst = report.fatal[0]
    return (worst.kind, worst.message), mode != "warn"


def failure(error: Exception, status: str = FAILED) -> Status:
    """Turn an error into a status and its reason."""
    return status, f"{type(error).__name__}: {error}"


NAME = "f"
SLICE = 16e6  # bytes of the posteriors that are computed together
MOST = 64  # posteriors that are computed together


class Group(NamedTuple):
    """Draws, scores and integrands of posteriors of one shape."""

    draws: AnyArray  # (posterior, chain, draw, dim)
    scores: AnyArray
    values: AnyArray  # (posterior, chain, draw, k)
    diverging: AnyArray | None  # (posterior, chain, draw)
    columns: tuple[str, ...]  # names of the dimensions
    names: tuple[str, ...]  # of the integrands

    def sample(self, i: int) -> Sample:
        """Build the sample of posterior `i`."""
        flags = None if self.diverging is None else self.diverging[i]
        return Sample(self.draws[i], self.scores[i], self.columns, self.draws.dtype, flags)


def estimate_group(
    group: Group, family: AbstractFamily, mode: AuditMode, excluded: dict[int, Status] | None = None
) -> ResultRows:
    """Estimate the expectations under each posterior of a group: one row for each.

    Args:
        group: the posteriors.
        family: of control variates.
        mode: how to treat posteriors that fail their audit.
        excluded: statuses of posteriors known to have failed, by index: they are not estimated.
    """
    excluded = {} if excluded is None else excluded
    count, chains, length, dim = group.draws.shape
    numbers = np.full((len(NUMBERS), count, len(group.names)), np.nan)
    problems = [excluded.get(i, NO_PROBLEM) for i in range(count)]
    remaining = np.array([i for i in range(count) if i not in excluded], dtype=int)
    single = remaining
    if batched(family, chains, length, dim) and group.draws.dtype == np.float64:
        size = _slice_size(group, family)
        slices = [remaining[i : i + size] for i in range(0, len(remaining), size)]
        results = [_estimate_slice(group, indices, family, mode != "off") for indices in slices]
        for indices, result in zip(slices, results, strict=True):
            numbers[:, indices] = result.numbers
        single = remaining[np.concatenate([result.alone for result in results])]
        for i in remaining[np.concatenate([result.doubted for result in results])].tolist():
            problems[i], refused = _try_audit_status(group, i, mode)
            numbers[:, i] = np.where(refused, np.nan, numbers[:, i])
    for i in single.tolist():
        numbers[:, i], problems[i] = _estimate_single(group, i, family, mode)
    status, reason = ([problem[j] for problem in problems] for j in (0, 1))
    return ResultRows(numbers, status, reason, group.names)


def _slice_size(group: Group, family: AbstractFamily) -> int:
    """Choose how many posteriors to compute together, from the memory that each one takes."""
    _, chains, length, dim = group.draws.shape
    p = cast(Polynomial, family).size(None, dim)
    size = 8 * chains * length * (2 * p + 4 * len(group.names) + 10 * dim)
    return int(min(max(SLICE // size, 1), MOST))


def _estimate_slice(group: Group, indices: AnyArray, family: AbstractFamily, check: bool) -> Slice:
    draws, scores, f = (
        np.ascontiguousarray(np.moveaxis(array[indices], -1, 1))
        for array in (group.draws, group.scores, group.values)
    )
    flags = None if group.diverging is None else group.diverging[indices]
    return compute(draws, scores, f, flags, cast(Polynomial, family).degree, check)


def _try_audit_status(group: Group, i: int, mode: AuditMode) -> tuple[Status, bool]:
    try:
        return audit_status(group.sample(i), mode)
    except Exception as error:
        return failure(error), True


def _estimate_single(
    group: Group, i: int, family: AbstractFamily, mode: AuditMode
) -> tuple[AnyArray, Status]:
    """Estimate one posterior: its numbers, (number, k), and its status; errors become a status."""
    missing = np.full((len(NUMBERS), len(group.names)), np.nan)
    try:
        sample = group.sample(i)
        values = integrands({NAME: group.values[i]}, sample).values
        problem, refused = audit_status(sample, mode)
        if refused:
            return missing, problem
        result = estimate(Integrands(values, group.names), sample, family, audit="off")
    except Exception as error:
        return missing, failure(error)
    return np.stack([getattr(result, number) for number in NUMBERS]), problem


NOT_FINITE = "not finite"
INTEGRANDS = "integrands"


class Batch(eqx.Module):
    """Draws and scores of many posteriors of one shape.

    The arrays may be NumPy's, in memory or mapped from a file, or of anything else that has a shape
    and gives NumPy arrays for slices of its first axis, such as arrays of zarr or HDF5: a few hundred
    posteriors are read at a time.

    Args:
        draws: shape (posterior, chain, draw, dim).
        scores: of the same shape.
        names: one name per dimension; `x[0]`, `x[1]`, ... when not given.
        diverging: which draws ended in a divergence, (posterior, chain, draw), for the audit.

    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(10, 4, 250, 2))
    >>> Batch(x, -x, names=["mu", "log_tau"])
    Batch(10 posteriors of 4 chains x 250 draws, 2 dimensions: mu, log_tau)
    """

    draws: Any
    scores: Any
    names: tuple[str, ...] = eqx.field(static=True)
    diverging: Any

    def __init__(
        self, draws: Any, scores: Any, names: Sequence[str] | None = None, diverging: Any = None
    ):
        if len(draws.shape) != 4 or 0 in draws.shape or tuple(scores.shape) != tuple(draws.shape):
            raise ValueError(
                f"draws have shape {tuple(draws.shape)} and scores {tuple(scores.shape)}: give both as "
                "(posterior, chain, draw, dim). Posteriors of different shapes go in a list of samples."
            )
        if diverging is not None and tuple(diverging.shape) != tuple(draws.shape[:3]):
            raise ValueError(
                f"diverging has shape {tuple(diverging.shape)}: give (posterior, chain, draw), true or false "
                "for each draw, or leave it out."
            )
        point = np.zeros((1, draws.shape[3]))
        self.draws, self.scores, self.diverging = draws, scores, diverging
        self.names = Sample(point, point, names).names

    def __len__(self) -> int:
        return self.draws.shape[0]

    def part(self, start: int, stop: int) -> "Batch":
        """Read posteriors `start` to `stop` into memory."""
        draws, scores = (
            np.asarray(array[start:stop], dtype=np.float64) for array in (self.draws, self.scores)
        )
        flags = None if self.diverging is None else np.asarray(self.diverging[start:stop])
        return Batch(draws, scores, self.names, flags)

    def __repr__(self) -> str:
        posteriors, chains, length, dim = self.draws.shape
        shown = ", ".join(self.names[:4]) + (", ..." if dim > 4 else "")
        size = f"{posteriors} posteriors of {chains} chains x {length} draws"
        return f"Batch({size}, {dim} dimensions: {shown})"


def estimate_batch(
    f: IntegrandSpec, batch: Batch, family: AbstractFamily, mode: AuditMode
) -> ResultRows:
    """Estimate the expectations under each posterior of a batch in memory: one row for each."""
    finite = np.isfinite(batch.draws.sum(axis=(1, 2, 3)) + batch.scores.sum(axis=(1, 2, 3)))
    excluded: dict[int, Status] = {}
    for i in np.flatnonzero(~finite):
        try:
            Sample(batch.draws[i], batch.scores[i])
        except ValueError as error:
            excluded[int(i)] = (NOT_FINITE, str(error))
    fit = np.array([i for i in range(len(batch)) if i not in excluded], dtype=int)
    if len(fit) == 0:
        return failures(excluded.values())
    values, names = _evaluate_all(f, batch, fit, excluded)
    if not names:
        return failures(excluded[i] for i in range(len(batch)))
    group = Group(batch.draws, batch.scores, values, batch.diverging, batch.names, names)
    return estimate_group(group, family, mode, excluded)


def _evaluate_all(
    f: IntegrandSpec, batch: Batch, fit: AnyArray, excluded: dict[int, Status]
) -> tuple[AnyArray, tuple[str, ...]]:
    """Evaluate the integrands of the `fit` posteriors, NaN for others; add failures to `excluded`."""
    try:
        computed, names = _evaluate(f, batch, fit)
    except Exception:  # evaluate one by one to find the posteriors that fail
        computed, names = _evaluate_one_by_one(f, batch, fit, excluded)
    values = np.full((*batch.draws.shape[:3], len(names)), np.nan)
    fit = np.array([i for i in fit if i not in excluded], dtype=int)
    if names:
        values[fit] = computed
    return values, names


def _evaluate(f: IntegrandSpec, batch: Batch, fit: AnyArray) -> tuple[AnyArray, tuple[str, ...]]:
    """Evaluate the integrands of the `fit` posteriors in one call, with all chains concatenated."""
    _, _, length, dim = batch.draws.shape
    complete = len(fit) == len(batch)
    draws, scores = (
        (array if complete else array[fit]).reshape(-1, length, dim)
        for array in (batch.draws, batch.scores)
    )
    sample = Sample(draws, scores, batch.names)
    evaluated = integrands(_flatten_chains(f, fit, length), sample)
    return evaluated.values.reshape(len(fit), -1, length, len(evaluated.names)), evaluated.names


def _flatten_chains(f: Any, fit: AnyArray, length: int) -> Any:
    """Reshape arrays of integrands so that the chains of all `fit` posteriors are on one axis."""
    if isinstance(f, Mapping):
        return {name: _flatten_chains(function, fit, length) for name, function in f.items()}
    if isinstance(f, np.ndarray):
        return f[fit].reshape(-1, length, *f.shape[3:])
    return f


def _evaluate_one_by_one(
    f: IntegrandSpec, batch: Batch, fit: AnyArray, excluded: dict[int, Status]
) -> tuple[AnyArray, tuple[str, ...]]:
    values, names = [], ()
    for i in fit:
        try:
            computed, names = _evaluate(f, batch, np.array([i]))
            values.append(computed)
        except Exception as error:
            excluded[int(i)] = failure(error, INTEGRANDS)
    return np.concatenate(values) if values else np.empty(0), names
