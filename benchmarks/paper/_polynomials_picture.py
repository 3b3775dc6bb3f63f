"""The paper's picture of polynomial integrands: errors, or times, against epochs."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from .._pictures import pyplot
from ._experiment import Row
from ._polynomials_problem import Problem
from ._statistics import mae, seconds

FLOOR = 1e-16  # of errors, on a logarithmic axis
TICKS = (1, 2, 5, 10, 25)
BLUE, RED, GREEN, ORANGE, BLACK = "tab:blue", "tab:red", "tab:green", "tab:orange", "black"
SGD, OURS = "SGD: realizations and mean", "Point-SAGA (starts at a solution)"
LINES = {"exact solve": RED, "plain Monte Carlo": GREEN, "automatic": BLACK}


def picture(path: Path, panels: Sequence[Sequence[Problem | None]], times: bool) -> None:
    """A grid of panels, a row for each family, of errors or of times."""
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
        axes[i, there].set_ylabel("CPU seconds" if times else "absolute error")
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
    average: Callable[[Sequence[Row]], float] = seconds if times else lambda rows: mae(rows)[0]
    sgd, ours = problem.stochastic("SGD"), problem.stochastic("Point-SAGA")
    repetitions = sorted({row.repetition for rows in sgd.values() for row in rows})
    for repetition in repetitions:
        line = [
            (epochs, row.seconds if times else abs(row.error[0]))
            for epochs, rows in sgd.items()
            for row in rows
            if row.repetition == repetition
        ]
        x, y = np.array(line).T
        axis.plot(x, np.fmax(y, FLOOR), "--", color=BLUE, lw=0.5, alpha=0.6)
    for by_epochs, style, color, label in ((sgd, "o", BLUE, SGD), (ours, "D", ORANGE, OURS)):
        y = [max(average(rows), FLOOR) for rows in by_epochs.values()]
        axis.plot(list(by_epochs), y, style, color=color, ms=5, label=label)
    lines = (problem.exact, [] if times else problem.plain, problem.automatic)
    for (label, color), rows in zip(LINES.items(), lines, strict=True):
        if rows:
            style = "-." if label == "automatic" else "-"
            axis.axhline(max(average(rows), FLOOR), color=color, ls=style, lw=1.5, label=label)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlim(0.8, 32)
    axis.set_xticks(TICKS, [str(tick) for tick in TICKS])
    axis.minorticks_off()
    axis.set_xlabel("epochs")
    axis.set_title(f"{problem.family}, d = {problem.dim}, m = {problem.fitted}", fontsize=10)
    axis.grid(alpha=0.3)
