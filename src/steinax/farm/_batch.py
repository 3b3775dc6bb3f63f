"""Batches of posteriors of one shape: some computed together, some alone."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import equinox as eqx
import numpy as np

from .._types import AnyArray
from ..auditing import audit
from ..data import Integrands, Sample, integrands
from ..data._integrands import IntegrandSpec
from ..estimation import estimate
from ..estimation._audited import CHAINS, AuditMode
from ..families import AbstractFamily, Polynomial
from ._batched import NUMBERS, Slice, batched, compute
from ._result import OK, Table, failures

type Problem = tuple[str, str]  # a status and its reason

FAILED = "failed"
NOTHING: Problem = (OK, "")


def judged(sample: Sample, mode: AuditMode) -> tuple[Problem, bool]:
    """What the audit finds, as a status and its reason, and whether it forbids an estimate."""
    if mode == "off":
        return NOTHING, False
    report = audit(sample)
    if report.passed:
        return NOTHING, False
    chains = any(finding.kind in CHAINS for finding in report.fatal)
    if mode == "unadjusted" and not chains:
        return NOTHING, False
    worst = report.fatal[0]
    return (worst.kind, worst.message), mode != "warn"


def failure(error: Exception, status: str = FAILED) -> Problem:
    """An error as a status and its reason."""
    return status, f"{type(error).__name__}: {error}"


NAME = "f"
SLICE = 16e6  # bytes of the posteriors that are computed together
MOST = 64  # of them


class Group(NamedTuple):
    """Draws, scores and integrands of some posteriors."""

    draws: AnyArray  # (posterior, chain, draw, dim)
    scores: AnyArray
    values: AnyArray  # (posterior, chain, draw, k)
    diverging: AnyArray | None  # (posterior, chain, draw)
    columns: tuple[str, ...]  # names of the dimensions
    names: tuple[str, ...]  # of the integrands

    def sample(self, i: int) -> Sample:
        """One of the posteriors."""
        flags = None if self.diverging is None else self.diverging[i]
        return Sample(self.draws[i], self.scores[i], self.columns, self.draws.dtype, flags)


def estimate_group(
    group: Group, family: AbstractFamily, mode: AuditMode, known: dict[int, Problem] | None = None
) -> Table:
    """A row for each posterior.

    Args:
        group: the posteriors.
        family: of control variates.
        mode: what becomes of those that fail their audit.
        known: what is known to be wrong with some of them, by their places: these are left out.
    """
    known = {} if known is None else known
    count, chains, length, dim = group.draws.shape
    numbers = np.full((len(NUMBERS), count, len(group.names)), np.nan)
    problems = [known.get(i, NOTHING) for i in range(count)]
    todo = np.array([i for i in range(count) if i not in known], dtype=int)
    single = todo
    if batched(family, chains, length, dim) and group.draws.dtype == np.float64:
        size = _slice_size(group, family)
        parts = [todo[i : i + size] for i in range(0, len(todo), size)]
        found = [_together(group, part, family, mode != "off") for part in parts]
        for part, one in zip(parts, found, strict=True):
            numbers[:, part] = one.numbers
        single = todo[np.concatenate([one.alone for one in found])]
        for i in todo[np.concatenate([one.doubted for one in found])].tolist():
            problems[i], refused = _judged(group, i, mode)
            numbers[:, i] = np.where(refused, np.nan, numbers[:, i])
    for i in single.tolist():
        numbers[:, i], problems[i] = _alone(group, i, family, mode)
    status, reason = ([problem[j] for problem in problems] for j in (0, 1))
    return Table(numbers, status, reason, group.names)


def _slice_size(group: Group, family: AbstractFamily) -> int:
    """How many posteriors to compute together: what each makes of columns and series counts."""
    _, chains, length, dim = group.draws.shape
    p = cast(Polynomial, family).size(None, dim)
    each = 8 * chains * length * (2 * p + 4 * len(group.names) + 10 * dim)
    return int(min(max(SLICE // each, 1), MOST))


def _together(group: Group, part: AnyArray, family: AbstractFamily, look: bool) -> Slice:
    draws, scores, f = (
        np.ascontiguousarray(np.moveaxis(array[part], -1, 1))
        for array in (group.draws, group.scores, group.values)
    )
    flags = None if group.diverging is None else group.diverging[part]
    return compute(draws, scores, f, flags, cast(Polynomial, family).degree, look)


def _judged(group: Group, i: int, mode: AuditMode) -> tuple[Problem, bool]:
    try:
        return judged(group.sample(i), mode)
    except Exception as error:
        return failure(error), True


def _alone(
    group: Group, i: int, family: AbstractFamily, mode: AuditMode
) -> tuple[AnyArray, Problem]:
    """The numbers of one posterior, (number, k), and its status: whatever goes wrong is its own."""
    nothing = np.full((len(NUMBERS), len(group.names)), np.nan)
    try:
        sample = group.sample(i)
        values = integrands({NAME: group.values[i]}, sample).values
        problem, refused = judged(sample, mode)
        if refused:
            return nothing, problem
        found = estimate(Integrands(values, group.names), sample, family, audit="off")
    except Exception as error:
        return nothing, failure(error)
    return np.stack([getattr(found, number) for number in NUMBERS]), problem


NOT_FINITE = "not finite"
INTEGRANDS = "integrands"


class Batch(eqx.Module):
    """Draws and scores of many posteriors of one shape.

    The arrays may be NumPy's, in memory or mapped from a file, or of anything else that has a shape
    and gives NumPy arrays for slices of its first axis, such as arrays of zarr or HDF5: some hundred
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
        """Some of the posteriors, in memory."""
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
) -> Table:
    """A row for each posterior of a batch in memory."""
    finite = np.isfinite(batch.draws.sum(axis=(1, 2, 3)) + batch.scores.sum(axis=(1, 2, 3)))
    known: dict[int, Problem] = {}
    for i in np.flatnonzero(~finite):
        try:
            Sample(batch.draws[i], batch.scores[i])
        except ValueError as error:
            known[int(i)] = (NOT_FINITE, str(error))
    fit = np.array([i for i in range(len(batch)) if i not in known], dtype=int)
    if len(fit) == 0:
        return failures(known.values())
    values, names = _evaluated(f, batch, fit, known)
    if not names:
        return failures(known[i] for i in range(len(batch)))
    group = Group(batch.draws, batch.scores, values, batch.diverging, batch.names, names)
    return estimate_group(group, family, mode, known)


def _evaluated(
    f: IntegrandSpec, batch: Batch, fit: AnyArray, known: dict[int, Problem]
) -> tuple[AnyArray, tuple[str, ...]]:
    """The integrands of all posteriors, NaN for those that are not fit; what fails gets known."""
    try:
        found, names = _values(f, batch, fit)
    except Exception:  # of one or some of them: which?
        found, names = _one_by_one(f, batch, fit, known)
    values = np.full((*batch.draws.shape[:3], len(names)), np.nan)
    fit = np.array([i for i in fit if i not in known], dtype=int)
    if names:
        values[fit] = found
    return values, names


def _values(f: IntegrandSpec, batch: Batch, fit: AnyArray) -> tuple[AnyArray, tuple[str, ...]]:
    """The integrands of some posteriors, as if their chains were those of one."""
    _, _, length, dim = batch.draws.shape
    whole = len(fit) == len(batch)
    draws, scores = (
        (array if whole else array[fit]).reshape(-1, length, dim)
        for array in (batch.draws, batch.scores)
    )
    sample = Sample(draws, scores, batch.names)
    found = integrands(_flat(f, fit, length), sample)
    return found.values.reshape(len(fit), -1, length, len(found.names)), found.names


def _flat(f: Any, fit: AnyArray, length: int) -> Any:
    """Arrays of the integrands with the chains of all posteriors on one axis."""
    if isinstance(f, Mapping):
        return {name: _flat(one, fit, length) for name, one in f.items()}
    if isinstance(f, np.ndarray):
        return f[fit].reshape(-1, length, *f.shape[3:])
    return f


def _one_by_one(
    f: IntegrandSpec, batch: Batch, fit: AnyArray, known: dict[int, Problem]
) -> tuple[AnyArray, tuple[str, ...]]:
    values, names = [], ()
    for i in fit:
        try:
            one, names = _values(f, batch, np.array([i]))
            values.append(one)
        except Exception as error:
            known[int(i)] = failure(error, INTEGRANDS)
    return np.concatenate(values) if values else np.empty(0), names
