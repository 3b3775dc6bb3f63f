"""Posteriors of one shape, in memory: some computed together, some alone."""

from typing import NamedTuple, cast

import numpy as np

from .._types import AnyArray
from ..data import Integrands, Sample, integrands
from ..estimation._audited import AuditMode
from ..families import AbstractFamily, Polynomial
from ._alone import NOTHING, Problem, alone, failure, judged
from ._slices import NUMBERS, Slice, batched, compute
from ._table import Table

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
    try:
        sample = group.sample(i)
        wanted = integrands({NAME: group.values[i]}, sample)
    except ValueError as error:
        return np.full((len(NUMBERS), len(group.names)), np.nan), failure(error)
    return alone(Integrands(wanted.values, group.names), sample, family, mode)
