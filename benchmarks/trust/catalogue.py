"""The error of the automatic estimate over that of plain averages, on targets chosen to do harm."""

import argparse
import os
from pathlib import Path

from .._markdown import origin, share, table
from ._catalogue_replicate import MUTANT, cells
from ._catalogued import CATALOGUE, COMPARTMENT, SCHOOLS
from ._command import finish, parser, spread
from ._ratios import LIMIT, integrand_rows, passes
from ._runner import collect

POSTERIORS = {"eight schools centred": SCHOOLS, "one-compartment": COMPARTMENT}
HEAD = """\
# Never worse than plain: the catalogue

The root mean squared error of `steinax.estimate(f, sample)`, with no options, over that of the plain
average of the same draws: {count} replicates of 100 or 1,000 independent draws, as 4 chains. A **ratio**
of at most 1.05, give or take two of its standard errors, passes.

**{passed} of {all} pass; {under} of them with a ratio below 1.05 as it stands.** The mutant, a gate on the
reported error alone, must fail: {mutant}."""

METHOD = """\
- ± is from 400 bootstrap samples of the replicates. Where fourth moments of f do not exist or are vast
  (t(2.5), t(3), the funnel's x1) neither figure is certain, whatever its ±.
- *Plain kept*: the share of replicates in which the choice was plain Monte Carlo.
- The truth is exact except for the two posteriors, where it is the mean of all reference draws outside the
  block, whose error is added to the intervals'. It pulls ratios a little towards 1. Of their
  {blocks} replicates only 10,000 / n share no draws.
- *Mutant*: degree 6 with all its columns, cross-fitted by chains, and plain Monte Carlo wherever the
  reported error of the former is not smaller."""

COLUMNS = (
    "target",
    "draws",
    "integrand",
    "ratio",
    "passes",
    "plain kept",
    "95% held",
    "plain 95% held",
    "z",
)


def arguments() -> argparse.Namespace:
    """What was asked for on the command line."""
    made = parser("catalogue", __doc__, 400)
    made.add_argument("--n", type=int, nargs="+", default=[100, 1000], help="draws")
    given = made.parse_args()
    if not cells(given.n, given.cells):
        made.error(f"no target holds {given.cells!r}: there are {', '.join(CATALOGUE)}.")
    return given


def available(wanted: list[str]) -> list[str]:
    """Without the posteriors, where there are no reference draws."""
    data = Path(os.environ.get("STEINAX_DATA", "/nowhere"), "posteriordb")
    missing = [name for name, folder in POSTERIORS.items() if not (data / folder).is_dir()]
    return [cell for cell in wanted if cell.split(" | ")[0] not in missing]


def cells_of(row: dict) -> list[str]:
    """A row of the table."""
    verdict = "yes" if row["ratio"] <= LIMIT else "within error" if row["passes"] else "**no**"
    return [
        row["target"],
        f"{row['n']:,}",
        row["integrand"].replace("|", "\\|"),
        f"{row['ratio']:.3f} ± {row['ratio_error']:.3f}",
        verdict,
        f"{100 * row['plain_chosen']:.0f}%",
        share(row["coverage"], row["coverage_error"]),
        share(row["plain_coverage"]),
        f"{row['z']:.2f}",
    ]


def page(rows: list[dict], about: dict) -> str:
    """All of `catalogue.md`: the worst first, then everything."""
    ours = [row for row in rows if row["target"] != MUTANT]
    mutants = [row for row in rows if row["target"] == MUTANT]
    failed = [row for row in mutants if not passes(row)]
    worst = max(failed, key=lambda row: row["ratio"], default=None)
    text = "not run"
    if mutants:
        text = f"it fails in {len(failed)} of {len(mutants)}"
        text += "" if worst is None else f", at worst with {worst['ratio']:.3g}"
    count = spread([row["replicates"] for row in rows])
    head = HEAD.format(
        count=count,
        passed=sum(map(passes, ours)),
        all=len(ours),
        under=sum(row["ratio"] <= LIMIT for row in ours),
        mutant=text,
    )
    highest = sorted(ours, key=lambda row: -row["ratio"])[:10]
    parts = [
        head,
        "## The ten highest",
        table(COLUMNS, [cells_of(row) for row in highest]),
        METHOD.format(blocks=count),
        "## All",
        table(COLUMNS, [cells_of(row) for row in rows]),
        origin(about),
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Measure what is not kept yet, and write the table of what was asked for."""
    given = arguments()
    wanted = available(cells(given.n, given.cells))
    found = collect("catalogue", wanted, given.replicates, given.cache, given.workers)
    rows = [row for cell, arrays in found.items() for row in integrand_rows(cell, arrays)]
    finish("catalogue", given.out, rows, page)


if __name__ == "__main__":
    main()
