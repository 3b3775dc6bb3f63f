"""An estimate as people read it."""

import shutil
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .._show import GAP, bare_table, html_table, plain_text, shortened

if TYPE_CHECKING:
    from rich.console import Group

    from ._result import Estimate

ROWS = 20  # of a long estimate that are shown
NAMES = 3  # the part of the width, one in so many, that long names may take
FINEST = 1e-7  # of the plain error: what is smaller is not written out
PERFECT = 1e9  # what an estimate is worth that has no error to speak of
MORE = ".chosen and .candidates"
HEADINGS = ("", "value", "mcse", "plain", "mcse", "worth", "ess", "rhat")


def table(estimate: "Estimate") -> str:
    """The estimate as a table that fits the terminal."""
    width = shutil.get_terminal_size().columns
    return plain_text(fitted(estimate, width, ROWS), width)


def fitted(estimate: "Estimate", width: int, rows: int | None = None, more: str = MORE) -> "Group":
    """The columns that there is room for, of some rows or all; below, how it was made.

    Args:
        estimate: what to show.
        width: of the terminal, in characters.
        rows: how many to show at most.
        more: where all choices are named.
    """
    from rich.console import Group
    from rich.text import Text

    cells = cells_of(estimate, rows)
    names = estimate.names[: len(cells)]
    room = min(max(map(len, names)), max(width // NAMES, 8))
    count = _fitting(cells, width - room)
    shown = bare_table()
    shown.add_column("", no_wrap=True, min_width=room, max_width=room)
    for heading in HEADINGS[1 : count + 1]:
        shown.add_column(heading, justify="right", no_wrap=True)
    for name, row in zip(names, cells, strict=True):
        shown.add_row(Text(shortened(name, room)), *row[:count])
    hidden = HEADINGS[count + 1 :]
    below = [f"no room for {', '.join(hidden)}"] if hidden else []
    return Group(shown, Text("\n".join([*below, *_below(estimate, rows, more)])))


def _fitting(cells: Sequence[tuple[str, ...]], left: int) -> int:
    """How many columns fit."""
    for count, column in enumerate(zip(HEADINGS[1:], *cells, strict=True)):
        left -= GAP + max(map(len, column))
        if left < 0:
            return max(count, 1)
    return len(HEADINGS) - 1


def html(estimate: "Estimate") -> str:
    """The same table as notebooks show it."""
    return html_table(HEADINGS, _rows(estimate), _below(estimate, ROWS))


def _rows(estimate: "Estimate") -> list[tuple[str, ...]]:
    cells = cells_of(estimate, ROWS)
    return [(name, *row) for name, row in zip(estimate.names, cells, strict=False)]


def _below(estimate: "Estimate", rows: int | None, more: str = MORE) -> list[str]:
    """What was left out, how the estimate was made, the audit, and why an error is missing."""
    lines = _chosen(estimate, more)
    if rows is not None and len(estimate.names) > rows:
        lines.insert(0, f"... and {len(estimate.names) - rows} more: estimate[name] has each")
    if estimate.audit is not None:
        lines.extend(repr(estimate.audit).split("\n"))
    if estimate.reason is not None:
        lines.append(f"no standard error: {estimate.reason}")
    return lines


def _chosen(estimate: "Estimate", more: str) -> list[str]:
    """How the estimate was made: the choice that serves most integrands, and how many others there are."""
    (most, count), *others = Counter(estimate.chosen).most_common()
    if not others:
        return [f"{most}, {estimate.note}"]
    if count == 1:
        return [f"a choice for each: see {more}", estimate.note]
    also = "one other" if len(others) == 1 else f"{len(others)} others"
    return [
        f"{count} of {len(estimate)} by {most}, and {also}: see {more}",
        estimate.note,
    ]


_COLUMNS = ("value", "mcse", "plain_value", "plain_mcse", "worth", "ess", "rhat")


def cells_of(estimate: "Estimate", rows: int | None = None) -> list[tuple[str, ...]]:
    """The numbers of the first rows as they are shown, all rows by default."""
    columns = (np.atleast_1d(getattr(estimate, name))[:rows] for name in _COLUMNS)
    return [
        (*beside_plain(*numbers), *_of_chains(ess, rhat))
        for *numbers, ess, rhat in (map(float, row) for row in zip(*columns, strict=True))
    ]


def beside_plain(
    value: float, mcse: float, plain: float, plain_mcse: float, worth: float
) -> tuple[str, ...]:
    """A value with its error, the plain ones, and what it is worth."""
    return (
        digits(value, max(mcse, FINEST * plain_mcse)),
        f"{mcse:.2g}",
        digits(plain, plain_mcse),
        f"{plain_mcse:.2g}",
        times(worth),
    )


def times(worth: float) -> str:
    """What an estimate is worth, up to where it has no error to speak of."""
    return f"{worth:.3g}" if not worth > PERFECT else f">{PERFECT:.0e}".replace("+0", "")


def _of_chains(ess: float, rhat: float) -> tuple[str, str]:
    return f"{ess:.0f}", f"{rhat:.3f}" if np.isfinite(rhat) else "-"  # one chain has none


def digits(value: float, error: float) -> str:
    """A number to two digits of its error."""
    if not (np.isfinite(error) and error > 0):
        return f"{value:.6g}"
    places = min(max(1 - int(np.floor(np.log10(error))), 0), 15)
    return f"{round(value, places) + 0.0:.{places}f}"  # adding 0 to -0 makes it 0
