"""The losses, told as frankly as the gains."""

from collections.abc import Sequence

from ._peers import PEERS
from ._rows import Row
from ._summary import MEASURED_AT, at, losses
from ._text import listed, shown

BAND = (0.8, 1.25)  # calibrations that are as good as 1, for so few blocks


def lost(rows: Sequence[Row]) -> str:
    """Where a peer gains more, where control variates do harm, and where error bars do not hold."""
    items = [*_to_peer(rows, "zvcv_best", "ZVCV's best of three")]
    items += _to_peer(rows, "prototype", "The prototype")
    for n in sorted({row["n"] for row in rows}, reverse=True):
        chosen = at(rows, n)
        harmed = [_harmed(row) for row in chosen if row["worst_gain"] < 1]
        items.append(listed(f"Integrands worse than plain averages, {n:,} draws", harmed))
        outside = [
            f"{row['posterior']} ({row['calibration']:.2f})"
            for row in chosen
            if not BAND[0] <= row["calibration"] <= BAND[1]
        ]
        items.append(listed(f"Calibration outside {BAND[0]} to {BAND[1]}, {n:,} draws", outside))
    return "\n".join(["## Where it loses", "", *items])


def _to_peer(rows: Sequence[Row], peer: str, title: str) -> list[str]:
    items = []
    for sort, found in losses(at(rows, MEASURED_AT), peer).items():
        against = [
            f"{row['posterior']} ({shown(getattr(getattr(PEERS[row['posterior']], peer), sort))}"
            f" to our {shown(row['gain'][sort])})"
            for row in found
        ]
        items.append(listed(f"{title} gains more, {sort}, {MEASURED_AT:,} draws", against))
    return items


def _harmed(row: Row) -> str:
    below = sum(gain < 1 for gain in row["gains"].values())
    least = f"the least is {shown(row['worst_gain'])}, of the {row['worst']}"
    return f"{row['posterior']} ({below} of {len(row['gains'])}; {least})"
