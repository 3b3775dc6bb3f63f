"""Plots of the candidates of an automatic estimate, and of the gain in efficiency."""

from collections.abc import Sequence

import numpy as np

from .._require import usage
from .._show import PERFECT
from ..estimation import Candidates, Estimate
from ._style import (
    CONTROLLED,
    FAINT,
    FONT,
    GRID,
    PLAIN,
    ROWS,
    Axes,
    chosen_rows,
    factor_text,
    framed,
    height_of,
    ink,
    name_rows,
    one_axes,
    refuse_others,
    worth_label,
)

SHOWN = 25  # most candidates drawn: the best ones, those in use, and plain Monte Carlo
USED = 0.05  # the least weight of a candidate that counts as used
LONGEST = 70  # most characters of the name of a candidate
DOTS = 2000  # most integrands whose dots are drawn


def plot_candidates(estimate: Estimate, *, most: int = SHOWN, ax: Axes | None = None) -> Axes:
    """Plot the candidates of an automatic estimate by the variance that remains with each.

    A row is a candidate, the best on top. Each integrand it was tried on has a dot: a dark one where
    the candidate is part of its control variate, a pale one where it is not. The bar is the geometric
    mean over these integrands, and the line at 1 is plain Monte Carlo. At the right is the mean weight.

    Args:
        estimate: an estimate made without a family.
        most: the largest number of candidates to draw; plain Monte Carlo is always among them.
        ax: axes to draw on.

    >>> import numpy as np, steinax as sx, matplotlib.pyplot as plt
    >>> from steinax.plots import plot_candidates
    >>> x = np.random.default_rng(0).normal(size=(4, 60, 2))
    >>> ax = plot_candidates(sx.estimate({"f": np.sin(x)}, sx.Sample(x, -x)), most=3)
    >>> len(ax.get_yticklabels())
    3
    >>> plt.close()
    """
    candidates = _tried(estimate)
    remaining = np.maximum(np.asarray(candidates.left, float), np.finfo(float).tiny)
    mixture = np.asarray(candidates.mixture, float)
    mean = candidates.mean
    rows = _best(mean, mixture, most)
    ax = one_axes(ax, 9.0, height_of(len(rows)))
    size = name_rows(ax, [candidates.names[i] for i in rows], longest=LONGEST)
    columns = np.linspace(0, remaining.shape[1] - 1, min(remaining.shape[1], DOTS)).astype(int)
    _dots(ax, remaining[rows][:, columns], mixture[rows][:, columns] >= USED)
    y = np.arange(len(rows))
    ax.plot(
        mean[rows],
        y,
        "|",
        color=ink(),
        markersize=13,
        markeredgewidth=2,
        label="their mean",
        zorder=4,
    )
    ax.axvline(1.0, color=PLAIN, linewidth=2.0, zorder=1, label="plain")
    ax.set_xscale("log")
    hidden = len(candidates.names) - len(rows)
    more = f"; {hidden} more were tried" if hidden else ""
    ax.set_xlabel(f"held-out variance remaining, plain = 1{more}")
    _weights(ax, 100 * mixture[rows].mean(axis=1), size)
    ax.legend(
        loc="lower right",
        bbox_to_anchor=(1, 1),
        ncols=4,
        frameon=False,
        fontsize=FONT,
        borderaxespad=0.2,
    )
    return ax


def _tried(estimate: Estimate) -> Candidates:
    if estimate.candidates is None:
        raise ValueError(
            "this estimate was made with one family, so nothing else was tried: leave the family out, as "
            "in estimate(f, sample)."
        )
    return estimate.candidates


def _best(mean: np.ndarray, mixture: np.ndarray, most: int) -> list[int]:
    """Return the candidates to draw, the best first, including plain Monte Carlo (row 0)."""
    weight = mixture.mean(axis=1)
    order = np.lexsort((mean, -weight))[: max(most - 1, 0)]
    return sorted({0, *order.tolist()}, key=lambda i: (mean[i], i))


def _dots(ax: Axes, remaining: np.ndarray, used: np.ndarray) -> None:
    """Draw a dot for each candidate and integrand."""
    y = np.broadcast_to(np.arange(len(remaining))[:, None], remaining.shape)
    dots = {"linestyle": "none", "marker": "o", "rasterized": remaining.size > 5000}
    pale = {"color": FAINT, "markersize": 4, "alpha": 0.7, "markeredgewidth": 0}
    ax.plot(remaining[~used], y[~used], **dots, **pale, label="an integrand")
    dark = {"color": CONTROLLED, "markersize": 6, "alpha": 0.8, "markeredgewidth": 0}
    ax.plot(remaining[used], y[used], **dots, **dark, label="used for it", zorder=3)


def _weights(ax: Axes, percent: np.ndarray, size: float) -> None:
    style = {"fontsize": size, "ha": "right", "textcoords": "offset points"}
    ax.annotate("weight", (1, 1), (44, 4), xycoords="axes fraction", va="bottom", **style)
    for y, weight in enumerate(percent):
        text = f"{weight:.0f}%" if weight >= 0.5 else ("<1%" if weight > 1e-3 else "0")
        where = ax.get_yaxis_transform()
        ax.annotate(text, (1, y), (44, 0), xycoords=where, va="center", **style)


@usage("Give an estimate: plot_worth(sx.estimate('mu', sample)).")
def plot_worth(
    estimate: Estimate,
    *,
    names: Sequence[str] | None = None,
    sort: bool = False,
    ax: Axes | None = None,
) -> Axes:
    r"""Plot how many times as many plain draws would be as accurate, for each integrand.

    The worth is $(\text{plain\_mcse} / \text{mcse})^2$. The axis on top gives the width of an interval:
    a worth of 100 makes it a tenth as wide. An arrow stands for a worth above $10^9$. More than 60
    integrands are drawn as one curve, from the largest worth to the smallest.

    Args:
        estimate: of one or more integrands.
        names: of the integrands to draw; all by default.
        sort: whether the largest worth comes first.
        ax: axes to draw on.

    >>> import numpy as np, steinax as sx, matplotlib.pyplot as plt
    >>> from steinax.plots import plot_worth
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> plot_worth(sx.estimate("x", sx.Sample(x, -x), sx.Polynomial(1))).get_xscale()
    'log'
    >>> plt.close()
    """
    refuse_others(estimate)
    rows = range(len(estimate)) if names is None else chosen_rows(estimate.names, names)
    worth = np.atleast_1d(estimate.worth).astype(float)[list(rows)]
    labels = [estimate.names[i] for i in rows]
    if sort or len(labels) > ROWS:
        order = np.argsort(np.nan_to_num(-worth, nan=np.inf), kind="stable")  # NaN last
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
    ax.set_xlabel("worth: how many times as many plain draws it takes")
    _ticks(ax, low, high)
    return ax


def _limits(worth: np.ndarray) -> tuple[float, float]:
    known = worth[worth > 0]
    low, high = (known.min(), known.max()) if len(known) else (1.0, 1.0)
    high = min(max(high, 10.0), PERFECT)
    return min(low, 1.0) / 1.6, high * max(high, 10.0) ** 0.18  # with room for the number


def _stems(ax: Axes, worth: np.ndarray, labels: Sequence[str], high: float) -> None:
    size = name_rows(ax, labels)
    y = np.arange(len(worth))
    perfect = worth > PERFECT
    shown = np.where(perfect, high, worth)
    ax.hlines(y, 1.0, shown, color=CONTROLLED, linewidth=2.0)
    ax.plot(worth[~perfect], y[~perfect], "o", color=CONTROLLED, markersize=6)
    beyond = {"markersize": 8, "clip_on": False}
    ax.plot(shown[perfect], y[perfect], ">", color=CONTROLLED, **beyond)
    for row, (end, value) in enumerate(zip(shown, worth, strict=True)):
        text = "no standard error" if np.isnan(value) else worth_label(value)
        start = 1.0 if np.isnan(value) else max(end, 1.0)
        offset, align = (-9, "right") if value > PERFECT else (7, "left")
        box = {"boxstyle": "square,pad=0.1", "facecolor": ax.get_facecolor(), "edgecolor": "none"}
        ax.annotate(
            text,
            (start, row),
            (offset, 0),
            textcoords="offset points",
            va="center",
            ha=align,
            fontsize=size,
            color=ink(),
            bbox=box if value > PERFECT else None,
        )


def _curve(ax: Axes, worth: np.ndarray, high: float) -> None:
    """Draw how many integrands have at least a given worth, for many integrands."""
    known = np.minimum(worth, high)[~np.isnan(worth)]
    ax.plot(known, np.arange(1, len(known) + 1), color=CONTROLLED, linewidth=2.5)
    ax.set_ylim(0, len(worth) * 1.02)
    ax.set_ylabel(f"how many of {len(worth):,} integrands have this worth or more")
    framed(ax)


def _ticks(ax: Axes, low: float, high: float) -> None:
    """Set ticks at powers of ten, and the widths of intervals on a top axis."""
    powers = np.arange(np.ceil(np.log10(low)), np.floor(np.log10(high)) + 1)
    step = max(1, int(np.ceil(len(powers) / 7)))
    ticks = 10.0 ** powers[powers % step == 0]
    ax.set_xticks(ticks, [factor_text(tick) for tick in ticks])
    top = ax.secondary_xaxis("top")
    top.set_xticks(ticks, [_width_text(10.0 ** (-0.5 * np.log10(tick))) for tick in ticks])
    top.set_xticks([], minor=True)
    top.tick_params(labelsize=FONT)
    top.set_xlabel("width of the interval, plain = 1", fontsize=FONT)
    top.spines["top"].set_visible(False)
    ax.grid(axis="x", **GRID)
    ax.set_axisbelow(True)


def _width_text(width: float) -> str:
    """Format a width relative to the plain one as a fraction: 1/32 rather than 0.0316."""
    return f"1/{factor_text(float(f'{1 / width:.2g}'))[:-1]}" if width < 0.99 else f"{width:.2g}"
