"""Measure the panel: `python -m benchmarks.applied` writes `applied.json` and `applied.md`.

Sonar and the German credit data are read from `$STEINAX_DATA`. Chains are kept in `$STEINAX_CACHE`, and rows
that are there and of the same source are not measured again.
"""

import argparse
from pathlib import Path

from .._command import cache_folder
from .._markdown import about, figure, known, origin, table, write
from .._pinned import ROOT, run
from ._measure import KINDS
from ._models import TARGETS

HEAD = """# Posteriors that people fit

What `steinax.estimate(names, sample)` gains on 4 x 250 draws by NumPyro's NUTS after 4 x 500 warm-up draws,
with the warm-up as training points (*trained*) and without (*alone*): mean squared error of plain averages
over that of estimates, geometric means over quantities.
"""
METHOD = """
*Means*, *sds* (by the mean square around a fixed centre), *predictions*, *contrasts* of two parameters and
*probabilities* that the first of each are above their means. The reference of a replicate is the average of
the trained estimates from all others. *Off plain* is the root mean square over quantities of the difference
between the average of all estimates and that of all draws, in standard errors of the latter: about 1 is
chance. *Calibration* is the root mean square of errors over standard errors. *CPU s* is that of an estimate
of all quantities, and of sampling 4 chains, as a quarter of 16 chains side by side.

"""


def page(rows: list[dict], told: dict) -> str:
    """All of `applied.md`."""
    lines = [
        [
            row["target"],
            str(row["dim"]),
            *(
                " / ".join(
                    figure(row[kind]["gain"][one]) for one in KINDS if one in row[kind]["gain"]
                )
                for kind in ("alone", "trained")
            ),
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
    return f"{HEAD}\n{table(columns, lines)}\n{METHOD}{origin(told)}\n"


def main() -> None:
    """Measure every target, each in a process of its own, and write all that is known."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.applied", description=__doc__)
    parser.add_argument("--replicates", type=int, default=20)
    parser.add_argument("--only", nargs="+", default=list(TARGETS), choices=TARGETS, metavar="NAME")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "benchmarks")
    parser.add_argument("--cache", type=Path, default=cache_folder("applied"))
    given = parser.parse_args()
    told = about("benchmarks.applied")
    rows = {row["target"]: row for row in known(given.out, "applied")}
    for name in given.only:
        row = rows.get(name)
        if row and (row["source"], row["replicates"]) == (told["source"], given.replicates):
            continue
        settings = {"name": name, "count": given.replicates, "cache": str(given.cache.resolve())}
        (row,) = run("applied", settings)
        rows[name] = row | {"source": told["source"]}
        print(name, row["alone"]["gain"], row["trained"]["gain"], flush=True)
        ordered = [rows[one] for one in TARGETS if one in rows]
        write(given.out, "applied", page(ordered, told), told, ordered)


if __name__ == "__main__":
    main()
