from collections.abc import Sequence

import numpy as np

from ..estimation import Estimate
from ..estimation._table import digits
from ._style import (
    CONTROLLED,
    FONT,
    PLAIN,
    Axes,
    chosen_rows,
    height_of,
    legend_above,
    name_rows,
    one_axes,
    times,
)

APART = 0.17  # rows between the plain interval and the controlled one, and the middle of the row
LEAST = 3.0  # standard errors to each side that are always seen


def plot_estimate(
    estimate: Estimate,
    *,
    names: Sequence[str] | None = None,
    level: float = 0.95,
    standardise: bool = True,
    numbers: bool = True,
    ax: Axes | None = None,
) -> Axes:
    r"""Estimates with their plain and controlled intervals, a row for each integrand: a forest.

    Expectations of different scales stand on one axis, as distances from the plain average in
    units of its standard error,

    $$ (\text{value} - \text{plain\_value}) / \text{plain\_mcse} , $$

    so all plain intervals look alike, and the controlled ones show by how much they are narrower and
    whether they lie where they should. A controlled interval that is too narrow to be seen still
    has its tick, and the numbers stand beside the rows.

    Args:
        estimate: of one or more integrands.
        names: of the integrands to draw; by default the first 60.
        level: the probability that intervals should cover.
        standardise: whether to draw distances from the plain averages, in their standard errors;
            otherwise the expectations themselves, which should then be of one scale.
        numbers: whether to print values, errors and worth at the right.
        ax: axes to draw on.

    >>> import numpy as np, steinax as sx, matplotlib.pyplot as plt
    >>> from steinax.plots import plot_estimate
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> est = sx.estimate("x", sx.Sample(x, -x), sx.Polynomial(1))
    >>> [label.get_text() for label in plot_estimate(est).get_yticklabels()]
    ['x[0]', 'x[1]']
    >>> plt.close()
    """
    rows = chosen_rows(estimate.names, names)
    ax = one_axes(ax, 9.0 if numbers else 6.5, height_of(len(rows)))
    size = name_rows(ax, [estimate.names[i] for i in rows])
    value, plain, intervals, plain_intervals = placed(estimate, rows, level, standardise)
    y = np.arange(len(rows))
    ax.hlines(y - APART, *plain_intervals.T, color=PLAIN, linewidth=2.0)
    ax.plot(
        plain, y - APART, "o", color=PLAIN, markerfacecolor="white", markersize=5, label="plain"
    )
    ax.hlines(y + APART, *intervals.T, color=CONTROLLED, linewidth=5.0)
    tick = {"markersize": 8, "markeredgewidth": 1.8, "label": "controlled"}
    ax.plot(value, y + APART, "|", color=CONTROLLED, **tick)
    if standardise:
        ends = np.abs(np.r_[plain_intervals.ravel(), intervals.ravel(), value, LEAST])
        reach = 1.08 * np.nanmax(np.where(np.isfinite(ends), ends, np.nan))
        ax.set_xlim(-reach, reach)
        ax.axvline(0.0, color=PLAIN, linewidth=0.8, linestyle=":", zorder=0)
    units = "distance from the plain average, in its standard errors" if standardise else "value"
    more = len(estimate) - len(rows)
    unseen = f"\n{more} more integrands are not drawn: choose by names=" if more else ""
    label = f"{units} ({100 * level:g}% intervals){unseen if names is None else ''}"
    ax.set_xlabel(label, fontsize=FONT)
    legend_above(ax, 2)
    if numbers:
        _print_numbers(ax, estimate, rows, size)
    return ax


def placed(
    estimate: Estimate, rows: Sequence[int], level: float, standardise: bool
) -> tuple[np.ndarray, ...]:
    """Values, plain ones, intervals and plain intervals of some integrands, where they are drawn."""
    numbers = (estimate.value, estimate.plain_value)
    value, plain = (np.atleast_1d(one).astype(float)[rows] for one in numbers)
    intervals = (estimate.interval(level), estimate.plain_interval(level))
    ours, theirs = (np.reshape(one, (-1, 2)).astype(float)[rows] for one in intervals)
    if not standardise:
        return value, plain, ours, theirs
    unit = np.atleast_1d(estimate.plain_mcse).astype(float)[rows]
    unit = np.where(unit > 0, unit, np.nan)[:, None]  # without an error there is no distance
    centre = plain[:, None]
    moved = [((one.reshape(len(rows), -1) - centre) / unit) for one in (value, ours, theirs)]
    return moved[0][:, 0], np.zeros(len(rows)), moved[1], moved[2]


def _print_numbers(ax: Axes, estimate: Estimate, rows: Sequence[int], size: float) -> None:
    """Three columns at the right of the axes: controlled, plain, and what the former is worth."""
    fields = ("value", "mcse", "plain_value", "plain_mcse", "worth")
    value, mcse, plain, plain_mcse, worth = (
        np.atleast_1d(getattr(estimate, field)).astype(float)[rows] for field in fields
    )
    columns = {
        "controlled": [_sure(*pair) for pair in zip(value, mcse, strict=True)],
        "plain": [_sure(*pair) for pair in zip(plain, plain_mcse, strict=True)],
        "worth": ["" if np.isnan(w) else times(w) for w in worth],
    }
    right = 8.0
    for heading, texts in columns.items():
        # digits are about 0.6 as wide as the letters are high
        right += 0.6 * size * max(map(len, (heading, *texts))) + 8
        style = {"fontsize": size, "ha": "right", "textcoords": "offset points"}
        ax.annotate(heading, (1, 1), (right, 4), xycoords="axes fraction", va="bottom", **style)
        for y, text in enumerate(texts):
            where = ax.get_yaxis_transform()
            ax.annotate(text, (1, y), (right, 0), xycoords=where, va="center", **style)


def _sure(value: float, error: float) -> str:
    """A value and its error, both to two digits of the error."""
    if not np.isfinite(error):
        return f"{value:.6g} ± ?"
    return f"{digits(value, error)} ± {digits(error, error) if error > 1e-5 else f'{error:.1e}'}"
