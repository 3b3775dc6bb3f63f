"""How an estimate is printed: its table in a terminal or a notebook, and the notes below it."""

import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._show import (
    FINEST,
    GAP,
    bare_table,
    beside_plain,
    count,
    html_table,
    listed,
    plain_text,
    shortened,
)

if TYPE_CHECKING:
    from rich.console import Group


ROWS = 20  # the most rows of an estimate that are shown
NAMES = 3  # long names may take 1 / NAMES of the width
UNVERIFIED = (
    "Until the scores are checked, a value has the digits of its plain average; .value has all."
)
MORE = ".chosen and .candidates"
HEADINGS = ("", "value", "mcse", "plain", "mcse", "worth", "ess", "rhat")


def table(estimate: Any) -> str:
    """Format an estimate as a table that fits the terminal."""
    width = shutil.get_terminal_size().columns
    return plain_text(fitted(estimate, width, ROWS), width)


def fitted(estimate: Any, width: int, rows: int | None = None, more: str = MORE) -> "Group":
    """Format an estimate as a table of the columns that fit a width, and notes below it.

    Args:
        estimate: what to show.
        width: the width of the terminal, in characters.
        rows: the most rows to show; all by default.
        more: where to find all chosen control variates.
    """
    from rich.console import Group
    from rich.text import Text

    cells = cells_of(estimate, rows)
    names = estimate.names[: len(cells)]
    room = min(max(map(len, names)), max(width // NAMES, 8))
    fit = _fitting(cells, width - room)
    shown = bare_table()
    shown.add_column("", no_wrap=True, min_width=room, max_width=room)
    for heading in HEADINGS[1 : fit + 1]:
        shown.add_column(heading, justify="right", no_wrap=True)
    for name, row in zip(names, cells, strict=True):
        shown.add_row(Text(shortened(name, room)), *row[:fit])
    hidden = HEADINGS[fit + 1 :]
    below = [f"no room for {', '.join(hidden)}"] if hidden else []
    return Group(shown, Text("\n".join([*below, *_below(estimate, rows, more)])))


def _fitting(cells: Sequence[tuple[str, ...]], room: int) -> int:
    """Count the columns that fit."""
    for before, column in enumerate(zip(HEADINGS[1:], *cells, strict=True)):
        room -= GAP + max(map(len, column))
        if room < 0:
            return max(before, 1)
    return len(HEADINGS) - 1


def html(estimate: Any) -> str:
    """Format an estimate as an HTML table for notebooks."""
    below = [part for line in _below(estimate, ROWS) for part in line.split("\n")]
    return html_table(HEADINGS, _rows(estimate), below)


def _rows(estimate: Any) -> list[tuple[str, ...]]:
    cells = cells_of(estimate, ROWS)
    return [(name, *row) for name, row in zip(estimate.names, cells, strict=False)]


def _below(estimate: Any, rows: int | None, more: str = MORE) -> list[str]:
    """List the notes below a table: hidden rows, method, audit, and why an error is missing."""
    lines = _chosen(estimate, more)
    if rows is not None and len(estimate.names) > rows:
        lines.insert(0, f"... and {len(estimate.names) - rows} more: estimate[name] has each")
    if estimate.audit is not None:
        lines.extend(repr(estimate.audit).split("\n"))
    if _is_unverified(estimate) and np.any(estimate.mcse < estimate.plain_mcse):
        lines.append(UNVERIFIED)
    if any(name.startswith(SIMULATED) for name in estimate.names):
        lines.append(USE_PREDICTIVE)
    mixing = _poorly_mixed(estimate)
    if mixing:
        lines.append(mixing)
    if estimate.heavy:
        lines.append(no_mean(estimate.heavy))
    if estimate.reason is not None:
        lines.append(f"no standard error: {estimate.reason}")
    return lines


SIMULATED = "posterior_predictive/"  # the group of new data in a trace
USE_PREDICTIVE = (
    "posterior_predictive holds simulated data, whose noise no control variate reduces: give their "
    "conditional distribution to sx.predictive."
)
POOR = 1.05  # R-hat of plain values above which a remark is printed


def _poorly_mixed(estimate: Any) -> str | None:
    """Say which integrands differ from chain to chain, unless the audit has said it of the draws."""
    if estimate.audit is not None and any(one.kind == "rhat" for one in estimate.audit.problems):
        return None
    r_hat = np.atleast_1d(estimate.plain_rhat)
    which = [name for name, high in zip(estimate.names, r_hat > POOR, strict=True) if high]
    if not which:
        return None
    return (
        f"The chains differ (plain_rhat up to {np.nanmax(r_hat):.2f}) on {listed(which)}: run them longer "
        "before you trust any error."
    )


def no_mean(names: Sequence[str]) -> str:
    """Return the warning that the means of some integrands may not exist, with an alternative."""
    return (
        f"{listed(names)}: the draws have a heavy tail (Pareto k-hat above 0.7) and the mean may not "
        "exist; ask for the median or another quantile, "
        "sx.weigh(sample, sx.Polynomial(1)).quantile(name, 0.5)"
    )


def _chosen(estimate: Any, more: str) -> list[str]:
    """Describe the control variate that all integrands have, or say where those of each are listed."""
    if len(set(estimate.chosen)) == 1:
        return [f"{estimate.chosen[0]}, {estimate.note}"]
    return [f"control variates differ by integrand: see {more}", estimate.note]


COLUMNS = ("value", "mcse", "plain_value", "plain_mcse", "worth", "ess", "rhat")


def cells_of(estimate: Any, rows: int | None = None) -> list[tuple[str, ...]]:
    """Format the numbers of the first rows; all rows by default."""
    columns = (np.atleast_1d(getattr(estimate, name))[:rows] for name in COLUMNS)
    least = finest(estimate)
    return [
        (*beside_plain(*numbers, finest=least), *_of_chains(ess, rhat))
        for *numbers, ess, rhat in (map(float, row) for row in zip(*columns, strict=True))
    ]


def finest(estimate: Any) -> float:
    """Return the error, in plain standard errors, below which no digits of a value are shown."""
    return 1.0 if _is_unverified(estimate) else FINEST


def _is_unverified(estimate: Any) -> bool:
    """Return whether there was an audit, but the scores are not verified beyond what it can detect."""
    return estimate.audit is not None and not estimate.audit.verified


def _of_chains(ess: float, rhat: float) -> tuple[str, str]:
    return count(ess), f"{rhat:.3f}" if np.isfinite(rhat) else "-"  # undefined for one chain
