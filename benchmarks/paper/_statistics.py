"""Mean absolute errors over repetitions, and what may be said of them."""

from collections.abc import Sequence

import numpy as np

from ._experiment import Row


def where(rows: Sequence[Row], **settings: object) -> list[Row]:
    """The rows whose cells have these settings."""
    return [row for row in rows if all(row.cell.get(k) == v for k, v in settings.items())]


def mae(rows: Sequence[Row], integrand: int | None = None) -> tuple[float, float]:
    """The mean absolute error and its standard error, of one integrand or averaged over all."""
    each = np.array([np.abs(row.error).mean() for row in rows])
    if integrand is not None:
        each = np.array([abs(row.error[integrand]) for row in rows])
    if len(each) < 2:
        return (float(each[0]) if len(each) else float("nan")), float("nan")
    return float(each.mean()), float(each.std(ddof=1) / np.sqrt(len(each)))


def seconds(rows: Sequence[Row]) -> float:
    """The median CPU seconds of a repetition, without tuning."""
    return float(np.median([row.seconds for row in rows])) if rows else float("nan")


def tuning(rows: Sequence[Row]) -> float:
    """The median CPU seconds that choosing hyper-parameters took, once for all repetitions."""
    return float(np.median([row.tuning for row in rows])) if rows else float("nan")
