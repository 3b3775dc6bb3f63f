"""How things print: modules by name with what was set, long names cut, tables as plain text."""

import dataclasses
import io
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import equinox as eqx
import jax
import numpy as np

GAP = 2  # blanks between the columns of a table


def bare_table() -> Any:
    """A rich table without lines, to be filled."""
    from rich.table import Table

    return Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")


def shortened(name: str, width: int) -> str:
    """A name of at most so many letters, its middle left out: names of elements differ at their end.

    >>> shortened("log_likelihood/y[a school of a very long name]", 24)
    'log_likeliho… long name]'
    """
    if len(name) <= width:
        return name
    end = (width - 1) // 2
    return f"{name[: width - 1 - end]}…{name[len(name) - end :]}"


def plain_text(table: Any, width: int) -> str:
    """What rich would print, without colours and blanks at the ends of lines."""
    from rich.console import Console

    text = io.StringIO()
    # Without the last argument rich would show the table in a notebook, and write nothing here.
    Console(file=text, width=width, color_system=None, force_jupyter=False).print(table)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


_TABLE = "display: block; overflow-x: auto; margin: 0; width: fit-content; max-width: 100%"
_CELL = "padding: 0.1em 0.7em; white-space: nowrap; text-align: "


def html_table(headings: Iterable[str], rows: Iterable[Iterable[str]], below: Iterable[str]) -> str:
    """A table as notebooks show it: numbers to the right of names, and lines of text below.

    >>> html_table(["", "value"], [["a<b", "1"]], ["by hand"])[-40:]
    '<p style="font-size: 0.85em">by hand</p>'
    """
    first, *others = headings
    head = _cell("th", first, "left") + "".join(_cell("th", one, "right") for one in others)
    body = "".join(
        f"<tr>{_cell('th', name, 'left')}{''.join(_cell('td', one, 'right') for one in cells)}</tr>"
        for name, *cells in rows
    )
    table = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    text = "<br>".join(map(escape, below))
    note = f'<p style="font-size: 0.85em">{text}</p>' if text else ""
    return f'<table style="{_TABLE}">{table}</table>{note}'


def _cell(tag: str, text: str, side: str) -> str:
    return f'<{tag} style="{_CELL}{side}">{escape(text)}</{tag}>'


def describe(module: object) -> str:
    """A module on one line: `Polynomial(2) + KernelTranslates(SquaredExponential(3.1))`.

    Only what differs from the default is shown, and a first number always.

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
    for place, field in enumerate(dataclasses.fields(module)):
        value = getattr(module, field.name)
        if _is_default(field, value) and not (place == 0 and isinstance(value, int)):
            skipped = True
        elif skipped:
            shown.append(f"{field.name}={describe(value)}")
        else:
            shown.append(describe(value))
    return f"{type(module).__name__}({', '.join(shown)})"


def _plain(value: object) -> str:
    if isinstance(value, (np.ndarray, jax.Array)) and value.ndim == 0:
        return f"{float(value):.4g}"
    if isinstance(value, (np.ndarray, jax.Array)) and value.ndim == 1:
        return np.array2string(np.asarray(value), precision=3, separator=", ", threshold=4)
    return getattr(value, "__name__", repr(value))


def _is_default(field: dataclasses.Field, value: object) -> bool:
    default = field.default
    if field.default_factory is not dataclasses.MISSING:
        default = field.default_factory()
    if default is dataclasses.MISSING:
        return False
    if isinstance(value, eqx.Module):
        return type(value) is type(default) and describe(value) == f"{type(value).__name__}()"
    return bool(np.all(value == default)) if not callable(value) else value is default


FINEST = 1e-7  # of the plain error: what is smaller is not written out
MANY = 1e6  # draws, from which on they are not written out
PERFECT = 1e9  # what an estimate is worth that has no error to speak of
SHOWN = 5  # names in a sentence
BEYOND = f">{PERFECT:.0e}".replace("+0", "")


def some_of(names: Sequence[str], most: int = 10) -> str:
    """The first of some names, and dots where there are more.

    >>> some_of(["a", "b", "c"], 2), some_of(["a"])
    ('a, b, ...', 'a')
    """
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")


def listed(names: Sequence[str]) -> str:
    """Some names, and how many more there are.

    >>> listed("abcdefg")
    'a, b, c, d, e and 2 more'
    """
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def counted(number: int, what: str) -> str:
    """So many of something.

    >>> counted(1, "chain"), counted(4, "chain")
    ('1 chain', '4 chains')
    """
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def count(number: float) -> str:
    """A number of draws, written out up to a million.

    >>> count(1234.9), count(3.2e6), count(2e12)
    ('1234', '3.2e6', '>1e9')
    """
    if not number >= MANY:
        return str(int(number)) if np.isfinite(number) else str(number)
    return BEYOND if number > PERFECT else f"{number:.1e}".replace("+0", "")


def beside_plain(
    value: float,
    mcse: float,
    plain: float,
    plain_mcse: float,
    worth: float,
    finest: float = FINEST,
) -> tuple[str, ...]:
    """A value with its error, the plain ones, and what it is worth.

    Digits of the value beyond the part `finest` of the plain error are not written out.
    """
    return (
        digits(value, max(mcse, finest * plain_mcse)),
        f"{mcse:.2g}",
        digits(plain, plain_mcse),
        f"{plain_mcse:.2g}",
        times(worth),
    )


def times(worth: float) -> str:
    """What an estimate is worth, up to where it has no error to speak of."""
    return BEYOND if worth > PERFECT else f"{worth:.3g}"


def digits(value: float, error: float) -> str:
    """A number to two digits of its error."""
    if not (np.isfinite(error) and error > 0):
        return f"{value:.6g}"
    places = min(max(1 - int(np.floor(np.log10(error))), 0), 15)
    return f"{round(value, places) + 0.0:.{places}f}"  # adding 0 to -0 makes it 0
