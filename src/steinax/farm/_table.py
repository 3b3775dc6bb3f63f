"""One row of numbers for each posterior, and why there are none."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from .._types import AnyArray
from ._slices import NUMBERS

OK = "ok"


class Table(NamedTuple):
    """What some posteriors gave, in order."""

    numbers: AnyArray  # (number, posterior, k), in the order of NUMBERS; NaN where it failed
    status: list[str]  # "ok", or what was wrong in a word
    reason: list[str]  # what was wrong and what to do next; empty if nothing was
    names: tuple[str, ...]  # of the integrands; none where no posterior could be evaluated


def failures(problems: Iterable[tuple[str, str]], names: tuple[str, ...] = ()) -> Table:
    """Rows without numbers, from the status and reason of each."""
    status, reason = [], []
    for word, why in problems:
        status.append(word)
        reason.append(why)
    numbers = np.full((len(NUMBERS), len(status), len(names)), np.nan)
    return Table(numbers, status, reason, names)


def merged(tables: Iterable[Table]) -> Table:
    """All rows one below the other; those of other integrands than the first's have failed."""
    tables = list(tables)
    names = next((table.names for table in tables if table.names), ())
    tables = [_as_others(table, names) for table in tables]
    return Table(
        np.concatenate([np.empty((len(NUMBERS), 0, len(names))), *(t.numbers for t in tables)], 1),
        [word for table in tables for word in table.status],
        [why for table in tables for why in table.reason],
        names,
    )


def ordered(table: Table, order: list[int]) -> Table:
    """The rows moved, each to the place that is given for it."""
    back = np.argsort(order)
    status, reason = ([words[i] for i in back] for words in (table.status, table.reason))
    return Table(table.numbers[:, back], status, reason, table.names)


def _as_others(table: Table, names: tuple[str, ...]) -> Table:
    if table.names == names:
        return table
    other = (
        f"its integrands are {', '.join(table.names[:5])} and those of the others {', '.join(names[:5])}: "
        "give integrands that have the same names for every posterior."
    )
    rows = zip(table.status, table.reason, strict=True)
    return failures(
        ((word, why) if word != OK else ("integrands", other) for word, why in rows), names
    )
