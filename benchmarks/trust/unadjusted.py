"""How much of the bias of samplers without a Metropolis step control variates take away."""

import numpy as np

from .._markdown import origin, share, table
from ._command import chosen, finish, parser
from ._runner import collect
from ._unadjusted_replicate import CELLS

REMOVED = 0.9
METHODS = ("degree 2", "automatic")
HEAD = """\
# The bias of unadjusted samplers

The bias of $E[x^2]$, per cent of its true value (coordinates standardised, average over them), over
{count} replicates of 4 x 250 draws, every twentieth state of a chain. Degree 2 must remove at least 90%
of it, wherever there is a bias of 5% or more: **it does in {passed} of {all} such rows**."""

METHOD = """\
- ± is the standard error over the replicates; that of a share removed is of the ratio of biases.
- *Told*: the median standard error that the estimate reports. It knows nothing of a bias.
- Langevin and SGLD (minibatches of 10 of the 40 observations) move by $h\\,s(x) + \\sqrt{2h}\\,\\epsilon$;
  MCLMC is BlackJAX's. The scores given to `estimate` are exact ones, of all data, at the draws.
- The Gaussian is exact with degree 2, whatever the draws; the logistic posterior is nearly Gaussian; the
  skewed target is the logarithm of a gamma variable of shape 3, in two dimensions."""

COLUMNS = (
    "target",
    "sampler",
    "step",
    "plain",
    "degree 2",
    "removed",
    "passes",
    "automatic",
    "removed",
    "told (degree 2)",
    "told (automatic)",
)


def figures(found: dict[str, np.ndarray]) -> dict:
    """Biases, their errors, and the share of the plain one that is removed."""
    plain = found["plain"].mean(axis=1) - 1
    row = {"replicates": len(plain), "plain": _with_error(plain)}
    for method in METHODS:
        ours = found[method].mean(axis=1) - 1
        left = ours.mean() / plain.mean()
        error = _with_error(ours - left * plain)[1] / abs(plain.mean())
        row[method] = _with_error(ours)
        row[f"{method} removed"] = (1 - abs(left), error)
        row[f"{method} told"] = float(np.median(found[f"{method}_mcse"]))
    row["biased"] = row["plain"][0] - 2 * row["plain"][1] > 0 and row["plain"][0] >= 0.05
    row["passes"] = row["degree 2 removed"][0] >= REMOVED
    return row


def _with_error(values: np.ndarray) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def cells_of(row: dict) -> list[str]:
    """A row of the table."""
    verdict = ("yes" if row["passes"] else "**no**") if row["biased"] else "no bias to remove"
    return [
        *row["cell"].split(" | "),
        share(*row["plain"]),
        share(*row["degree 2"]),
        f"{share(*row['degree 2 removed'])}%",
        verdict,
        share(*row["automatic"]),
        f"{share(*row['automatic removed'])}%",
        *(share(row[f"{method} told"]) for method in METHODS),
    ]


def page(rows: list[dict], about: dict) -> str:
    """All of `unadjusted.md`."""
    biased = [row for row in rows if row["biased"]]
    head = HEAD.format(
        count=rows[0]["replicates"], passed=sum(row["passes"] for row in biased), all=len(biased)
    )
    parts = [head, table(COLUMNS, [cells_of(row) for row in rows]), METHOD, origin(about)]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Measure what is not kept yet, and write the table of what was asked for."""
    given = chosen(parser("unadjusted", __doc__, 40), CELLS)
    found = collect("unadjusted", given.wanted, given.replicates, given.cache, given.workers)
    rows = [{"cell": cell} | figures(arrays) for cell, arrays in found.items()]
    finish("unadjusted", given.out, rows, page)


if __name__ == "__main__":
    main()
