"""The problems of the experiment on polynomial integrands, and what was measured on each."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import comb

import numpy as np

from ._experiment import Cell, Row
from ._methods import AUTOMATIC, LITERAL, PLAIN
from ._statistics import mae, seconds, where

SHOWN = (1, 2, 5, 10, 25)  # numbers of epochs


def coefficients(dim: int) -> int:
    """Of a polynomial of degree two in so many dimensions, without a constant."""
    return comb(dim + 2, 2) - 1


def part_fitted(cell: Cell) -> float:
    """The part of the draws that control variates are fitted to."""
    return cell.get("train", 0.5)


@dataclass(frozen=True)
class Problem:
    """A family of control variates on n draws in d dimensions, and the rows of that.

    Attributes:
        family: polynomials or kernels.
        n: draws.
        dim: d.
        train: the part of the draws that is fitted to.
        rows: of these draws, with any family and part.
    """

    family: str
    n: int
    dim: int
    train: float
    rows: Sequence[Row]

    @property
    def fitted(self) -> int:
        """The draws that are fitted to, m."""
        return round(self.train * self.n)

    @property
    def unknowns(self) -> int:
        """The coefficients of the control variate."""
        return coefficients(self.dim) if self.family == "polynomial" else self.fitted

    @property
    def work(self) -> int:
        """What a pass of SGD costs by the paper, up to a constant: m p, or m^2 d for kernels."""
        return self.fitted * self.unknowns * (1 if self.family == "polynomial" else self.dim)

    @property
    def plain(self) -> list[Row]:
        """Of plain Monte Carlo."""
        return where(self.rows, method=PLAIN)

    @property
    def automatic(self) -> list[Row]:
        """Of the automatic estimate."""
        return where(self.rows, method=AUTOMATIC)

    @property
    def exact(self) -> list[Row]:
        """Of the exact solve."""
        return self._of(f"{self.family}, exact")

    def stochastic(self, solver: str) -> dict[int, list[Row]]:
        """Of a stochastic solver, by the number of epochs, increasing; of SGD on its way."""
        if solver == "SGD":
            whole = self._of(f"{self.family}, {LITERAL}")
            last = max((row.cell["epochs"] for row in whole), default=0)
            shown = [epochs for epochs in SHOWN if epochs <= last]
            return {epochs: [_after(row, epochs) for row in whole] for epochs in shown}
        mine = self._of(f"{self.family}, {solver}")
        passes = sorted({row.cell["epochs"] for row in mine})
        return {epochs: where(mine, epochs=epochs) for epochs in passes}

    def _of(self, method: str) -> list[Row]:
        """The rows of a method that is fitted to this part of the draws."""
        return [r for r in where(self.rows, method=method) if part_fitted(r.cell) == self.train]

    def distances(self, rows: Sequence[Row]) -> np.ndarray:
        """How far estimates are from the exact solve's on the same draws, one of each repetition."""
        exact = {row.repetition: row.error[0] for row in self.exact}
        return np.array(
            [abs(r.error[0] - exact[r.repetition]) for r in rows if r.repetition in exact]
        )

    def ratios(self, rows: Sequence[Row]) -> tuple[float, float]:
        """The mean absolute error and the time, each over the exact solve's."""
        return mae(rows)[0] / mae(self.exact)[0], seconds(rows) / seconds(self.exact)

    def seconds_of_an_epoch(self) -> float:
        """Of SGD, from the fewest and the most epochs, so without what is done once."""
        times = {epochs: seconds(rows) for epochs, rows in self.stochastic("SGD").items()}
        first, last = min(times), max(times)
        return (times[last] - times[first]) / (last - first)

    def __str__(self) -> str:
        return f"{self.family} m = {self.fitted} d = {self.dim}"


def _after(row: Row, epochs: int) -> Row:
    """A run as it was after some of its epochs, which all take the same time, and an average."""
    error, averaging = np.array(row.extra["path"][epochs - 1]), row.extra["averaging"]
    fit = (row.seconds - averaging) * epochs / row.cell["epochs"]
    return replace(row, error=error, seconds=fit + averaging)


def problems(rows: Sequence[Row]) -> list[Problem]:
    """All that have an exact solve and SGD, by family, number of draws and dimension."""
    found = set()
    for row in rows:
        family, _, solver = row.cell["method"].rpartition(", ")
        if solver == "exact":
            part = part_fitted(row.cell)
            found.add((family == "kernel", family, part, row.cell["n"], row.cell["d"]))
    made = [
        Problem(family, n, dim, part, where(rows, n=n, d=dim))
        for _, family, part, n, dim in sorted(found)
    ]
    return [one for one in made if len(one.stochastic("SGD")) > 1]
