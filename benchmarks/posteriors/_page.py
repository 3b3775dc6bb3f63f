"""The page of results, in Markdown for MyST."""

from collections.abc import Sequence

from ._losses import lost
from ._peers import PEERS, SORTS
from ._rows import Row
from ._summary import MEASURED_AT, Line, at, ours, theirs
from ._text import HEAD, METHOD, WITHOUT, both, listed, shown, table

__all__ = ["both", "listed", "page", "shown", "table"]  # `chains` writes its page with them too

SUMMARY = (
    "method",
    "draws",
    "median gain",
    "lowest quartile",
    "worst integrand",
    "ZVCV gains more in",
    "calibration",
    "its range",
    "95% intervals that hold",
    "CPU s",
)


def page(rows: Sequence[Row], about: dict) -> str:
    """All of `posteriors.md`."""
    sizes = sorted({row["n"] for row in rows}, reverse=True)
    lines = [line for n in sizes for line in (ours(at(rows, n)), *theirs(at(rows, n)))]
    count = len({row["posterior"] for row in rows})
    parts = [
        HEAD.format(count=count, all=len(PEERS)),
        table(SUMMARY, [summary_cells(line) for line in lines]),
        METHOD,
        lost(rows),
    ]
    for n in sizes:
        head, cells = size_table(at(rows, n))
        parts += [f"## {n:,} draws", table(head, cells)]
    return "\n\n".join([*parts, origin(rows, about)]) + "\n"


def summary_cells(line: Line) -> list[str]:
    """A row of the first table."""
    better, spread = line.zvcv_better, line.calibration_range
    return [
        line.method,
        f"{line.n:,}",
        both(line.median),
        both(line.quartile),
        line.worst,
        "" if better is None else f"{better[0]} / {better[1]}",
        "" if line.calibration is None else f"{line.calibration:.2f}",
        "" if spread is None else f"{spread[0]:.2f} to {spread[1]:.2f}",
        "" if line.coverage is None else f"{line.coverage:.1%}",
        line.seconds,
    ]


def size_table(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """The head and the rows of the table of one number of draws, with peers where they are known."""
    head = ["posterior", "d", "gain", "worst integrand", "calibration", "95% held", "CPU s"]
    cells = [
        [
            row["posterior"],
            str(row["dim"]),
            both([row["gain"][sort] for sort in SORTS]),
            f"{shown(row['worst_gain'])} ({row['worst']})",
            f"{row['calibration']:.2f}",
            f"{row['coverage']:.1%}",
            f"{row['seconds']:.2g}",
        ]
        for row in rows
    ]
    if rows[0]["n"] == MEASURED_AT:
        head = [*head[:3], "ZVCV's best", "prototype", *head[3:], "reference off plain"]
        for line, row in zip(cells, rows, strict=True):
            peers = PEERS[row["posterior"]]
            line[3:3] = [both(peers.zvcv_best), both(peers.prototype)]
            line.append(f"{row['reference_shift']:.2f}")
    return head, cells


def origin(rows: Sequence[Row], about: dict) -> str:
    """The command, the machine and the date, and what a reader must know before comparing rows."""
    kinds = {
        key: sorted({str(row["provenance"][key]) for row in rows}) for key in ("source", "cpu")
    }
    notes = [
        f"`{about['command']}`, on {about['date']}, one core of {about['cores']} ({about['cpu']}), Python "
        f"{about['python']}, steinax {about['steinax']} (source {about['source']}), jax {about['jax']}, "
        f"NumPy {about['numpy']}."
    ]
    for key, found in kinds.items():
        if len(found) > 1 or found[0] != str(about[key]):
            notes.append(
                f"**Rows are from earlier runs too, with another {key}: {', '.join(found)}.**"
            )
    missing = sorted(set(PEERS) - {row["posterior"] for row in rows})
    if missing:
        notes.append(f"**Not run: {', '.join(missing)}.**")
    if about.get("failed"):
        notes.append(f"**Failed in this run: {', '.join(about['failed'])}.**")
    bare = sum(row["no_error"] for row in rows)
    if bare:
        notes.append(WITHOUT.format(count=bare))
    return "\n\n".join(["## Command, machine and date", *notes])
