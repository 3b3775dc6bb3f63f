"""The paper's figure of the Lotka-Volterra parameters, tables of its figures, and the claims."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .._markdown import figure, table
from .._pictures import pyplot
from ._experiment import Report, Row
from ._lotka_volterra_claims import Errors, claims
from ._methods import AUTOMATIC, NETWORK, PLAIN
from ._statistics import mae, seconds, tuning, where

PARAMETERS = ("alpha", "beta", "gamma", "delta")
COLOURS = {
    PLAIN: "black",
    "polynomial": "tab:blue",
    "kernel": "tab:orange",
    "polynomial + kernel": "tab:green",
    "polynomial + two kernels": "tab:red",
    NETWORK: "tab:purple",
    AUTOMATIC: "tab:brown",
}
STYLES = {"exact": "--", "SGD": "-", "Point-SAGA": ":"}
SOLVED = {
    "polynomial": ("exact", "SGD"),
    "kernel": ("exact", "SGD"),
    "polynomial + kernel": ("exact", "SGD"),
    "polynomial + two kernels": ("exact", "SGD", "Point-SAGA"),
}
METHODS = (
    PLAIN,
    *(f"{family}, {solver}" for family, solvers in SOLVED.items() for solver in solvers),
    NETWORK,
    AUTOMATIC,
)


def report(rows: Sequence[Row], folder: Path) -> Report:
    """The page, its picture and the claims."""
    sizes = sorted({row.cell["n"] for row in rows})
    errors: Errors = {}
    for method in METHODS:
        for n in sizes:
            mine = where(rows, method=method, n=n)
            if mine:
                errors[method, n] = np.array([mae(mine, i)[0] for i in range(len(PARAMETERS))])
    times = {place: seconds(where(rows, method=place[0], n=place[1])) for place in errors}
    checks = where(rows, method=PLAIN)[0].extra
    _picture(errors, times, sizes, folder / "lotka_volterra_errors.png")
    repetitions = len(where(rows, method=PLAIN, n=sizes[0]))
    parts = [
        _introduction(checks, repetitions),
        "![mean absolute errors of the four posterior means, and CPU times, against the number of "
        "draws](lotka_volterra_errors.png)",
        "**Mean absolute error, over the posterior's standard deviation, averaged over the four "
        "parameters**",
        _errors_table(rows, errors, sizes, np.array(checks["spread"])),
        "**CPU seconds, to fit and to average; in brackets, to choose hyper-parameters, once for "
        "all repetitions**",
        _times_table(rows, times, sizes),
        "**Hyper-parameters chosen: damping, length-scale over the median heuristic's, strength**",
        _hyper_table(rows, sizes),
    ]
    return Report("\n\n".join(parts), tuple(claims(errors, times, checks)))


def _introduction(checks: dict, repetitions: int) -> str:
    stored = np.abs(checks["truth_stored"]).max()
    parts = [
        "Posterior means of the four parameters of the Lotka-Volterra equations, from 2400 noisy "
        "observations of both populations; data made anew to the description of Riabiz and others, "
        f"whose own noise is another. {repetitions} repetitions, each with n draws of a stretch of "
        "its own: every fourth of 8 Metropolis-adjusted Langevin chains of "
        f"{checks['length']:,} draws, by BlackJAX in the coordinates that the Laplace approximation "
        f"makes round (step size {checks['step']:.1f}, acceptance {checks['acceptance']:.2f}, "
        f"{checks['seconds']:.0f} CPU seconds). Half of the draws are fitted to, in 25 epochs of "
        "batches of 8 where the solver is stochastic.",
        "The equations are solved by diffrax. On 50 stored draws of another program the log density "
        f"differs by at most {checks['log_density_stored']:.0e} (up to a constant of "
        f"{checks['constant_stored']:.0e}) and the score by {checks['score_stored']:.0e}, of up to "
        f"{checks['score_size']:,.0f}; a solver of tolerance 1e-12 differs from ours by "
        f"{checks['log_density_tight']:.0e} and {checks['score_tight']:.0e}.",
        "The truth is a Gauss-Hermite rule in the same coordinates; with two nodes fewer in each "
        f"dimension it changes by {checks['quadrature']:.0e}. The plain average of 200,000 stored "
        f"draws is within {stored:.1f} standard errors of it, but these are up to "
        f"{max(checks['truth_stored_error']):.0e}: as a truth, which is what the paper takes the full "
        "output of a chain for, it could not tell the better methods apart. A control variate (a "
        "polynomial of degree 4) on 10,000 of the stored draws comes within "
        f"{np.abs(checks['truth_estimated']).max():.0e} of the quadrature, with standard errors of up "
        f"to {max(checks['truth_estimated_error']):.0e} and another solver of the equations.",
    ]
    return "\n\n".join(parts)


def _picture(
    errors: Errors, times: dict[tuple[str, int], float], sizes: list[int], path: Path
) -> None:
    plt = pyplot()
    drawing, axes = plt.subplots(1, 5, figsize=(11, 5.2), layout="constrained")
    for method in METHODS:
        family, _, solver = method.rpartition(", ")
        there = [n for n in sizes if (method, n) in errors]
        look = {"color": COLOURS[family or method], "linestyle": STYLES.get(solver, "-")}
        look |= {"marker": "o", "markersize": 3, "linewidth": 1.4}
        for i, axis in enumerate(axes[:4]):
            axis.plot(there, [errors[method, n][i] for n in there], **look, label=method)
        if method != PLAIN:
            axes[4].plot(there, [times[method, n] for n in there], **look)
    for axis, name in zip(axes, (*PARAMETERS, "CPU time"), strict=True):
        axis.set(title=name if name == "CPU time" else f"$\\{name}$", xlabel="n")
        axis.set(xscale="log", yscale="log", xticks=sizes, xticklabels=map(str, sizes))
        axis.minorticks_off()
        axis.tick_params(axis="x", labelrotation=60)
        axis.grid(alpha=0.3)
    low = min(one.min() for one in errors.values())
    high = max(one.max() for one in errors.values())
    for i, axis in enumerate(axes[:4]):
        axis.set_ylim(low / 2, high * 2)
        if i:
            axis.tick_params(axis="y", labelleft=False)
    axes[0].set_ylabel("mean absolute error")
    axes[4].set_ylabel("seconds")
    handles, labels = axes[0].get_legend_handles_labels()
    drawing.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    drawing.savefig(path, dpi=150)
    plt.close(drawing)


def _errors_table(rows: Sequence[Row], errors: Errors, sizes: list[int], spread: np.ndarray) -> str:
    body = []
    for method in METHODS:
        shown = [method]
        for n in sizes:
            mine = where(rows, method=method, n=n)
            if not mine:
                shown.append("")
                continue
            each = np.array([np.mean(np.abs(row.error) / spread) for row in mine])
            error = each.std(ddof=1) / len(each) ** 0.5 if len(each) > 1 else np.nan
            shown.append(f"{each.mean():.1e} ± {error:.0e}")
        body.append(shown)
    return table(("method", *(f"n = {n}" for n in sizes)), body)


def _times_table(rows: Sequence[Row], times: dict[tuple[str, int], float], sizes: list[int]) -> str:
    body = []
    for method in METHODS[1:]:
        shown = [method]
        for n in sizes:
            if (method, n) not in times:
                shown.append("")
                continue
            before = tuning(where(rows, method=method, n=n))
            said = f" ({figure(before)})" if before else ""
            shown.append(figure(times[method, n]) + said)
        body.append(shown)
    return table(("method", *(f"n = {n}" for n in sizes)), body)


def _hyper_table(rows: Sequence[Row], sizes: list[int]) -> str:
    body = []
    for family in SOLVED:
        shown = [family]
        for n in sizes:
            mine = where(rows, method=f"{family}, exact", n=n)
            hyper = mine[0].extra if mine else {}
            said = [f"{hyper[k]:g}" for k in ("damping", "length_scale", "strength") if k in hyper]
            shown.append(", ".join(said[2:] if family == "polynomial" else said))
        body.append(shown)
    return table(("family", *(f"n = {n}" for n in sizes)), body)
