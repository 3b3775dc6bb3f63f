"""An estimate as people read it."""

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from .._show import plain_text

if TYPE_CHECKING:
    from ._estimate import Estimate

ROWS = 20  # of a long estimate that are shown
WIDTH = 100
CHOICES = 3  # that are named


def table(estimate: "Estimate") -> str:
    """The estimate as a table, with as many digits as the errors support."""
    from rich.table import Table

    rows = Table(box=None, pad_edge=False, header_style="none")
    for heading in ("", "value", "mcse", "plain", "mcse", "worth", "ess", "rhat"):
        rows.add_column(heading, justify="left" if not heading else "right", no_wrap=True)
    for name, cells in zip(estimate.names, cells_of(estimate, ROWS), strict=False):
        rows.add_row(name, *cells)
    lines = plain_text(rows, WIDTH).split("\n")
    if len(estimate.names) > ROWS:
        lines.append(f"... and {len(estimate.names) - ROWS} more")
    lines += _chosen(estimate)
    if estimate.audit is not None:
        lines.append(repr(estimate.audit))
    if estimate.reason is not None:
        lines.append(f"no standard error: {estimate.reason}")
    return "\n".join(lines)


def _chosen(estimate: "Estimate") -> list[str]:
    """How the estimate was made: each choice once, with the number of integrands it serves."""
    counts = Counter(estimate.chosen)
    if len(counts) == 1:
        return [f"{estimate.chosen[0]}, {estimate.note}"]
    lines = [f"{count} of {len(estimate)}: {name}" for name, count in counts.most_common(CHOICES)]
    if len(counts) > CHOICES:
        lines.append(f"... and {len(counts) - CHOICES} more choices: see .chosen and .candidates")
    return [*lines, estimate.note]


_COLUMNS = ("value", "mcse", "plain_value", "plain_mcse", "worth", "ess", "rhat")


def cells_of(estimate: "Estimate", rows: int | None = None) -> list[tuple[str, ...]]:
    """The numbers of the first rows as they are shown, all rows by default."""
    columns = (np.atleast_1d(getattr(estimate, name))[:rows] for name in _COLUMNS)
    return [_format(*map(float, numbers)) for numbers in zip(*columns, strict=True)]


def _format(
    value: float,
    mcse: float,
    plain: float,
    plain_mcse: float,
    worth: float,
    ess: float,
    rhat: float,
) -> tuple[str, ...]:
    return (
        digits(value, mcse),
        f"{mcse:.2g}",
        digits(plain, plain_mcse),
        f"{plain_mcse:.2g}",
        f"{worth:.3g}",
        f"{ess:.0f}",
        f"{rhat:.3f}",
    )


def digits(value: float, error: float) -> str:
    """A number to two digits of its error."""
    if not (np.isfinite(error) and error > 0):
        return f"{value:.6g}"
    places = min(max(1 - int(np.floor(np.log10(error))), 0), 15)
    return f"{round(value, places) + 0.0:.{places}f}"  # adding 0 to -0 makes it 0
