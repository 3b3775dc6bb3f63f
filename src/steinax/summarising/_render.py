"""The summary as a table that fits the terminal."""

import shutil
from typing import TYPE_CHECKING

from .._show import GAP, bare_table, plain_text, shortened
from ._digits import formatted

if TYPE_CHECKING:
    import pandas
    from rich.table import Table

# As there is room. What was gained comes first, then what tells whether to believe it.
FIRST = (
    *("mean", "mcse_mean", "plain_mean", "plain_mcse_mean", "worth", "r_hat", "sd", "lb", "ub"),
    *("mcse_sd", "ess_bulk", "ess_tail", "ess", "plain_sd", "plain_mcse_sd"),
)
# From left to right: the mean and what is known of it, the standard deviation, the draws.
ORDER = (
    *("mean", "mcse_mean", "plain_mean", "plain_mcse_mean", "worth", "ess", "sd", "mcse_sd"),
    *("plain_sd", "plain_mcse_sd", "lb", "ub", "ess_bulk", "ess_tail", "r_hat"),
)
NAMES = 3  # the part of the width, one in so many, that long names may take
SUSPECT = 1.01  # of R-hat


def render(
    frame: "pandas.DataFrame", width: int | None = None, *, rows: int | None = None
) -> "Table":
    """A summary as a rich table no wider than the terminal, with what was done beneath it.

    Where there is not room for all columns, the gain comes first: the controlled mean with its error,
    the plain one, `worth` and R-hat; then the others. Long names are cut in their middle.

    Args:
        frame: what `summary` gives in its wide format.
        width: of the terminal, in characters; found out by default.
        rows: show at most so many, half from the top and half from the end; all by default.

    Example::

        from rich.console import Console

        Console().print(render(sx.summary(sample)))
    """
    from rich.markup import escape

    width = shutil.get_terminal_size().columns if width is None else width
    cells = getattr(frame, "_fmt_map", None) or formatted(frame)
    shown, hidden = _fitting(frame, cells, width)
    room = _name_width(frame, width)
    table = bare_table()
    table.add_column("", no_wrap=True, min_width=room, max_width=room)
    for column in shown:
        table.add_column(_heading(column), justify="right", no_wrap=True, vertical="bottom")
    for name in _some(list(frame.index), rows):
        if name is None:
            table.add_row("...", *("...",) * len(shown), style="dim")
            continue
        row = [_cell(column, name, cells, frame) for column in shown]
        table.add_row(escape(shortened(str(name), room)), *row)
    table.caption = escape(_caption(frame, hidden, rows))
    table.caption_justify = "left"
    table.caption_style = "none"
    return table


def as_text(frame: "pandas.DataFrame", width: int, rows: int | None = None) -> str:
    """The same as plain text."""
    return plain_text(render(frame, width, rows=rows), width)


def _fitting(frame: "pandas.DataFrame", cells: dict, width: int) -> tuple[list[str], list[str]]:
    """The columns that fit, in the order of the frame, and those that do not."""
    left = width - _name_width(frame, width)
    shown: list[str] = []
    for column in sorted(frame.columns, key=lambda column: _place(column, FIRST)):
        need = GAP + max(map(len, [*_heading(column).split("\n"), *cells[column].values()]))
        if need > left:
            break
        left -= need
        shown.append(column)
    order = sorted(shown, key=lambda column: _place(column, ORDER))
    return order, [column for column in frame.columns if column not in shown]


def _place(column: str, order: tuple[str, ...]) -> int:
    """Where a column stands; that of an interval's bound has kind and probability in its name."""
    return order.index(column if column in order else column.rpartition("_")[2])


def _heading(column: str) -> str:
    """In two lines: errors say what of by the column they follow."""
    short = column.replace("mcse_mean", "mcse").replace("mcse_sd", "mcse")
    return short if short == "r_hat" else short.replace("_", "\n", 1)


def _name_width(frame: "pandas.DataFrame", width: int) -> int:
    return min(max(len(str(name)) for name in frame.index), max(width // NAMES, 8))


def _some(names: list, rows: int | None) -> list:
    """The first and the last of many, with None where some are left out."""
    if rows is None or len(names) <= rows:
        return names
    half = rows // 2
    return [*names[: rows - half], None, *names[len(names) - half :]]


def _cell(column: str, name: object, cells: dict, frame: "pandas.DataFrame") -> str:
    text = cells[column][name]
    alarming = column == "r_hat" and frame.at[name, column] > SUSPECT
    return f"[red]{text}[/red]" if alarming else text


def _caption(frame: "pandas.DataFrame", hidden: list[str], rows: int | None) -> str:
    lines = []
    if rows is not None and len(frame) > rows:
        lines.append(f"{len(frame)} rows, of which {rows} are shown")
    if hidden:
        lines.append(f"no room for {', '.join(hidden)}")
    return "\n".join([*lines, *filter(None, [frame.attrs.get("steinax", "")])])
