"""Posterior farms: small posteriors a second on one core, and how the time grows with their number."""

import numpy as np

from .._pinned import run

SIZES = (100, 1_000, 10_000, 100_000)
CORRELATIONS = (0.0, 0.5, 0.9)  # of neighbouring draws
SLOWER = 1_000  # posteriors for each of these
AT_MOST = 4.0  # plain regressions of its size, the time that one posterior takes


def measure(only: str | None = None, rounds: int = 3) -> list[dict]:
    """Posteriors a second with error bars and audit, and the exponent of the growth in their number.

    Args:
        only: `growth`, `chains` (of other autocorrelations), or the number of posteriors.
        rounds: how often the time is taken of up to 1,000 posteriors; the least counts.
    """
    sizes = (int(only),) if only is not None and only.isdigit() else SIZES
    rows = []
    if only != "chains":
        rows += [_row(size, 0.5, rounds if size <= SLOWER else 1) for size in sizes]
        rows += _exponent(rows)
    if only in (None, "chains"):
        rows += [_row(SLOWER, correlation, rounds) for correlation in CORRELATIONS]
    return rows


def _row(size: int, correlation: float, rounds: int) -> dict:
    settings = {"size": size, "correlation": correlation, "rounds": rounds}
    found = run("scale._farm", settings)[0]
    return {
        "piece": f"{size} posteriors, autocorrelation {correlation}",
        "figure": size / found["CPU seconds"],
        "bare fits each": found["bare fits each"],
        "at most": AT_MOST,
        "CPU seconds": found["CPU seconds"],
        "ok": found["ok"],
        "median worth": found["median worth"],
        "peak MB": found["peak MB"],
    }


def _exponent(rows: list[dict]) -> list[dict]:
    if len(rows) < 2:
        return []
    seconds = np.log([row["CPU seconds"] for row in rows])
    slope = float(np.polyfit(np.log([row["ok"] for row in rows]), seconds, 1)[0])
    blank = dict.fromkeys(rows[0])
    return [blank | {"piece": "exponent of the number of posteriors", "figure": slope}]
