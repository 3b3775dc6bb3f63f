"""Rows of the experiment on Gaussian processes: names, series, shares and exponents."""

from collections.abc import Sequence

import numpy as np

from ._experiment import Row
from ._methods import AUTOMATIC, NETWORK, PLAIN
from ._statistics import mae, seconds, where

BEST = "best weights"  # of any weighted mean of f(x_1), ..., f(x_n), if the covariance is known
VARIANCE = "variance"  # the objective, where it is not least squares
NOISY = ("1", "root of d")  # length-scales, where they are not as wide as the draws
EPOCHS = {"kernel": 10, "polynomial": 25, NETWORK: 25}
PAPER = ("polynomial, exact", "polynomial, SGD", "kernel, exact", "kernel, SGD", NETWORK)
WIDENED = 0.1  # variance added to every component, in one table
WIDE_METHODS = (PLAIN, "polynomial, exact", "kernel, exact", AUTOMATIC)
METHODS = (PLAIN, *PAPER, "kernel, Point-SAGA", AUTOMATIC, BEST)


def of(rows: Sequence[Row], method: str, m: int, d: int, **more: object) -> list[Row]:
    """The rows of a cell with no settings but these."""
    settings = {"method": method, "m": m, "d": d, **more}
    return [row for row in where(rows, **settings) if row.cell.keys() == settings.keys()]


def sizes(rows: Sequence[Row], method: str = PLAIN) -> list[int]:
    """The numbers of draws that a method was run on in one dimension."""
    return sorted({row.cell["m"] for row in where(rows, method=method, d=1)})


def dims(rows: Sequence[Row], method: str = PLAIN) -> list[int]:
    """The dimensions that a method was run in."""
    found = where(rows, method=method, m=size(rows))
    return sorted({row.cell["d"] for row in found if "scale" not in row.cell})


def size(rows: Sequence[Row]) -> int:
    """The number of draws in all dimensions."""
    return next(row.cell["m"] for row in rows if row.cell["d"] > 1)


def places(rows: Sequence[Row]) -> list[tuple[int, int]]:
    """Sizes and dimensions of both panels of errors."""
    more = [(size(rows), d) for d in dims(rows) if d > 1]
    return [(m, 1) for m in sizes(rows)] + more


def error(rows: Sequence[Row], method: str, m: int, d: int, **more: object) -> float:
    """The mean absolute error; of the best weights its expectation given the draws."""
    mine = of(rows, method, m, d, **more)
    if method == BEST and mine:
        return float(np.sqrt(2 / np.pi) * np.mean([row.extra["deviation"] for row in mine]))
    return mae(mine)[0]


def share(rows: Sequence[Row], method: str, m: int, d: int, **more: object) -> float:
    """The error over that of plain Monte Carlo on the same draws."""
    same = {key: value for key, value in more.items() if key in ("scale", "widened")}
    return error(rows, method, m, d, **more) / mae(of(rows, PLAIN, m, d, **same))[0]


def training(rows: Sequence[Row], method: str) -> list[tuple[float, float]]:
    """Parts of the epochs of a stochastic solver in one dimension, and the errors of runs as long."""
    whole, m = EPOCHS[method.split(",", maxsplit=1)[0]], size(rows)
    given = {row.cell["epochs"] for row in where(rows, method=method, m=m) if "epochs" in row.cell}
    parts = [(epochs / whole, error(rows, method, m, 1, epochs=epochs)) for epochs in sorted(given)]
    return [*parts, (1.0, error(rows, method, m, 1))]


def cost(rows: Sequence[Row], method: str, m: int, d: int) -> float:
    """The median CPU seconds of a repetition."""
    return seconds(of(rows, method, m, d))


def exponent(x: Sequence[float], y: Sequence[float]) -> float:
    """The power of x that y grows with, by least squares in logarithms."""
    if len(x) < 2 or not np.all(np.isfinite(y)):
        return float("nan")
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])
