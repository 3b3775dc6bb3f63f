"""Bayesian logistic regression on the Madelon data: 500 coefficients, ten predictions."""

from pathlib import Path

from ._experiment import Report, Row
from ._logistic_data import madelon
from ._logistic_page import page
from ._logistic_study import Study
from ._methods import NETWORK

MOST = 1000  # draws of a stochastic fit of 125,750 coefficients, which takes a minute or two


def left_out(method: str, m: int, quick: bool) -> bool:
    """Whether a stochastic fit of 125,750 coefficients, or in a quick run a network, takes too long."""
    return (_many(method) and (quick or m > MOST)) or (quick and method == NETWORK)


def pilots(method: str) -> int:
    """The most draws to choose hyper-parameters on: a search takes dozens of fits."""
    return 200 if _many(method) else 500


def _many(method: str) -> bool:
    """Whether 125,750 coefficients are trained one by one."""
    return "polynomial" in method and not method.endswith("exact")


STUDY = Study(
    "madelon",
    madelon,
    sizes=((200, 500, 1000, 2000), (200,)),
    length=(3250, 100),
    warm_up=(100, 60),
    left_out=left_out,
    pilots=pilots,
    repetitions=10,
    expensive=lambda method: _many(method) and method.endswith("SGD"),
)
cells, measure, prepare = STUDY.cells, STUDY.measure, STUDY.prepare


def report(rows: list[Row], folder: Path) -> Report:
    """Errors and times against m, and what the paper says of them."""
    tuned = (
        "at most 500 draws each, and on one subset of 200 where 125,750 coefficients are trained one by one, "
        "with kernels as SGD has chosen them for the kernel alone; SGD's learning rate is then chosen on "
        "subsets of m draws"
    )
    return page("madelon", 500, rows, folder, tuned)
