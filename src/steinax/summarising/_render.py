"""Printing of a summary: digits, the table with its caption, and the output formats."""

import shutil
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from .._show import GAP, bare_table, count, plain_text, shortened, worth_text
from ..data import labels

if TYPE_CHECKING:
    import pandas
    import rich.table
    import xarray
    from rich.table import Table


ZEROS = 4  # decimal places of a zero that are shown
MOST = 10  # significant digits shown; the frame itself holds all digits
FINEST = 1e-10  # of a standard deviation: the last digit shown, for a mean near zero
VERIFIED = "scores_verified"  # attribute of the table: whether digits may rely on the scores
PAIRS = {
    "mean": "mcse_mean",
    "sd": "mcse_sd",
    "plain_mean": "plain_mcse_mean",
    "plain_sd": "plain_mcse_sd",
}


def formatted(frame: "pandas.DataFrame") -> dict[str, dict[str, str]]:
    """Format every number of a summary, by column and row.

    An error has two significant digits, a mean or standard deviation as many places as twice its error;
    the limit is ten significant digits, because ArviZ's six are too few for controlled estimates.
    R-hat has two places, effective sample sizes none, and other columns follow ArviZ's `stats.round_to`.

    Args:
        frame: the table, a row for each parameter.
    """
    from arviz_base import rcParams

    digits = rcParams["stats.round_to"]
    shown = {}
    for column in frame.columns:
        numbers = frame[column].to_numpy(float)
        error = PAIRS.get(column, f"mcse_{column}")
        if error in frame.columns:
            scale = frame[_scale(column)].to_numpy(float) if _scale(column) in frame else 0.0
            errors = np.maximum(frame[error].to_numpy(float), FINEST * scale)
            if not frame.attrs.get(VERIFIED, True) and f"plain_{error}" in frame.columns:
                errors = np.fmax(errors, frame[f"plain_{error}"].to_numpy(float))
            unsure = "2g" if column in PAIRS else digits  # where the error is missing
            cells = [_by_error(*pair, unsure) for pair in zip(numbers, errors, strict=True)]
        elif column == "r_hat":
            cells = [f"{number:.2f}" for number in numbers]
        elif column.startswith("ess"):
            cells = list(map(count, numbers))
        elif column == "worth":
            cells = list(map(worth_text, numbers))
        else:
            cells = [_rounded(number, digits) for number in numbers]
        shown[column] = dict(zip(frame.index, cells, strict=True))
    return shown


def _scale(column: str) -> str:
    return "plain_sd" if column.startswith("plain") else "sd"


def _by_error(number: float, error: float, digits: int | str) -> str:
    # ArviZ has no public name for its rounding, and this table has to round as `az.summary` does.
    from arviz_stats.base.stats_utils import get_decimal_places_from_se

    if not np.isfinite(number):
        return str(number)
    if not np.isfinite(error):
        return _rounded(number, digits)
    if error == 0:  # a constant
        return _general(number)
    places = get_decimal_places_from_se(error)
    if places < 0:
        return f"{number:.2e}"
    number = round(number, places) + 0.0  # adding 0 to -0 makes it 0
    figures = places + len(str(abs(int(number)))) - (abs(number) < 1)
    shown = number != 0 or places <= ZEROS
    return f"{number:.{places}f}" if shown and figures <= MOST else _general(number)


def _rounded(number: float, digits: int | str) -> str:
    from arviz_stats.base.stats_utils import round_num

    return _general(float(round_num(number, digits)))


def _general(number: float) -> str:
    """Format a number without trailing zeros or negative zero."""
    return f"{number + 0.0:.{MOST}g}"


# Columns in order of priority where room is scarce: the gain, the posterior, then the plain mean.
FIRST = (
    *("mean", "mcse_mean", "worth", "r_hat", "sd", "lb", "ub", "plain_mean", "plain_mcse_mean"),
    *("mcse_sd", "ess_bulk", "ess_tail", "ess", "plain_sd", "plain_mcse_sd"),
    *("mcse_lb", "mcse_ub", "plain_lb", "plain_ub"),
)
# Columns from left to right: the mean and its errors, the standard deviation, diagnostics of the draws.
ORDER = (
    *("mean", "mcse_mean", "plain_mean", "plain_mcse_mean", "worth", "ess", "sd", "mcse_sd"),
    *("plain_sd", "plain_mcse_sd", "lb", "mcse_lb", "ub", "mcse_ub", "plain_lb", "plain_ub"),
    *("ess_bulk", "ess_tail", "r_hat"),
)
NAMES = 3  # long names may take up to a third of the width
SUSPECT = 1.01  # threshold of R-hat


def render(
    frame: "pandas.DataFrame", width: int | None = None, *, rows: int | None = None
) -> "Table":
    """Render a summary as a rich table no wider than the terminal, with a note on the gain below it.

    If there is no room for all columns, the most important ones are shown: the controlled mean with its
    error, `worth`, R-hat, the standard deviation, the interval and the plain mean; then the others. Long
    names are cut in the middle.

    Args:
        frame: the result of `summary` in its wide format.
        width: of the terminal, in characters; detected by default.
        rows: the largest number of rows to show, half of them from the end; all by default.

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
    for name in _first_and_last(list(frame.index), rows):
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
    """Render a summary as plain text."""
    return plain_text(render(frame, width, rows=rows), width)


def as_html(table: str, note: str) -> str:
    """Put the note below a table in HTML, for a notebook."""
    from html import escape

    return f'{table}<div style="white-space: pre-wrap">{escape(note)}</div>' if note else table


def _fitting(frame: "pandas.DataFrame", cells: dict, width: int) -> tuple[list[str], list[str]]:
    """Choose the columns that fit, in display order, and list those that do not."""
    remaining = width - _name_width(frame, width)
    shown: list[str] = []
    for column in sorted(frame.columns, key=lambda column: _position(column, FIRST)):
        needed = GAP + max(map(len, [*_heading(column).split("\n"), *cells[column].values()]))
        if needed > remaining:
            break
        remaining -= needed
        shown.append(column)
    if shown and shown[-1].endswith("_lb"):  # half of an interval says little
        shown.pop()
    order = sorted(shown, key=lambda column: _position(column, ORDER))
    return order, [column for column in frame.columns if column not in shown]


def is_summary(frame: "pandas.DataFrame") -> bool:
    """Whether every column is one of a summary; those of a transposed one are not."""
    try:
        return all(_position(str(column), ORDER) >= 0 for column in frame.columns)
    except ValueError:
        return False


def _position(column: str, order: tuple[str, ...]) -> int:
    """Find the position of a column in `order`; bounds of intervals are matched by their suffix."""
    if column in order:
        return order.index(column)
    prefix = column.partition("_")[0]
    suffix = column.rpartition("_")[2]
    return order.index(f"{prefix}_{suffix}" if prefix in ("mcse", "plain") else suffix)


def _heading(column: str) -> str:
    """Write a heading in two lines; `mcse` refers to the column before it."""
    short = column.replace("mcse_mean", "mcse").replace("mcse_sd", "mcse")
    return short if short == "r_hat" else short.replace("_", "\n", 1)


def _name_width(frame: "pandas.DataFrame", width: int) -> int:
    return min(max(len(str(name)) for name in frame.index), max(width // NAMES, 8))


def _first_and_last(names: list, rows: int | None) -> list:
    """Select the first and last names if there are more than `rows`, with None for those left out."""
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


type Format = Literal["wide", "long", "xarray", "rich"]
FORMATS = get_args(Format.__value__)


def output(
    table: "xarray.Dataset", kept: list[str], fmt: str, round_to: int | str | None
) -> "pandas.DataFrame | xarray.Dataset | rich.table.Table":
    """Convert a Dataset with a dimension `summary` to the requested format, rounded if asked to.

    Showing as many digits as the errors support is done by the wide formats only.

    Args:
        table: all statistics.
        kept: those to show; the others may be errors that determine digits.
        fmt: the format.
        round_to: as in `summary`.
    """
    from arviz_base import rcParams

    automatic = round_to == "auto"
    digits = rcParams["stats.round_to"] if round_to is None else round_to
    exact = automatic or digits in ("none", "None")
    whole, table = table, table.sel(summary=kept)
    if fmt == "xarray":
        return table if exact else _rounded_dataset(table, digits)
    if fmt == "long":
        frame = table.to_dataframe().reset_index().set_index("summary")
        frame.index = list(frame.index)
        frame = frame if exact else _rounded_frame(frame, digits, list(table.data_vars))
        frame.attrs.update(table.attrs)
        return frame
    frame = _wide(whole)
    frame.attrs.update(table.attrs)
    if not exact:
        frame = _rounded_frame(frame, digits, list(frame.columns))
    return _as_frame(frame, kept, automatic, fmt)


def _wide(table: "xarray.Dataset") -> "pandas.DataFrame":
    """Convert to a row for each element, a column for each statistic.

    arviz_base (seen in 1.3) mixes up the elements of a variable that shares a dimension with an earlier one.
    """
    import pandas

    arrays = {str(name): array.transpose("summary", ...) for name, array in table.items()}
    names = [label for name, array in arrays.items() for label in labels(name, array, 1)]
    blocks = [array.values.reshape(len(array), -1).T for array in arrays.values()]
    return pandas.DataFrame(np.concatenate(blocks), names, table["summary"].values.tolist())


def _as_frame(
    frame: "pandas.DataFrame", kept: list[str], automatic: bool, fmt: str
) -> "pandas.DataFrame | rich.table.Table":
    if not automatic and fmt != "rich":
        return frame.loc[:, kept]

    from .frame import SummaryFrame

    cells = {column: texts for column, texts in formatted(frame).items() if column in kept}
    printed = SummaryFrame(frame[kept], fmt_map=cells)
    printed.attrs.update(frame.attrs)
    return render(printed) if fmt == "rich" else printed


def _rounded_dataset(table: "xarray.Dataset", digits: Any) -> "xarray.Dataset":
    import xarray
    from arviz_stats.base.stats_utils import round_num

    return xarray.apply_ufunc(round_num, table, digits, vectorize=True, keep_attrs=True)


def _rounded_frame(frame: "pandas.DataFrame", digits: Any, columns: list) -> "pandas.DataFrame":
    from arviz_stats.base.stats_utils import round_num

    rounded = frame[columns].map(lambda number: round_num(number, digits))
    return frame.assign(**{str(name): rounded[name] for name in columns})
