"""Answers: a table for people, JSON and CSV for programs, to the terminal or to a file."""

import csv
import io
import json
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType

WIDTH = 120  # of what is not read on a terminal


def format_of(options: Any) -> str:
    """What to write: as asked for, or by the ending of the file, or else a table."""
    ending = Path(options.output or "").suffix.removeprefix(".")
    return options.format or (ending if ending in ("json", "csv") else "table")


def write(text: str, options: Any) -> None:
    """Print the text, or write it to the file that was named."""
    text = text if text.endswith("\n") else text + "\n"
    if options.output is None:
        known = sys.stdout.encoding or "utf-8"  # a terminal may not know every letter
        sys.stdout.write(text.encode(known, "replace").decode(known))
    else:
        Path(options.output).write_text(text, encoding="utf-8")


def deliver(
    options: Any,
    answer: Callable[[], Mapping[str, Any]],
    rows: Callable[[], Sequence[Mapping[str, Any]]],
    table: Callable[[int], "RenderableType"],
) -> None:
    """Write an answer in the form that is asked for; the others are not made.

    Args:
        options: of the command.
        answer: all of it, for JSON.
        rows: of the table, for CSV.
        table: for people, of a given width.
    """
    kind = format_of(options)
    if kind == "json":
        write(as_json(answer()), options)
    elif kind == "csv":
        write(as_csv(rows()), options)
    else:
        _print_table(table(_width_of(options)), options)


def _print_table(table: "RenderableType", options: Any) -> None:
    """Print a table; in colour on a terminal only."""
    from rich.console import Console

    from .._show import plain_text

    width = _width_of(options)
    if options.output is None and sys.stdout.isatty():
        Console(width=width).print(table)
    else:
        write(plain_text(table, width), options)


def _width_of(options: Any) -> int:
    """How many columns a table may have: COLUMNS says, or the terminal."""
    seen = options.output is None and sys.stdout.isatty()
    return shutil.get_terminal_size((80 if seen else WIDTH, 24)).columns


def as_json(answer: Mapping[str, Any]) -> str:
    """JSON with all digits; what JSON has no number for is null."""
    return json.dumps(_plain(answer), indent=2, ensure_ascii=False, allow_nan=False)


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """CSV with all digits, a column for each key of the first row; what is not a number is left out."""
    text = io.StringIO()
    table = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    table.writeheader()
    table.writerows({key: _cell(value) for key, value in row.items()} for row in rows)
    return text.getvalue()


def _plain(value: Any) -> Any:
    """With the types of JSON."""
    import numpy as np

    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


def _cell(value: Any) -> Any:
    import numpy as np

    value = value.item() if isinstance(value, np.generic) else value
    return "" if value is None or (isinstance(value, float) and np.isnan(value)) else value


__all__ = ["as_csv", "as_json", "deliver", "format_of", "write"]
