"""The paper's picture of polynomial integrands: errors against epochs, or against CPU seconds."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .._pictures import pyplot
from ._experiment import Row
from ._polynomials_problem import SHOWN, Problem
from ._statistics import mae, seconds

FLOOR = 1e-16  # of errors, on a logarithmic axis
BLUE, RED, GREEN, ORANGE, BLACK = "tab:blue", "tab:red", "tab:green", "tab:orange", "black"
SGD, OURS = "SGD: realizations and mean", "Point-SAGA (starts at a solution)"
LINES = {"exact solve": RED, "plain Monte Carlo": GREEN, "automatic": BLACK}


def picture(path: Path, panels: Sequence[Sequence[Problem | None]], times: bool) -> None:
    """A grid of panels, a row for each family, of errors against epochs or against times."""
    plt = pyplot()
    height = 0.9 + 2.3 * len(panels)
    figure, axes = plt.subplots(
        len(panels), len(panels[0]), figsize=(11, height), squeeze=False, sharey=True
    )
    for i, line in enumerate(panels):
        for axis, problem in zip(axes[i], line, strict=True):
            if problem is None:
                axis.axis("off")
            else:
                _panel(axis, problem, times)
        there = next(j for j, problem in enumerate(line) if problem is not None)
        axes[i, there].set_ylabel("absolute error")
        axes[i, there].tick_params(labelleft=True)
    handles = {
        label: handle
        for axis in axes.flat
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    figure.tight_layout(rect=(0, 0.45 / height, 1, 1))
    figure.legend(handles.values(), handles.keys(), loc="lower center", ncols=5, frameon=False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _panel(axis, problem: Problem, times: bool) -> None:
    sgd, ours = problem.stochastic("SGD"), problem.stochastic("Point-SAGA")
    for repetition in sorted({row.repetition for rows in sgd.values() for row in rows}):
        line = [
            (row.seconds if times else epochs, abs(row.error[0]))
            for epochs, rows in sgd.items()
            for row in rows
            if row.repetition == repetition
        ]
        x, y = np.array(line).T
        axis.plot(x, np.fmax(y, FLOOR), "--", color=BLUE, lw=0.5, alpha=0.6)
    for by_epochs, style, color, label in ((sgd, "o", BLUE, SGD), (ours, "D", ORANGE, OURS)):
        x = [seconds(rows) if times else epochs for epochs, rows in by_epochs.items()]
        axis.plot(
            x, [_mean(rows) for rows in by_epochs.values()], style, color=color, ms=5, label=label
        )
    lines = (problem.exact, problem.plain, problem.automatic)
    for (label, color), rows in zip(LINES.items(), lines, strict=True):
        if not rows:
            continue
        if times and label != "plain Monte Carlo":  # which takes no time to speak of
            axis.plot(seconds(rows), _mean(rows), "s", color=color, ms=6, label=label)
        else:
            style = "-." if label == "automatic" else "-"
            axis.axhline(_mean(rows), color=color, ls=style, lw=1.5, label=label)
    axis.set_xscale("log")
    axis.set_yscale("log")
    if not times:
        axis.set_xlim(0.8, 32)
        axis.set_xticks(SHOWN, [str(epochs) for epochs in SHOWN])
    axis.minorticks_off()
    axis.set_xlabel("CPU seconds" if times else "epochs")
    axis.set_title(f"{problem.family}, d = {problem.dim}, m = {problem.fitted}", fontsize=10)
    axis.grid(alpha=0.3)


def _mean(rows: Sequence[Row]) -> float:
    return max(mae(rows)[0], FLOOR)
