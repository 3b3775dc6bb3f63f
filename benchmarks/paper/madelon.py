"""Bayesian logistic regression on the Madelon data: 500 coefficients, ten predictions."""

from pathlib import Path

from ._experiment import Report, Row
from ._logistic_data import madelon
from ._logistic_page import page
from ._logistic_study import Study

MOST = 1000  # draws of a stochastic fit of 125,750 coefficients, which takes a minute or two


def left_out(method: str, m: int, quick: bool) -> bool:
    """Whether a stochastic fit of 125,750 coefficients would take too long."""
    return "polynomial" in method and "SGD" in method and (quick or m > MOST)


STUDY = Study(
    "madelon",
    madelon,
    sizes=((200, 500, 1000, 2000), (200,)),
    length=(3250, 150),
    warm_up=(100, 100),
    left_out=left_out,
)
cells, measure, prepare = STUDY.cells, STUDY.measure, STUDY.prepare


def report(rows: list[Row], folder: Path) -> Report:
    """Errors and times against m, and what the paper says of them."""
    return page("madelon", 500, rows, folder)
