"""Measure the panel: `python -m benchmarks.applied` writes `applied.json`, `applied.md` and a picture.

With `--before` it measures the draws alone with an earlier source, on PYTHONPATH, for comparison.

Sonar and the German credit data are read from `$STEINAX_DATA`. Chains are kept in `$STEINAX_CACHE`, and rows
that are there and of the same source are not measured again.
"""

import argparse
from pathlib import Path

import numpy as np

from .._command import cache_folder
from .._markdown import about, figure, known, origin, table, write
from .._pictures import pyplot
from .._pinned import ROOT, run
from ..posteriors._score import geometric_mean
from ._measure import KINDS
from ._models import TARGETS

MANY = 50  # dimensions from which gains are compared with those before

HEAD = """# Posteriors that people fit

What `steinax.estimate(names, sample)` gains on 4 x 250 draws by NumPyro's NUTS after 4 x 500 warm-up draws,
with the warm-up as training points (*trained*) and without (*alone*): mean squared error of plain averages
over that of estimates, geometric means over quantities.
"""
PICTURE = """
```{image} applied.png
:alt: Gain on every target, for means, standard deviations and predictions
```
"""
METHOD = """
## How it is measured

*Means*, *sds* (by the mean square around a fixed centre), *predictions*, *contrasts* of two parameters and
*probabilities* that the first of each are above their means. The reference of a replicate is the average of
the trained estimates from all others. *Off plain* is the root mean square over quantities of the difference
between the average of all estimates and that of all draws, in standard errors of the latter: about 1 is
chance. *Calibration* is the root mean square of errors over standard errors. *CPU s* is that of an estimate
of all quantities, and of sampling 4 chains, as a quarter of 16 chains side by side.

"""


def compared(rows: list[dict], before: list[dict]) -> str:
    """How the gains in many dimensions compare with those of an earlier source."""
    earlier = {row["target"]: row for row in before}
    both = [row for row in rows if row["dim"] >= MANY and row["target"] in earlier]
    if not both:
        return ""
    lines = []
    for row in both:
        old = earlier[row["target"]]
        three = (old["alone"]["gain"], row["alone"]["gain"], row["trained"]["gain"])
        lines.append([row["target"], *(_joined(each) for each in three)])
    ratios = [
        {kind: geometric_mean(_ratios(both, earlier, by, kind)) for kind in KINDS}
        for by in ("alone", "trained")
    ]
    lines.append(["**times those before, geometric mean**", "", *map(_joined, ratios)])
    kinds, source = " / ".join(KINDS), before[0]["source"]
    columns = ("target", f"before, alone: {kinds}", "alone", "trained")
    return f"""
## Many dimensions, before and now

The same draws, with the source before tied features and directions (source {source}), and now:

{table(columns, lines)}
"""


def _ratios(rows: list[dict], earlier: dict[str, dict], by: str, kind: str) -> np.ndarray:
    """The gains of all targets over those before, which were of the draws alone."""
    old = [earlier[row["target"]]["alone"]["gain"][kind] for row in rows]
    return np.array([row[by]["gain"][kind] for row in rows]) / old


def _joined(gain: dict[str, float]) -> str:
    return " / ".join(figure(gain[kind]) if kind in gain else "-" for kind in KINDS)


def draw(rows: list[dict], path: Path) -> None:
    """Write the picture: the gains of every target, by kind."""
    plt = pyplot()
    kinds = KINDS[:3]
    drawing, axes = plt.subplots(
        1, len(kinds), figsize=(11, 1.4 + 0.34 * len(rows)), sharey=True, layout="constrained"
    )
    for ax, kind in zip(axes, kinds, strict=True):
        for by, marker in (("alone", "o"), ("trained", "D")):
            known_rows = [(i, row) for i, row in enumerate(rows) if kind in row[by]["gain"]]
            x, y = [row[by]["gain"][kind] for _, row in known_rows], [i for i, _ in known_rows]
            label = "draws alone" if by == "alone" else "with warm-up as training points"
            ax.scatter(x, y, marker=marker, s=34, alpha=0.85, label=label)
        ax.axvline(1, color="black", linewidth=0.8)
        ax.set_xscale("log")
        ax.set_xlabel(f"gain over plain averages, {kind}")
        ax.grid(axis="y", alpha=0.3)
    axes[0].set_yticks(range(len(rows)), [f"{row['target']} ({row['dim']})" for row in rows])
    axes[0].invert_yaxis()
    drawing.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    drawing.savefig(path, dpi=110)
    plt.close(drawing)


def page(rows: list[dict], before: list[dict], told: dict) -> str:
    """All of `applied.md`."""
    lines = [
        [
            row["target"],
            str(row["dim"]),
            *(_joined(row[kind]["gain"]) for kind in ("alone", "trained")),
            *(figure(row[kind]["worst_gain"]) for kind in ("alone", "trained")),
            " / ".join(f"{row[kind]['calibration']:.2f}" for kind in ("alone", "trained")),
            f"{row['off_plain']:.2f}",
            f"{row['rhat']:.2f}",
            f"{row['seconds']:.1f} / {row['sampling']:.0f}",
        ]
        for row in rows
    ]
    kinds = " / ".join(KINDS)
    columns = (
        *("target", "d", f"gain alone: {kinds}", "gain trained", "least alone", "least trained"),
        *("calibration alone / trained", "off plain", "largest R-hat", "CPU s, sampling"),
    )
    sources = sorted({row["source"] for row in rows})
    several = "" if len(sources) == 1 else f" Rows were measured with sources {', '.join(sources)}."
    tables = f"{table(columns, lines)}\n{PICTURE}{compared(rows, before)}"
    return f"{HEAD}\n{tables}{METHOD}{origin(told)}{several}\n"


def main() -> None:
    """Measure every target, each in a process of its own, and write all that is known."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.applied", description=__doc__)
    parser.add_argument("--replicates", type=int, default=20)
    parser.add_argument("--only", nargs="+", default=list(TARGETS), choices=TARGETS, metavar="NAME")
    parser.add_argument("--before", action="store_true")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "benchmarks")
    parser.add_argument("--cache", type=Path, default=cache_folder("applied"))
    given = parser.parse_args()
    told, name = about("benchmarks.applied"), "applied_before" if given.before else "applied"
    rows = {row["target"]: row for row in known(given.out, name)}
    for target in given.only:
        row = rows.get(target)
        if row and (row["source"], row["replicates"]) == (told["source"], given.replicates):
            continue
        settings = {"name": target, "count": given.replicates, "cache": str(given.cache.resolve())}
        (row,) = run("applied", settings | {"alone": given.before})
        rows[target] = row | {"source": told["source"]}
        print(target, row["alone"]["gain"], row["trained"]["gain"], flush=True)
        ordered = [rows[one] for one in TARGETS if one in rows]
        if given.before:
            write(given.out, name, f"{origin(told)}\n", told, ordered)
            continue
        write(
            given.out, name, page(ordered, known(given.out, "applied_before"), told), told, ordered
        )
        draw(ordered, given.out / "applied.png")


if __name__ == "__main__":
    main()
