"""An estimate as a table that fits the terminal."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Group

    from ..estimation import Estimate

GAP = 2  # blanks between columns
NAMES = 3  # the part of the width, one in so many, that long names may take
CHOICES = 3  # that are named
HEADINGS = ("value", "mcse", "plain", "mcse", "worth", "ess", "rhat")


def estimate_table(found: "Estimate", width: int) -> "Group":
    """All rows, and the columns that there is room for; below, how it was made.

    Args:
        found: the estimate.
        width: of the terminal, in characters.
    """
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from .._show import shortened
    from ..estimation._table import cells_of

    cells = cells_of(found)
    room = min(max(map(len, found.names)), max(width // NAMES, 8))
    count = _fitting(cells, width - room)
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
    table.add_column("", no_wrap=True, min_width=room, max_width=room)
    for heading in HEADINGS[:count]:
        table.add_column(heading, justify="right", no_wrap=True)
    for name, row in zip(found.names, cells, strict=True):
        table.add_row(Text(shortened(name, room)), *row[:count])
    return Group(table, Text("\n".join(_below(found, HEADINGS[count:]))))


def _fitting(cells: Sequence[tuple[str, ...]], left: int) -> int:
    """How many columns fit."""
    for count, column in enumerate(zip(HEADINGS, *cells, strict=True)):
        left -= GAP + max(map(len, column))
        if left < 0:
            return max(count, 1)
    return len(HEADINGS)


def _below(found: "Estimate", hidden: Sequence[str]) -> list[str]:
    lines = [f"no room for {', '.join(hidden)}"] if hidden else []
    ways = Counter(found.chosen).most_common()
    lines += [f"{count} of {len(found)} by {name}" for name, count in ways[:CHOICES]]
    if len(ways) > CHOICES:
        lines.append(f"{len(ways) - CHOICES} more ways; --json and --csv name that of each row")
    lines.append(found.note)
    if found.audit is not None:
        lines.append(repr(found.audit))
    if found.reason is not None:
        lines.append(f"no standard error: {found.reason}")
    return lines


__all__ = ["estimate_table"]
