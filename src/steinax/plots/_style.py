"""Colours, axes and labels shared by all plots."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._require import require
from .._show import shortened as cut, some_of, worth_text
from ..data import places
from ..estimation import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    AxesPair = Sequence[Axes] | np.ndarray
else:  # matplotlib is imported when a plot is drawn
    Axes = AxesPair = Any

# Colours of Okabe and Ito, safe for colour blindness, and in grey, where the second is much darker.
PLAIN = "#E69F00"
CONTROLLED = "#0072B2"
COLOURS = (CONTROLLED, "#D55E00", "#009E73", "#CC79A7", "#56B4E9", PLAIN)  # for several estimates
INK = "#222222"  # on cells of a light colour; elsewhere see `ink`
FAINT = "#bbbbbb"

GRID = {"color": "#888888", "alpha": 0.15, "linewidth": 0.8}  # visible on white and on black

ROWS = 60  # most rows that are labelled
FONT = 9.0  # largest font size of labels, in points
LONGEST = 36  # most characters of a name


def ink() -> str:
    """Return the colour of text and lines, which depends on the style: white on a dark background."""
    return str(require("matplotlib", extra="plots").rcParams["text.color"])


def one_axes(ax: Axes | None, width: float, height: float) -> Axes:
    """Return the given axes, or those of a new figure with its size in inches."""
    if ax is None:
        plt = require("matplotlib.pyplot", extra="plots")
        return plt.subplots(figsize=(width, height), layout="constrained")[1]
    if not hasattr(ax, "transAxes"):
        raise TypeError(
            f"ax is a {type(ax).__name__}: give one Axes, such as the second of plt.subplots()."
        )
    return ax


def two_axes(ax: AxesPair | None, width: float, height: float, **shape: Any) -> np.ndarray:
    """Return the two given axes, or those of a new figure, side by side or arranged by `shape`."""
    if ax is None:
        plt = require("matplotlib.pyplot", extra="plots")
        shape = shape or {"nrows": 1, "ncols": 2}
        return plt.subplots(figsize=(width, height), layout="constrained", **shape)[1]
    pair = np.ravel(np.asarray(ax, dtype=object))
    if len(pair) != 2 or not all(hasattr(axes, "transAxes") for axes in pair):
        raise TypeError(
            f"ax holds {len(pair)}: this plot has two panels. Give two Axes, such as the second of "
            "plt.subplots(1, 2)."
        )
    return pair


def height_of(rows: int) -> float:
    """Return the height in inches of a figure with so many labelled rows."""
    return 1.4 + max(rows, 3) * (0.3 if rows <= 20 else 0.22)


def name_rows(ax: Axes, names: Sequence[str], longest: int = LONGEST) -> float:
    """Label a row for each name, the first on top, and return the font size that fits, in points."""
    count = len(names)
    inches = ax.get_window_extent().height / ax.figure.get_dpi()
    size = float(np.clip(0.62 * 72 * inches / count, 4.0, FONT))
    ax.set_yticks(range(count), [short_name(name, longest) for name in names], fontsize=size)
    ax.set_ylim(count - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.grid(axis="y", **GRID)
    ax.set_axisbelow(True)
    return size


def short_name(name: str, longest: int = LONGEST) -> str:
    """Shorten a name in the middle, since indices are at the end, and escape it for matplotlib.

    >>> short_name("log_likelihood/y[a school of a very long name]", 24)
    'log_likeliho… long name]'
    """
    return literal(cut(name, longest))


def literal(text: str) -> str:
    r"""Escape dollar signs, so that matplotlib does not read a text as mathematics."""
    return text.replace("$", r"\$")


def worth_label(worth: float) -> str:
    """Format the worth of an estimate: the digits that tables have, with commas between thousands.

    >>> worth_label(28.61), worth_label(965439.7), worth_label(3.2e24), worth_label(np.inf)
    ('28.6x', '965,439x', '>1e9x', '∞')
    """
    if not np.isfinite(worth):
        return factor_text(worth)
    text = worth_text(worth)
    return f"{int(text):,}x" if text.isdigit() else f"{text}x"


def factor_text(factor: float) -> str:
    """Format a factor with three digits.

    >>> [factor_text(factor) for factor in (2.283, 28.6, 2093.0, 1e5, 1e6, np.inf)]
    ['2.28x', '28.6x', '2,090x', '100,000x', '1e6x', '∞']
    """
    if not np.isfinite(factor):
        return "∞" if factor > 0 else "?"
    if factor >= 999_500:
        return f"{factor:.1e}x".replace("e+0", "e").replace("e+", "e").replace(".0e", "e")
    return f"{float(f'{factor:.3g}'):,.0f}x" if factor >= 999.5 else f"{factor:.3g}x"


def chosen_rows(names: Sequence[str], wanted: Sequence[str] | None) -> list[int]:
    """Return the indices of the wanted integrands, in that order, or by default of the first ones.

    The name of a vector selects all its elements.
    """
    if wanted is None:
        return list(range(min(len(names), ROWS)))
    wanted = [wanted] if isinstance(wanted, str) else list(wanted)
    indices = [places(name, names) for name in wanted]
    if not all(indices):
        unknown = wanted[indices.index([])]
        raise ValueError(f"no integrand is called {unknown!r}: choose among {some_of(names)}.")
    return [i for group in indices for i in group]


def framed(ax: Axes) -> None:
    """Draw a faint grid, and remove the frame at the top and right."""
    ax.grid(**GRID)
    ax.spines[["top", "right"]].set_visible(False)


def plain_log(ax: Axes) -> None:
    """Make the y axis logarithmic, with ticks at 1, 2 and 5 times powers of ten, as numbers."""
    ticker = require("matplotlib.ticker", extra="plots")
    ax.set_yscale("log")
    low, high = ax.get_ylim()
    multiples = (1.0, 2.0, 5.0) if high < 300 * low else (1.0,)
    ax.yaxis.set_major_locator(ticker.LogLocator(subs=multiples))
    ax.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    ax.yaxis.set_minor_formatter(ticker.NullFormatter())


def legend_above(ax: Axes, columns: int, raised: float = 0.0) -> None:
    """Put a legend above the axes, where it hides nothing, and so many points higher."""
    transforms = require("matplotlib.transforms", extra="plots")
    up = transforms.ScaledTranslation(0.0, raised / 72, ax.figure.dpi_scale_trans)
    ax.legend(
        bbox_transform=ax.transAxes + up,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=columns,
        frameon=False,
        fontsize=FONT,
        borderaxespad=0.2,
    )


__all__ = [
    "COLOURS",
    "CONTROLLED",
    "FAINT",
    "FONT",
    "GRID",
    "INK",
    "LONGEST",
    "PLAIN",
    "ROWS",
    "Axes",
    "AxesPair",
    "chosen_rows",
    "factor_text",
    "height_of",
    "ink",
    "legend_above",
    "literal",
    "name_rows",
    "one_axes",
    "plain_log",
    "short_name",
    "two_axes",
    "worth_label",
]


def refuse_others(estimate: object) -> None:
    """Refuse what is not an estimate, such as a sample or the table of a summary."""
    if not isinstance(estimate, Estimate):
        raise TypeError(
            f"this plots an estimate, and was given a {type(estimate).__name__}: give the result of "
            "steinax.estimate."
        )
