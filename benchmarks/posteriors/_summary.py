"""One line for a method at one number of draws, over all posteriors that were run."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ._peers import PEERS, PROTOTYPE, SECONDS, SORTS, ZVCV_WORST, Gain
from ._rows import Row
from ._score import average, pooled
from ._text import shown

MEASURED_AT = 1000  # draws, at which the peers' figures of each posterior are known


class Line(NamedTuple):
    """What the first table of the page says of a method; texts where a peer has no one number."""

    method: str
    n: int
    median: Gain
    quartile: Gain
    worst: str
    zvcv_better: tuple[int, int] | None = None  # posteriors: by their means, by their squares
    calibration: float | None = None
    calibration_range: tuple[float, float] | None = None
    coverage: float | None = None
    seconds: str = ""


def at(rows: Sequence[Row], n: int) -> list[Row]:
    """The rows at one number of draws."""
    return [row for row in rows if row["n"] == n]


def losses(rows: Sequence[Row], peer: str) -> dict[str, list[Row]]:
    """The rows in which a peer, a field of `Peers`, gains more: by means, and by squares."""

    def more(row: Row, sort: str) -> bool:
        return getattr(getattr(PEERS[row["posterior"]], peer), sort) > row["gain"][sort]

    return {sort: [row for row in rows if more(row, sort)] for sort in SORTS}


def ours(rows: Sequence[Row]) -> Line:
    """Our line, from rows at one number of draws."""
    n, least = rows[0]["n"], min(rows, key=lambda row: row["worst_gain"])
    better = losses(rows, "zvcv_best")
    scales, counts = [row["calibration"] for row in rows], [row["count"] for row in rows]
    return Line(
        "steinax",
        n,
        *_middle([Gain(**row["gain"]) for row in rows]),
        f"{shown(least['worst_gain'])} ({least['worst']} of {least['posterior']})",
        (len(better["means"]), len(better["squares"])) if n == MEASURED_AT else None,
        pooled(scales, counts),
        (min(scales), max(scales)),
        average([row["coverage"] for row in rows], counts),
        f"{np.median([row['seconds'] for row in rows]):.2g}",
    )


def theirs(rows: Sequence[Row]) -> list[Line]:
    """The peers' lines beside ours, on the same posteriors."""
    n, peers = rows[0]["n"], [PEERS[row["posterior"]] for row in rows]
    if n != MEASURED_AT:
        known = PROTOTYPE.get(n) if len(rows) == len(PEERS) else None
        return [Line("prototype", n, *known[:2], shown(known.worst))] if known else []
    scales = [peer.prototype_calibration for peer in peers]
    better = [
        [b > p for b, p in zip(peer.zvcv_best, peer.prototype, strict=True)] for peer in peers
    ]
    prototype = Line(
        "prototype",
        n,
        *_middle([peer.prototype for peer in peers]),
        shown(min(peer.prototype_worst for peer in peers)),
        (sum(means for means, _ in better), sum(squares for _, squares in better)),
        None,
        (min(scales), max(scales)),
        None,
        SECONDS["prototype"],
    )
    worst = ", ".join(f"{shown(gain)} ({method})" for method, gain in ZVCV_WORST.items())
    seconds = ", ".join(f"{SECONDS[method]} ({method})" for method in ZVCV_WORST)
    zvcv = Line("ZVCV's best of three", n, *_middle([peer.zvcv_best for peer in peers]), worst)
    return [prototype, zvcv._replace(seconds=seconds)]


def _middle(gains: Sequence[Gain]) -> tuple[Gain, Gain]:
    """The medians and the lowest quartiles."""
    quartile, median = np.percentile(np.array(gains), [25, 50], axis=0)
    return Gain(*median.tolist()), Gain(*quartile.tolist())
