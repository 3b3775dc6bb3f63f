"""Bayesian logistic regression on the Madelon data: 500 coefficients, ten predictions."""

from pathlib import Path

from ._experiment import Cell, Report, Row
from ._logistic_data import madelon
from ._logistic_page import page
from ._logistic_study import Study

SLOW = ("polynomial, SGD", "polynomial + two kernels, SGD")  # five minutes for each fit


def left_out(method: str, m: int, quick: bool) -> bool:
    """Whether a stochastic fit of 125,750 coefficients, or tuning an ensemble, would take too long."""
    if method == "polynomial + kernel, exact":
        return quick or m == 1000
    stochastic = "polynomial" in method and not method.endswith("exact")
    return stochastic and (quick or m != 1000 or method not in SLOW)


STUDY = Study(
    "madelon",
    madelon,
    sizes=((200, 500, 1000), (200,)),
    length=(2750, 150),
    warm_up=(100, 100),
    left_out=left_out,
)
measure, prepare = STUDY.measure, STUDY.prepare


def cells(quick: bool) -> list[Cell]:
    """Every method at every size, the slow ones first and once each."""
    found = STUDY.cells(quick)
    slow = [cell | {"repetitions": 1} for cell in found if cell["method"] in SLOW]
    return slow + [cell for cell in found if cell["method"] not in SLOW]


def report(rows: list[Row], folder: Path) -> Report:
    """Errors and times against m, and what the paper says of them."""
    return page("madelon", 500, rows, folder)
