"""The paper's four tables of Genz functions, and which of our cells stands for which entry."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ._experiment import Cell, Row
from ._methods import PLAIN
from ._statistics import mae, where

# the paper's mean absolute errors of 20 repetitions; n = 1000, a = 1, u = 1/2
INTEGRANDS = {  # plain, polynomial, kernel and their sum after 25 epochs (table 1)
    "continuous": (2.77e-3, 3.21e-3, 3.28e-4, 1.85e-4),
    "corner peak": (5.76e-3, 1.07e-3, 9.27e-6, 6.05e-6),
    "discontinuous": (2.04e-2, 1.32e-2, 3.91e-3, 2.65e-3),
    "Gaussian peak": (1.47e-3, 1.40e-3, 1.24e-5, 1.05e-5),
    "oscillatory": (4.17e-3, 1.06e-3, 4.63e-6, 3.90e-6),
    "product peak": (1.37e-3, 1.32e-3, 2.12e-5, 2.52e-6),
}
KERNEL = {  # linear system, 2 epochs, 5 epochs
    "continuous": (3.04e-4, 3.45e-4, 3.28e-4),
    "corner peak": (7.07e-6, 1.69e-5, 9.27e-6),
    "discontinuous": (2.39e-3, 6.30e-3, 3.91e-3),
    "Gaussian peak": (8.84e-6, 1.10e-4, 1.24e-5),
    "oscillatory": (3.68e-6, 1.22e-5, 4.63e-6),
    "product peak": (1.79e-5, 1.48e-4, 2.12e-5),
}
PRODUCT_PEAK = {  # by dimension: plain, linear system, 2 epochs, 5 epochs
    5: (2.85e-3, 5.81e-4, 6.51e-4, 5.84e-4),
    10: (2.29e-3, 1.98e-4, 2.79e-4, 2.70e-4),
    15: (2.10e-3, 4.93e-4, 1.22e-3, 6.14e-3),
    20: (1.73e-3, 5.13e-4, 6.35e-4, 5.90e-4),
}
SPLIT = {  # 5 epochs, by the part that is fitted to
    "continuous": (3.28e-4, 4.82e-4, 7.40e-4, 3.80e-4),
    "corner peak": (9.27e-6, 1.57e-5, 3.26e-5, 1.02e-5),
    "discontinuous": (3.91e-3, 7.29e-3, 3.2e-3, 3.51e-3),
    "Gaussian peak": (1.24e-5, 2.18e-5, 2.78e-5, 2.05e-4),
    "oscillatory": (4.63e-6, 8.47e-6, 1.67e-5, 3.25e-5),
    "product peak": (2.12e-5, 2.20e-5, 3.03e-5, 3.63e-5),
}
HINDSIGHT = "kernel, exact, every hyper-parameter of a grid"
DIMENSIONS, SPLITS = tuple(PRODUCT_PEAK), (0.5, 0.7, 0.9, 1.0)
SPREAD = 0.756  # of the absolute value of a centred Gaussian, over its mean
ALLOWED = 2.0  # standard errors of the difference between the paper's figure and ours


def is_reached(ours: float, paper: float, repetitions: int) -> bool:
    """Whether an error of ours is at most the paper's, of 20 repetitions, within what both scatter."""
    error = SPREAD * np.sqrt(1 / 20 + 1 / max(repetitions, 1))
    return bool(ours <= paper * (1 + ALLOWED * error))


@dataclass(frozen=True)
class Entry:
    """A cell of a table: the paper's figure and the settings of ours."""

    paper: float
    cell: Cell

    def ours(self, rows: Sequence[Row]) -> tuple[float, float]:
        """The mean absolute error and its standard error."""
        return mae(where(rows, **self.cell))

    def reached(self, rows: Sequence[Row]) -> bool:
        """Whether ours is at most the paper's, within the errors of both if both were equally good."""
        mine = where(rows, **self.cell)
        return is_reached(mae(mine)[0], self.paper, len(mine))

    def text(self, rows: Sequence[Row]) -> str:
        """Ours, and the paper's in brackets; bold where it is not reached."""
        value, _ = self.ours(rows)
        shown = f"{value:.2e}" if self.reached(rows) else f"**{value:.2e}**"
        return f"{shown} ({self.paper:.2e})"


@dataclass(frozen=True)
class Table:
    """One of the paper's tables: headings, and entries by row."""

    title: str
    head: tuple[str, ...]
    rows: dict[str, tuple[Entry, ...]]


def paper_tables(stochastic: str) -> Iterator[Table]:
    """The four tables, with one of our stochastic solvers for the paper's."""

    def half(method: str, **more: object) -> Cell:
        return {"method": method, "train": 0.5, **more}

    def sgd(family: str, epochs: int) -> Cell:
        return half(f"{family}, {stochastic}", epochs=epochs)

    exact = half("kernel, exact")
    first = (
        {"method": PLAIN},
        *(sgd(f, 25) for f in ("polynomial", "kernel", "polynomial + kernel")),
    )
    yield Table(
        "Table 1: 25 epochs, n = 1000, m = 500",
        ("integrand", PLAIN, "polynomial", "kernel", "polynomial + kernel"),
        _entries(INTEGRANDS, [list(first)] * len(INTEGRANDS)),
    )
    yield Table(
        "Kernels: the linear system, 2 and 5 epochs",
        ("integrand", "linear system", "2 epochs", "5 epochs"),
        _entries(KERNEL, [[exact, sgd("kernel", 2), sgd("kernel", 5)]] * len(KERNEL)),
    )
    cells = [{"method": PLAIN}, exact, sgd("kernel", 2), sgd("kernel", 5)]
    rows = {
        f"d = {dim}": tuple(
            Entry(paper, {"integrand": "product peak", "d": dim, "a": 1.0} | cell)
            for paper, cell in zip(figures, cells, strict=True)
        )
        for dim, figures in PRODUCT_PEAK.items()
    }
    head = ("product peak", PLAIN, "linear system", "2 epochs", "5 epochs")
    yield Table("Kernels in more dimensions", head, rows)
    parts = [sgd("kernel", 5) | {"train": part} for part in SPLITS]
    yield Table(
        "Splits: the part that is fitted to, 5 epochs",
        ("integrand", "50/50", "70/30", "90/10", "100/0"),
        _entries(SPLIT, [parts] * len(SPLIT)),
    )


def _entries(figures: dict, cells: list[list[Cell]]) -> dict[str, tuple[Entry, ...]]:
    return {
        name: tuple(
            Entry(paper, {"integrand": name, "d": 1, "a": 1.0} | cell)
            for paper, cell in zip(values, mine, strict=True)
        )
        for (name, values), mine in zip(figures.items(), cells, strict=True)
    }


def best_of_paper(name: str, dim: int) -> float:
    """The least error that the paper has for an integrand, in any table, plain draws left out."""
    if dim > 1:
        return min(PRODUCT_PEAK[dim][1:])
    return min(*INTEGRANDS[name][1:], *KERNEL[name], *SPLIT[name])
