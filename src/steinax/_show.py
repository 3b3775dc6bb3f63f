"""Text for printing: progress bars, tables, one-line descriptions of modules, names and numbers."""

import dataclasses
import io
import os
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import numpy as np
from jax.core import Tracer

if TYPE_CHECKING:
    from rich.console import Console


PATIENCE = 2.0  # seconds before the progress bar appears
FORCED = frozenset(
    ("FORCE_COLOR", "TTY_COMPATIBLE")
)  # with these set, rich treats any output as a terminal


class _Ticker:
    """Progress bar that counts finished steps and appears after `PATIENCE` seconds."""

    def __init__(self, what: str, total: int | None, console: "Console"):
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = [SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()]
        if total is not None:
            columns.insert(2, BarColumn())
        self._bar = Progress(*columns, console=console, transient=True)
        self._task = self._bar.add_task(what, total=total)
        self._timer = threading.Timer(PATIENCE, self._bar.start)
        self._timer.daemon = True

    def start(self) -> None:
        self._timer.start()

    def advance(self) -> None:
        self._bar.advance(self._task)

    def describe(self, what: str) -> None:
        self._bar.update(self._task, description=what)

    def stop(self) -> None:
        self._timer.cancel()
        self._timer.join()
        self._bar.stop()


class _Silence:
    """Replacement for `_Ticker` when the output is not a terminal: it shows nothing."""

    def advance(self) -> None:
        """Count one finished step."""

    def describe(self, what: str) -> None:
        """Say what is going on now."""


@contextmanager
def progress(
    what: str, total: int | None = None, console: "Console | None" = None
) -> Iterator[_Ticker | _Silence]:
    """Show a progress bar for `what`, with `total` steps, if the work takes longer than two seconds.

    The bar is drawn by a separate thread, so it moves while one compiled call runs.
    """
    if console is None and (sys.stderr.isatty() or not FORCED.isdisjoint(os.environ)):
        from rich.console import Console

        console = Console(stderr=True)
    if console is None or not console.is_terminal:
        yield _Silence()
        return
    ticker = _Ticker(what, total, console)
    ticker.start()
    try:
        yield ticker
    finally:
        ticker.stop()


GAP = 2  # blanks between the columns of a table


def bare_table() -> Any:
    """Create an empty rich table without lines."""
    from rich.table import Table

    return Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")


def shortened(name: str, width: int) -> str:
    """Shorten a name to `width` characters by cutting its middle: names of elements differ at the end.

    >>> shortened("log_likelihood/y[a school of a very long name]", 24)
    'log_likeliho… long name]'
    """
    if len(name) <= width:
        return name
    end = (width - 1) // 2
    return f"{name[: width - 1 - end]}…{name[len(name) - end :]}"


def plain_text(table: Any, width: int) -> str:
    """Render a rich table as plain text, without colours and trailing blanks."""
    from rich.console import Console

    text = io.StringIO()
    # Without force_jupyter=False rich would display the table in a notebook and write nothing to `text`.
    Console(file=text, width=width, color_system=None, force_jupyter=False).print(table)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


_TABLE = "display: block; overflow-x: auto; margin: 0; width: fit-content; max-width: 100%"
_CELL = "padding: 0.1em 0.45em; white-space: nowrap; text-align: "


def html_table(headings: Iterable[str], rows: Iterable[Iterable[str]], below: Iterable[str]) -> str:
    """Render a table as HTML for notebooks: names left, numbers right-aligned, lines of text below.

    >>> html_table(["", "value"], [["a<b", "1"]], ["by hand"])[-40:]
    '<p style="font-size: 0.85em">by hand</p>'
    """
    first, *others = headings
    head = _cell("th", first, "left") + "".join(_cell("th", heading, "right") for heading in others)
    body = "".join(
        f"<tr>{_cell('th', name, 'left')}{''.join(_cell('td', cell, 'right') for cell in cells)}</tr>"
        for name, *cells in rows
    )
    table = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    text = "<br>".join(map(escape, below))
    note = f'<p style="font-size: 0.85em">{text}</p>' if text else ""
    # the class of data frames, which notebooks and themes of documentation know, in the dark too
    return f'<table class="dataframe" style="{_TABLE}">{table}</table>{note}'


def _cell(tag: str, text: str, side: str) -> str:
    return f'<{tag} style="{_CELL}{side}">{escape(text)}</{tag}>'


class Described(eqx.Module):
    """Base class of modules whose `repr` is their description on one line."""

    def __repr__(self) -> str:
        return describe(self)


def describe(module: object) -> str:
    """Describe a module on one line: `Polynomial(2) + KernelTranslates(SquaredExponential(3.1))`.

    Only fields with a `repr` that differ from their defaults are shown; a first field that is a number
    always is.

    >>> from steinax import Polynomial
    >>> describe(Polynomial(3) + Polynomial(2))
    'Polynomial(3) + Polynomial(2)'
    """
    terms = getattr(module, "terms", ())
    if len(terms) > 1:
        return " + ".join(describe(term) for term in terms)
    if not isinstance(module, eqx.Module):
        return _plain(module)
    shown, skipped = [], False
    for position, field in enumerate(dataclasses.fields(module)):
        value = getattr(module, field.name)
        always = position == 0 and isinstance(value, int | float)
        if not field.repr or (_is_default(field, value) and not always):
            skipped = True
        elif skipped:
            shown.append(f"{field.name}={describe(value)}")
        else:
            shown.append(describe(value))
    return f"{type(module).__name__}({', '.join(shown)})"


def _plain(value: object) -> str:
    if isinstance(value, Tracer):
        return repr(value)
    if isinstance(value, (np.ndarray, jax.Array)) and value.ndim == 0:
        return f"{float(value):.4g}"
    if isinstance(value, (np.ndarray, jax.Array)) and value.ndim == 1:
        return np.array2string(np.asarray(value), precision=3, separator=", ", threshold=4)
    return getattr(value, "__name__", repr(value))


def _is_default(field: dataclasses.Field, value: object) -> bool:
    default = field.default
    if field.default_factory is not dataclasses.MISSING:
        default = field.default_factory()
    if default is dataclasses.MISSING or isinstance(value, Tracer):
        return False
    if isinstance(value, eqx.Module):
        return type(value) is type(default) and describe(value) == f"{type(value).__name__}()"
    return bool(np.all(value == default)) if not callable(value) else value is default


FINEST = 1e-7  # of the plain error: smaller digits are not printed
MANY = 1e6  # draws: larger numbers are printed as powers of ten
PERFECT = 1e9  # gain in efficiency above which the error is negligible
SMALL = 1e-4  # smaller numbers are printed as powers of ten
SHOWN = 5  # names listed in a sentence
BEYOND = f">{PERFECT:.0e}".replace("+0", "")


def some_of(names: Sequence[str], most: int = 10) -> str:
    """List the first `most` names, followed by dots if there are more.

    >>> some_of(["a", "b", "c"], 2), some_of(["a"])
    ('a, b, ...', 'a')
    """
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")


def vectors_once(names: Sequence[str]) -> list[str]:
    """List names in order, and instead of the elements of a vector its name.

    >>> vectors_once(["mu", "rate[0]", "rate[1]", "tau"])
    ['mu', 'rate', 'tau']
    """
    return list(dict.fromkeys(name.partition("[")[0] for name in names))


def listed(names: Sequence[str]) -> str:
    """List the first few names, and say how many more there are.

    >>> listed("abcdefg")
    'a, b, c, d, e and 2 more'
    """
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def counted(number: int, what: str) -> str:
    """Format a count with its noun in the singular or plural.

    >>> counted(1, "chain"), counted(4, "chain")
    ('1 chain', '4 chains')
    """
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def count(number: float) -> str:
    """Format a number of draws, in full up to a million.

    >>> count(1234.9), count(3.2e6), count(2e12)
    ('1234', '3.2e6', '>1e9')
    """
    if not number >= MANY:
        return str(int(number)) if np.isfinite(number) else str(number)
    return BEYOND if number > PERFECT else f"{number:.1e}".replace("+0", "")


ROUNDING = 1e-14  # relative error of a constant's average
LEAST_ERROR = 1e-300  # a smaller error is the rounding of an average of zeros


def only_rounding(error: Any, value: Any) -> Any:
    """Return whether the standard error of an average is that of rounding, so that all draws are equal.

    >>> only_rounding(9e-16, 1.0), only_rounding(0.0, 0.0), only_rounding(1e-9, 1.0)
    (True, True, False)
    """
    return error <= ROUNDING * abs(value) + LEAST_ERROR


def beside_plain(
    value: float,
    mcse: float,
    plain: float,
    plain_mcse: float,
    worth: float,
    finest: float = FINEST,
    least: float = 0.0,
) -> tuple[str, ...]:
    """Format an estimate and its error, the plain estimate and its error, and the gain in efficiency.

    Digits of the estimate below `finest` times the plain error are not printed, and no digits of both values
    below `least`, an error that they share. The error of a constant is that of rounding, and printed as 0.

    >>> beside_plain(1.0, 9e-16, 1.0, 9e-16, 1.0)
    ('1', '0', '1', '0', '1')
    """
    if only_rounding(max(mcse, plain_mcse), value):
        mcse = plain_mcse = 0.0
    return (
        digits(value, max(mcse, finest * plain_mcse, least)),
        error_text(mcse),
        digits(plain, max(plain_mcse, least)),
        error_text(plain_mcse),
        worth_text(worth),
    )


def error_text(error: float) -> str:
    """Format a standard error.

    >>> error_text(0.01234), error_text(2e-323), error_text(float("nan"))
    ('0.012', '0', 'nan')
    """
    return "0" if error < LEAST_ERROR else f"{error:.2g}"


def worth_text(worth: float) -> str:
    """Format the gain in efficiency of an estimate: three digits, or a number of draws.

    >>> worth_text(1.038), worth_text(28.61), worth_text(1234.5), worth_text(3e15)
    ('1.04', '28.6', '1234', '>1e9')
    """
    return f"{worth:.3g}" if worth < 99.95 else count(worth)


def digits(value: float, error: float) -> str:
    """Format a number to two significant digits of its error; a small one as a power of ten.

    >>> digits(1.23456, 0.012), digits(2.4387e-10, 3e-12), digits(2.4e-10, 0.012)
    ('1.235', '2.439e-10', '0.000')
    """
    if not (np.isfinite(error) and error >= LEAST_ERROR):
        return f"{value:.6g}"
    places = 1 - int(np.floor(np.log10(error)))
    if 0 < abs(value) < SMALL and (more := places + int(np.floor(np.log10(abs(value))))) >= 1:
        return f"{value:.{min(more, 15)}e}"
    places = min(max(places, 0), 15)
    return f"{round(value, places) + 0.0:.{places}f}"  # adding 0 to -0 makes it 0
