import numpy as np

from ..estimation import Candidates, Estimate
from ._style import CONTROLLED, FAINT, FONT, INK, PLAIN, Axes, height_of, name_rows, one_axes

SHOWN = 25  # candidates at most: the best ones, those in use, and plain Monte Carlo
USED = 0.05  # the least weight that counts
LONGEST = 70  # characters of the name of a candidate
DOTS = 2000  # integrands whose dots are drawn


def plot_candidates(estimate: Estimate, *, most: int = SHOWN, ax: Axes | None = None) -> Axes:
    """What an automatic estimate tried, and how much of the variance each candidate left.

    A row is a candidate, the best on top. Each integrand that it was tried for has a dot: a dark one
    where the candidate is part of its control variate, a pale one where it is not. The bar is the
    geometric mean over these integrands, and the line at 1 is plain Monte Carlo. At the right is the
    mean weight.

    Args:
        estimate: made without a family.
        most: candidates to draw at most; plain Monte Carlo is always among them.
        ax: axes to draw on.

    >>> import numpy as np, steinax as sx, matplotlib.pyplot as plt
    >>> from steinax.plots import plot_candidates
    >>> x = np.random.default_rng(0).normal(size=(4, 60, 2))
    >>> ax = plot_candidates(sx.estimate("x", sx.Sample(x, -x)), most=3)
    >>> len(ax.get_yticklabels())
    3
    >>> plt.close()
    """
    tried = _tried(estimate)
    left = np.maximum(np.asarray(tried.left, float), np.finfo(float).tiny)
    mixture = np.asarray(tried.mixture, float)
    mean = tried.mean
    rows = _best(mean, mixture, most)
    ax = one_axes(ax, 9.0, height_of(len(rows)))
    size = name_rows(ax, [tried.names[i] for i in rows], longest=LONGEST)
    some = np.linspace(0, left.shape[1] - 1, min(left.shape[1], DOTS)).astype(int)
    _dots(ax, left[rows][:, some], mixture[rows][:, some] >= USED)
    y = np.arange(len(rows))
    ax.plot(
        mean[rows],
        y,
        "|",
        color=INK,
        markersize=13,
        markeredgewidth=2,
        label="their mean",
        zorder=4,
    )
    ax.axvline(1.0, color=PLAIN, linewidth=2.0, zorder=1, label="plain")
    ax.set_xscale("log")
    unseen = len(tried.names) - len(rows)
    more = f"; {unseen} more were tried" if unseen else ""
    ax.set_xlabel(f"held-out variance left, plain = 1{more}")
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
    """The rows that are drawn, the best first; plain Monte Carlo, row 0, is one of them."""
    weight = mixture.mean(axis=1)
    order = np.lexsort((mean, -weight))[: max(most - 1, 0)]
    return sorted({0, *order.tolist()}, key=lambda i: (mean[i], i))


def _dots(ax: Axes, left: np.ndarray, used: np.ndarray) -> None:
    """A dot for each candidate and integrand."""
    y = np.broadcast_to(np.arange(len(left))[:, None], left.shape)
    dots = {"linestyle": "none", "marker": "o", "rasterized": left.size > 5000}
    pale = {"color": FAINT, "markersize": 4, "alpha": 0.7, "markeredgewidth": 0}
    ax.plot(left[~used], y[~used], **dots, **pale, label="an integrand")
    dark = {"color": CONTROLLED, "markersize": 6, "alpha": 0.8, "markeredgewidth": 0}
    ax.plot(left[used], y[used], **dots, **dark, label="used for it", zorder=3)


def _weights(ax: Axes, percent: np.ndarray, size: float) -> None:
    style = {"fontsize": size, "ha": "right", "textcoords": "offset points"}
    ax.annotate("weight", (1, 1), (44, 4), xycoords="axes fraction", va="bottom", **style)
    for y, weight in enumerate(percent):
        text = f"{weight:.0f}%" if weight >= 0.5 else ("<1%" if weight > 1e-3 else "0")
        where = ax.get_yaxis_transform()
        ax.annotate(text, (1, y), (44, 0), xycoords=where, va="center", **style)
