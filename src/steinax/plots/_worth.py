from collections.abc import Sequence

import numpy as np

from ..estimation import Estimate
from ._style import (
    CONTROLLED,
    FONT,
    INK,
    PLAIN,
    ROWS,
    Axes,
    chosen_rows,
    height_of,
    name_rows,
    one_axes,
    times,
)


def plot_worth(
    estimate: Estimate,
    *,
    names: Sequence[str] | None = None,
    sort: bool = False,
    ax: Axes | None = None,
) -> Axes:
    r"""How many times as many plain draws would be as accurate, for each integrand.

    The worth is $(\text{plain\_mcse} / \text{mcse})^2$. The axis above says what that does to an
    interval: a worth of 100 makes it a tenth as wide. More than 60 integrands are drawn as one
    curve, from the most to the least.

    Args:
        estimate: of one or more integrands.
        names: of the integrands to draw; all by default.
        sort: whether the largest comes first.
        ax: axes to draw on.

    >>> import numpy as np, steinax as sx, matplotlib.pyplot as plt
    >>> from steinax.plots import plot_worth
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> plot_worth(sx.estimate("x", sx.Sample(x, -x), sx.Polynomial(1))).get_xscale()
    'log'
    >>> plt.close()
    """
    every = range(len(estimate)) if names is None else chosen_rows(estimate.names, names)
    worth = np.atleast_1d(estimate.worth).astype(float)[list(every)]
    labels = [estimate.names[i] for i in every]
    if sort or len(labels) > ROWS:
        order = np.argsort(np.nan_to_num(-worth, nan=np.inf), kind="stable")  # the unknown last
        worth, labels = worth[order], [labels[i] for i in order]
    ax = one_axes(ax, 7.0, height_of(len(labels)) if len(labels) <= ROWS else 4.5)
    low, high = _limits(worth)
    ax.set_xscale("log")
    ax.set_xlim(low, high)
    if len(labels) <= ROWS:
        _stems(ax, worth, labels, high)
    else:
        _curve(ax, worth, high)
    ax.axvline(1.0, color=PLAIN, linewidth=2.0, zorder=1)
    ax.set_xlabel("worth: times as many plain draws would be as accurate")
    _ticks(ax, low, high)
    return ax


def _limits(worth: np.ndarray) -> tuple[float, float]:
    known = worth[np.isfinite(worth) & (worth > 0)]
    low, high = (known.min(), known.max()) if len(known) else (1.0, 1.0)
    high = max(high, 10.0)
    return min(low, 1.0) / 1.6, high * max(high, 10.0) ** 0.18  # room for the number


def _stems(ax: Axes, worth: np.ndarray, labels: Sequence[str], high: float) -> None:
    size = name_rows(ax, labels)
    y = np.arange(len(worth))
    seen = np.where(np.isposinf(worth), high, worth)
    ax.hlines(y, 1.0, seen, color=CONTROLLED, linewidth=2.0)
    finite = np.isfinite(worth)
    ax.plot(worth[finite], y[finite], "o", color=CONTROLLED, markersize=6)
    endless = np.isposinf(worth)
    beyond = {"markersize": 8, "clip_on": False}
    ax.plot(seen[endless], y[endless], ">", color=CONTROLLED, **beyond)
    for row, (place, value) in enumerate(zip(seen, worth, strict=True)):
        text = "no standard error" if np.isnan(value) else times(value)
        start = 1.0 if np.isnan(value) else max(place, 1.0)
        away, align = (-9, "right") if np.isposinf(value) else (7, "left")
        box = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"}
        ax.annotate(
            text,
            (start, row),
            (away, 0),
            textcoords="offset points",
            va="center",
            ha=align,
            fontsize=size,
            color=INK,
            bbox=box if np.isposinf(value) else None,
        )


def _curve(ax: Axes, worth: np.ndarray, high: float) -> None:
    """Many integrands: how many of them are worth so much or more."""
    known = np.where(np.isposinf(worth), high, worth)[~np.isnan(worth)]
    ax.plot(known, np.arange(1, len(known) + 1), color=CONTROLLED, linewidth=2.5)
    ax.set_ylim(0, len(worth) * 1.02)
    ax.set_ylabel(f"of {len(worth):,} integrands, so many are worth it or more")
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="#eeeeee", linewidth=0.8)


def _ticks(ax: Axes, low: float, high: float) -> None:
    """Powers of ten, and what they make of an interval on an axis above."""
    powers = np.arange(np.ceil(np.log10(low)), np.floor(np.log10(high)) + 1)
    step = max(1, int(np.ceil(len(powers) / 7)))
    ticks = 10.0 ** powers[powers % step == 0]
    ax.set_xticks(ticks, [times(tick) for tick in ticks])
    above = ax.secondary_xaxis("top")
    above.set_xticks(ticks, [_part(10.0 ** (-0.5 * np.log10(tick))) for tick in ticks])
    above.set_xticks([], minor=True)
    above.tick_params(labelsize=FONT)
    above.set_xlabel("width of the interval, plain = 1", fontsize=FONT)
    above.spines["top"].set_visible(False)
    ax.grid(axis="x", color="#dddddd", linewidth=0.8)
    ax.set_axisbelow(True)


def _part(width: float) -> str:
    """A width in terms of the plain one: 1/32 rather than 0.0316."""
    return f"1/{times(float(f'{1 / width:.2g}'))[:-1]}" if width < 0.99 else f"{width:.2g}"
