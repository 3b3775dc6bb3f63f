"""Bayesian logistic regression on the Sonar data: 61 coefficients, ten predictions."""

from pathlib import Path

from ._experiment import Report, Row
from ._logistic_data import sonar
from ._logistic_page import page
from ._logistic_study import Study

STUDY = Study(
    "sonar",
    sonar,
    sizes=((100, 200, 500, 1000), (200,)),
    length=(5500, 200),
    warm_up=(300, 100),
    pilots=lambda method: 500,
)
cells, measure, prepare = STUDY.cells, STUDY.measure, STUDY.prepare


def report(rows: list[Row], folder: Path) -> Report:
    """Errors and times against m, and what the paper says of them."""
    tuned = "at most 500 draws each; SGD's learning rate is then chosen on subsets of m draws"
    return page("sonar", 61, rows, folder, tuned)
