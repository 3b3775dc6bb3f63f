"""The table of the site's first page: every posterior at the fewest draws that were measured."""

from collections.abc import Sequence

from ._rows import Row
from ._summary import at, ours
from ._text import shown, table

SENTENCE = """\
From {n:,} draws each, over {count} posteriors: **the median gain is {means} for means and {squares} for
squares**. The worst single integrand gained {worst}. The 95% intervals held the reference in {coverage}.
[How it is measured](benchmarks/posteriors.md)."""

HEAD = ("posterior", "d", "gain, means", "gain, squares", "95% held")


def landing(rows: Sequence[Row]) -> str:
    """All of `landing.md`, which the first page includes."""
    sizes = sorted({row["n"] for row in rows})
    chosen = sorted(at(rows, sizes[0]), key=lambda row: -row["gain"]["means"])
    line = ours(chosen)
    held = [f"{ours(at(rows, n)).coverage:.1%} at {n:,} draws" for n in sizes]
    sentence = SENTENCE.format(
        n=line.n,
        count=len(chosen),
        means=shown(line.median.means),
        squares=shown(line.median.squares),
        worst=line.worst,
        coverage=", ".join(held),
    )
    return f"{sentence}\n\n{table(HEAD, [_cells(row) for row in chosen])}\n"


def _cells(row: Row) -> list[str]:
    gain = row["gain"]
    return [
        row["posterior"],
        str(row["dim"]),
        shown(gain["means"]),
        shown(gain["squares"]),
        f"{row['coverage']:.1%}",
    ]
