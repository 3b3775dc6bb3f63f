"""Two pictures: the gain and the calibration of every posterior."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ._losses import BAND
from ._peers import PEERS, SORTS
from ._rows import Row
from ._summary import MEASURED_AT, at

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHADES = ("#9ecae1", "#4292c6", "#08306b")  # few draws to many
TICKS = (0.25, 0.5, 0.8, 1, 1.25, 2, 4, 8, 16, 32)
ZVCV = {"marker": "D", "color": "none", "edgecolors": "#d95f02", "linewidths": 1.3, "s": 26}
PROTOTYPE = {"marker": "|", "color": "#555555", "linewidths": 1.6, "s": 60}


def draw(rows: Sequence[Row], folder: Path) -> None:
    """Write `posteriors_gain.png` and `posteriors_calibration.png`."""
    import matplotlib as mpl

    mpl.use("Agg")
    order = _order(rows)
    _gain(rows, order, folder / "posteriors_gain.png")
    _calibration(rows, order, folder / "posteriors_calibration.png")


def _order(rows: Sequence[Row]) -> list[str]:
    """Posteriors by the gain of their means at the most draws, the least first: at the bottom."""
    best = {row["posterior"]: row["gain"]["means"] for row in sorted(rows, key=lambda r: r["n"])}
    return sorted(best, key=lambda name: best[name])


def _gain(rows: Sequence[Row], order: list[str], path: Path) -> None:
    import matplotlib.pyplot as plt

    known = [
        name for name in order if any(row["posterior"] == name for row in at(rows, MEASURED_AT))
    ]
    figure, axes = plt.subplots(
        1, 2, figsize=(10, 1.6 + 0.27 * len(order)), sharey=True, layout="constrained"
    )
    for ax, sort in zip(axes, SORTS, strict=True):
        _dots(ax, rows, order, {id(row): row["gain"][sort] for row in rows})
        for label, peer, style in (
            ("ZVCV, best of three, 1,000 draws", "zvcv_best", ZVCV),
            ("prototype, 1,000 draws", "prototype", PROTOTYPE),
        ):
            x = [getattr(getattr(PEERS[name], peer), sort) for name in known]
            ax.scatter(x, [order.index(name) for name in known], label=label, zorder=4, **style)
        ax.axvline(1, color="black", linewidth=0.8)
        ax.set_xscale("log")
        ax.set_xlabel(f"gain over plain averages, {sort}")
    _finish(figure, axes[0], path)


def _calibration(rows: Sequence[Row], order: list[str], path: Path) -> None:
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(8, 1.6 + 0.27 * len(order)), layout="constrained")
    ax.axvspan(*BAND, color="#e5f5e0", zorder=0, label=f"{BAND[0]} to {BAND[1]}")
    ax.axvline(1, color="black", linewidth=0.8)
    _dots(ax, rows, order, {id(row): row["calibration"] for row in rows})
    x = [PEERS[name].prototype_calibration for name in order]
    label = "prototype, 1,000 draws"
    ax.scatter(x, range(len(order)), label=label, zorder=4, **PROTOTYPE)
    ax.set_xscale("log")
    low, high = ax.get_xlim()
    low, high = min(low, 0.45), max(high, 2.5)
    ticks = [tick for tick in TICKS if low <= tick <= high]
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.set_xticks([], minor=True)
    ax.set_xlim(low, high)
    ax.set_xlabel("calibration: r.m.s. of error / standard error")
    _finish(figure, ax, path)


def _dots(ax: "Axes", rows: Sequence[Row], order: list[str], x: dict[int, float]) -> None:
    """Our figures: a dot for every posterior and number of draws, darker for more draws."""
    sizes = sorted({row["n"] for row in rows})
    for n, shade in zip(sizes, SHADES[-len(sizes) :], strict=False):
        chosen = at(rows, n)
        y = [order.index(row["posterior"]) for row in chosen]
        label = f"steinax, {n:,} draws"
        ax.scatter([x[id(row)] for row in chosen], y, color=shade, s=34, label=label, zorder=3)
    ax.set_yticks(range(len(order)), order)
    ax.set_ylim(-0.7, len(order) - 0.3)
    ax.grid(axis="y", color="#dddddd", linewidth=0.7)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)


def _finish(figure, ax: "Axes", path: Path) -> None:
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False, fontsize=9)
    figure.savefig(path, dpi=150)
    figure.clear()
