"""The picture of the site's first page: `python -m benchmarks.posteriors.landing`.

The picture is of a posterior whose likelihood solves an ODE, lynx and hares by Lotka and Volterra, and of
its first 100 reference draws. Every parameter is drawn in its posterior standard deviations from the
reference, the plain average of all 10,000 draws. It takes half a minute.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import steinax as sx

from .._pictures import pyplot
from .._pinned import ROOT
from ._data import TOTAL, load

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POSTERIOR = "hudson_lynx_hare-lotka_volterra"
DRAWS = 100
LABELS = {
    "theta[1]": "hares' birth rate",
    "theta[2]": "hares eaten",
    "theta[3]": "lynxes' death rate",
    "theta[4]": "lynxes fed",
    "z_init[1]": "hares in 1900",
    "z_init[2]": "lynxes in 1900",
    "sigma[1]": "noise, hares",
    "sigma[2]": "noise, lynxes",
}
CAPTION = """\
The first {draws} draws of an ODE model of lynxes and hares, and the mean of each of its {count} parameters.
The bars of steinax are {least:.0f} to {most:.0f} times shorter than those of plain averages, and {held} of
{count} hold the reference. `python -m benchmarks.posteriors.landing` makes this picture.
"""
THEMES = {
    "light": {"ink": "#22272e", "faint": "#d0d5db", "plain": "#8b949e", "controlled": "#0b6fa4"},
    "dark": {"ink": "#ced6dd", "faint": "#48566b", "plain": "#8b949e", "controlled": "#4fc3f7"},
}


def intervals() -> tuple[list[str], np.ndarray, np.ndarray]:
    """Names, and plain and controlled intervals (parameter, end) about the reference."""
    posterior = load(POSTERIOR)
    names = posterior.names[: len(posterior.names) // 2]
    means = posterior.f[:, : len(names)]
    first = slice(DRAWS)
    sample = sx.Sample(posterior.u[first], posterior.score[first])
    found = sx.estimate(means[None, first], sample)
    centre, scale = means.mean(axis=0)[:, None], means.std(axis=0)[:, None]
    plain, controlled = found.plain_interval(0.95), found.interval(0.95)
    return [LABELS[name] for name in names], (plain - centre) / scale, (controlled - centre) / scale


def styled(theme: str) -> dict[str, object]:
    """The settings of matplotlib for a theme of the site."""
    keys = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
    return dict.fromkeys(keys, THEMES[theme]["ink"]) | {"svg.hashsalt": "steinax", "font.size": 12}


def draw(
    names: list[str], plain: np.ndarray, controlled: np.ndarray, path: Path, theme: str
) -> None:
    """One picture in the colours of one theme of the site."""
    plt = pyplot()
    colours = THEMES[theme]
    with plt.rc_context(styled(theme)):
        figure, ax = plt.subplots(figsize=(5.4, 4.6), layout="constrained")
        half = 1.96 / np.sqrt(TOTAL)
        label = f"reference, {TOTAL:,} draws"
        ax.axvspan(-half, half, color=colours["faint"], linewidth=0, zorder=0, label=label)
        _bars(ax, plain, -0.17, colours["plain"], f"plain average, {DRAWS} draws")
        _bars(ax, controlled, 0.17, colours["controlled"], f"steinax, the same {DRAWS} draws")
        _dress(ax, names)
        figure.legend(loc="outside upper left", ncols=1, frameon=False)
        figure.savefig(path, transparent=True, metadata={"Date": None})
        plt.close(figure)


def _bars(ax: "Axes", ends: np.ndarray, shift: float, colour: str, label: str) -> None:
    y, centre = np.arange(len(ends)) + shift, ends.mean(axis=1)
    half = np.ptp(ends, axis=1) / 2
    style = {"fmt": "o", "color": colour, "markersize": 5, "elinewidth": 3}
    ax.errorbar(centre, y, xerr=half, label=label, **style)


def _dress(ax: "Axes", names: list[str]) -> None:
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.set_xlabel("95% interval of the mean, in posterior sd")


def caption(plain: np.ndarray, controlled: np.ndarray) -> str:
    """What is to be seen in the picture, in figures."""
    shorter = np.ptp(plain, axis=1) / np.ptp(controlled, axis=1)
    held = int(np.sum((controlled[:, 0] < 0) & (controlled[:, 1] > 0)))
    return CAPTION.format(
        draws=DRAWS, count=len(plain), least=shorter.min(), most=shorter.max(), held=held
    )


def main() -> None:
    """Write the pictures of both themes and their caption."""
    docs = ROOT / "docs"
    found = intervals()
    (docs / "pictures" / "landing.md").write_text(caption(*found[1:]), encoding="utf-8")
    for theme in THEMES:
        draw(*found, docs / "pictures" / f"landing_{theme}.svg", theme)


if __name__ == "__main__":
    main()
