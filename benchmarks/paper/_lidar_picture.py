"""The errors of every method against the number of draws, a panel for each integrand."""

from collections.abc import Sequence
from pathlib import Path

from .._pictures import pyplot
from ._experiment import Row
from ._methods import AUTOMATIC, NETWORK, PLAIN
from ._statistics import mae, where

STYLES = {  # colour by family, line by solver
    PLAIN: ("black", "-", "o"),
    "polynomial, exact": ("tab:orange", "-", "s"),
    "polynomial, SGD": ("tab:orange", "--", "s"),
    "kernel, exact": ("tab:blue", "-", "^"),
    "kernel, SGD": ("tab:blue", "--", "^"),
    "kernel, Point-SAGA": ("tab:cyan", ":", "v"),
    "polynomial + kernel, exact": ("tab:purple", "-", "D"),
    NETWORK: ("tab:green", "-.", "P"),
    AUTOMATIC: ("tab:red", "-", "*"),
}
TITLES = (
    r"$\phi_1$",
    r"$\phi_2$",
    r"$\phi_1^2$",
    r"$\phi_2^2$",
    r"$\log p(r \mid l, \phi)$",
    r"$p(r \mid l, \phi)\,/\,\max p$",
)


def draw(rows: Sequence[Row], methods: Sequence[str], path: Path) -> None:
    """Write the picture."""
    plt = pyplot()
    sizes = sorted({row.cell["m"] for row in rows})
    figure, axes = plt.subplots(2, 3, figsize=(11, 6), sharex=True, layout="constrained")
    for i, (axis, title) in enumerate(zip(axes.flat, TITLES, strict=True)):
        for method in methods:
            mine = where(rows, method=method)
            there = [m for m in sizes if where(mine, m=m)]
            errors = [mae(where(mine, m=m), i)[0] for m in there]
            colour, line, marker = STYLES[method]
            label = method if i == 0 else None
            axis.loglog(there, errors, line, color=colour, marker=marker, ms=5, label=label)
        axis.set_title(title, fontsize=12)
        axis.set_xticks(sizes, [str(m) for m in sizes])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    for axis in axes[-1]:
        axis.set_xlabel("draws m", fontsize=11)
    for axis in axes[:, 0]:
        axis.set_ylabel("mean absolute error", fontsize=11)
    figure.legend(loc="outside lower center", ncols=5, fontsize=10, frameon=False)
    figure.savefig(path, dpi=150)
    plt.close(figure)
