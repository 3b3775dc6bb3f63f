"""The pictures of the experiment on Gaussian processes."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .._pictures import pyplot
from ._experiment import Row
from ._gaussian_processes_problem import JITTER, covariance
from ._gaussian_processes_rows import (
    BEST,
    METHODS,
    VARIANCE,
    cost,
    dims,
    error,
    size,
    sizes,
    training,
)
from ._methods import AUTOMATIC, NETWORK, PLAIN

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {
    PLAIN: "black",
    "polynomial, exact": "tab:blue",
    "polynomial, SGD": "tab:cyan",
    "kernel, exact": "tab:red",
    "kernel, SGD": "tab:orange",
    "kernel, Point-SAGA": "tab:pink",
    NETWORK: "tab:purple",
    AUTOMATIC: "tab:green",
    BEST: "grey",
}
TIMED = ("polynomial, exact", "polynomial, SGD", "kernel, exact", "kernel, SGD")


def panels(rows: Sequence[Row], path: Path) -> None:
    """Errors and CPU times against m and d, as in the paper."""
    plt = pyplot()
    figure, axes = plt.subplots(1, 4, figsize=(11, 4.4))
    for method in METHODS:
        _errors(axes[0], rows, method, [(m, 1) for m in sizes(rows, method)], 0)
        _errors(axes[1], rows, method, [(size(rows), d) for d in dims(rows, method)], 1)
    for method in TIMED:
        style = {"color": COLOURS[method], "marker": "."}
        many, all_dims = sizes(rows, method), dims(rows, method)
        axes[2].plot(many, [cost(rows, method, m, 1) for m in many], **style)
        axes[3].plot(all_dims, [cost(rows, method, size(rows), d) for d in all_dims], **style)
    _axis(axes[0], "m (d = 1)", sizes(rows), "mean absolute error")
    _axis(axes[1], f"d (m = {size(rows)})", dims(rows), "mean absolute error")
    _axis(axes[2], "m (d = 1)", sizes(rows, TIMED[0]), "CPU seconds")
    _axis(axes[3], f"d (m = {size(rows)})", dims(rows), "CPU seconds")
    lines, names = axes[0].get_legend_handles_labels()
    figure.legend(lines, names, loc="lower center", ncol=4, fontsize=8, frameon=False)
    figure.tight_layout(rect=(0, 0.16, 1, 1))
    figure.savefig(path, dpi=150)
    plt.close(figure)


def realisations_and_training(rows: Sequence[Row], path: Path) -> None:
    """Three realisations, and errors after thirds of training, as in the supplement."""
    plt = pyplot()
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), width_ratios=(2, 3))
    x = np.linspace(-5, 5, 400)
    root = np.linalg.cholesky(covariance(x[:, None], x[:, None], 1.0) + 1e3 * JITTER * np.eye(400))
    left.plot(x, root @ np.random.default_rng(30).normal(size=(400, 3)))
    left.set(xlabel="x", ylabel="f(x)")
    for method in ("polynomial, SGD", "kernel, SGD"):
        parts, errors = zip(*training(rows, method), strict=True)
        right.plot(parts, errors, color=COLOURS[method], marker="o", label=method)
    for method in (PLAIN, "polynomial, exact", "kernel, exact"):
        level = error(rows, method, size(rows), 1)
        right.axhline(level, color=COLOURS[method], linestyle="--", label=method)
    right.set(xlabel="part of training", ylabel="mean absolute error", yscale="log")
    right.set_xticks([1 / 3, 2 / 3, 1], ["33%", "66%", "100%"])
    right.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=9, frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _errors(
    axes: "Axes", rows: Sequence[Row], method: str, places: Sequence[tuple[int, int]], which: int
) -> None:
    """A method's errors, and dotted those of the variance objective."""
    for more in ({}, {"objective": VARIANCE}):
        found = [(place[which], error(rows, method, *place, **more)) for place in places]
        found = [pair for pair in found if np.isfinite(pair[1])]
        if not found or (more and method == "kernel, exact"):
            continue
        name = f"{method}, variance objective" if more else method
        line = "dotted" if more else "dashed" if method == BEST else "solid"
        axes.plot(
            *zip(*found, strict=True), color=COLOURS[method], linestyle=line, marker=".", label=name
        )


def _axis(axes: "Axes", name: str, ticks: Sequence[int], what: str) -> None:
    from matplotlib.ticker import NullFormatter, ScalarFormatter

    axes.set(xscale="log", yscale="log", xlabel=name, ylabel=what)
    axes.set_xticks(ticks)
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.tick_params(which="both", labelsize=8)
