"""How often 95% intervals hold the truth, beside plain Monte Carlo's, in 45 cells."""

from .._markdown import figure, origin, share, table
from ._command import chosen, finish, parser, spread
from ._coverage_replicate import CELLS
from ._figures import cell_figures
from ._runner import collect

HEAD = """\
# Coverage of 95% intervals

Every row is {count} replicates of four integrands that no family fits exactly. **Difference**: coverage of
the controlled intervals less that of the plain ones, from the same draws, in points. A cell
passes when it is at most 2 points either way, give or take two standard errors of the difference
itself (a cell whose true difference is just 2 points fails once in 44).

**{passed} of {cells} cells pass; {within} of them are within 2 points as they stand.**"""

METHOD = """\
- *Worst*: the integrand with the largest difference. *Worth*: the median of what the estimate says it is
  worth in plain draws; *gain*: what it was, the ratio of mean squared errors (geometric mean over the
  integrands). *z*: the root mean square of errors over their standard errors. *CPU s*: one
  estimate of four integrands, once compiled, median.
- *In-sample* and *independent* are wrong on purpose: coverage with the error of a series the control
  variate was fitted to (the first 400 replicates), and with $\\sqrt{n}$ for $\\sqrt{\\text{ess}}$.
  **Bold**: it fails the band.
- AR(1) is on a correlated Gaussian in 3 dimensions, of known expectations; HMC and MALA are BlackJAX's, on
  a logistic regression with 3 coefficients and 40 observations, integrated by a grid to 1e-13. All
  chains start in their stationary law; the lag-1 autocorrelation of the integrands is 0.02 to 0.16 with
  HMC and about 0.75 with MALA."""

COLUMNS = (
    "chain",
    "family",
    "draws",
    "replicates",
    "plain",
    "controlled",
    "difference",
    "worst",
    "passes",
    "worth",
    "gain",
    "z",
    "CPU s",
    "in-sample",
    "independent",
)


def cells_of(row: dict) -> list[str]:
    """A row of the table."""
    return [
        *row["cell"].split(" | "),
        f"{row['replicates']:,}",
        share(row["plain"], row["plain_error"]),
        share(row["coverage"], row["coverage_error"]),
        share(row["difference"], row["difference_error"]),
        share(row["worst_difference"]),
        "yes" if row["passes"] else "**no**",
        figure(row["worth"]),
        figure(row["gain"]),
        f"{row['z']:.2f}",
        f"{row['seconds']:.2g}",
        *(_mutant(row.get(kind)) for kind in ("insample", "independent")),
    ]


def _mutant(found: dict | None) -> str:
    if found is None:
        return ""
    text = share(found["coverage"])
    return text if found["passes"] else f"**{text}**"


def page(rows: list[dict], about: dict) -> str:
    """All of `coverage.md`."""
    count = spread([row["replicates"] for row in rows])
    passed = sum(row["passes"] for row in rows)
    within = sum(abs(row["difference"]) <= 0.02 for row in rows)
    head = HEAD.format(count=count, passed=passed, cells=len(rows), within=within)
    parts = [head, table(COLUMNS, [cells_of(row) for row in rows]), METHOD, origin(about)]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Measure what is not kept yet, and write the table of what was asked for."""
    given = chosen(parser("coverage", __doc__, 2000), CELLS)
    found = collect("coverage", given.wanted, given.replicates, given.cache, given.workers)
    rows = [{"cell": cell} | cell_figures(arrays) for cell, arrays in found.items()]
    finish("coverage", given.out, rows, page)


if __name__ == "__main__":
    main()
