"""Coverage of the intervals of runs that stop by themselves, beside runs of a fixed number of draws."""

import numpy as np

from .._markdown import origin, share, table
from ._command import chosen, finish, parser, spread
from ._figures import BAND, mean_and_error
from ._runner import Arrays, collect
from ._stopping_replicate import CELLS, NEVER, TOLERANCES

ENOUGH = 0.95  # of the runs stop within their draws

HEAD = """\
# Stopping when it is precise enough

Coverage of 95% intervals at the stop of `steinax.until`, less that of runs of a fixed number of draws, in
points: {count} replicates of four chains for each target. A cell passes when it is at most 2 points either
way.

**{passed} of {cells} cells pass for the rule, and {first} of {cells} for a mutant that stops at the first
small error bar.** The mean over the cells is {rule_off} points for the rule, and {first_off} for the
mutant."""

METHOD = """\
- *Rule*: what `until` does, with looks as frequent as it permits, at every quarter more draws. *First*: stop
  at the first look at which all error bars are small enough, from 40 draws on, and report them as they are.
- *Fixed* is the coverage of intervals from a fixed number of draws, averaged over the numbers at which the
  rule stopped, over all replicates: what would be held without looking. For the mutant it is averaged over
  the numbers at which the mutant stopped.
- *Tolerance*: half the width of an interval in posterior standard deviations: the smallest of {tolerances}
  that 95% of the runs reach within their draws, 1,000, or 4,000 for the banana with AR(1) 0.9. *Looks*: at
  the median stop.
- AR(1) chains have known expectations. The others are models of posteriordb, sampled by NumPyro's NUTS. The
  integrands are their first four parameters, and the truth is the mean of the controlled estimates from all
  draws of all replicates."""

COLUMNS = (
    "target",
    "family",
    "tolerance",
    "draws",
    "looks",
    "replicates",
    "fixed",
    "rule less fixed",
)
COLUMNS += ("passes", "first less fixed", "passes")


def cell_figures(found: Arrays) -> dict:
    """Everything that the table says of a cell."""
    truth = found["truth"][0]
    truth = np.where(np.isnan(truth), found["value"][:, -1].mean(axis=0), truth)
    reached = (found["rule"] != NEVER).mean(axis=0) >= ENOUGH
    at = int(np.flatnonzero(reached)[-1]) if reached.any() else 0
    fixed = ((found["low"] <= truth) & (truth <= found["high"])).mean(axis=2)  # (replicate, look)
    row: dict = {"replicates": len(fixed), "tolerance": TOLERANCES[at]}
    for rule in ("rule", "first"):
        stop = found[rule][:, at]
        stopped = stop != NEVER
        shares = np.bincount(stop[stopped], minlength=fixed.shape[1]) / stopped.sum()
        if rule == "rule":
            low, high = (found[f"rule_{end}"][:, at] for end in ("low", "high"))
            held = ((low <= truth) & (truth <= high)).mean(axis=1)
        else:
            held = fixed[np.arange(len(fixed)), stop]
        off, error = mean_and_error((held - fixed @ shares)[stopped])
        median = int(np.median(stop[stopped]))
        row[rule] = {
            "stopped": float(stopped.mean()),
            "draws": int(found["draws"][0, median]),
            "looks": median + 1,
            "fixed": float((fixed @ shares).mean()),
            "coverage": float(held[stopped].mean()),
            "difference": off,
            "error": error,
            "passes": bool(abs(off) <= BAND),
        }
    return row


def cells_of(row: dict) -> list[str]:
    """A row of the table."""
    rule, first = row["rule"], row["first"]
    return [
        *row["cell"].split(" | "),
        f"{row['tolerance']:g}",
        f"{rule['draws']:,}",
        str(rule["looks"]),
        f"{row['replicates']:,}",
        share(rule["fixed"]),
        share(rule["difference"], rule["error"]),
        "yes" if rule["passes"] else "**no**",
        share(first["difference"], first["error"]),
        "yes" if first["passes"] else "**no**",
    ]


def _mean_difference(rows: list[dict], rule: str) -> float:
    return float(np.mean([row[rule]["difference"] for row in rows]))


def page(rows: list[dict], about: dict) -> str:
    """All of `stopping.md`."""
    head = HEAD.format(
        count=spread([row["replicates"] for row in rows]),
        passed=sum(row["rule"]["passes"] for row in rows),
        first=sum(row["first"]["passes"] for row in rows),
        **{f"{rule}_off": share(_mean_difference(rows, rule)) for rule in ("rule", "first")},
        cells=len(rows),
    )
    method = METHOD.format(tolerances=", ".join(f"{one:g}" for one in TOLERANCES))
    parts = [head, table(COLUMNS, [cells_of(row) for row in rows]), method, origin(about)]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Measure what is not kept yet, and write the table of what was asked for."""
    given = chosen(parser("stopping", __doc__, 500), CELLS)
    found = collect("stopping", given.wanted, given.replicates, given.cache, given.workers)
    rows = [{"cell": cell} | cell_figures(arrays) for cell, arrays in found.items()]
    finish("stopping", given.out, rows, page)


if __name__ == "__main__":
    main()
