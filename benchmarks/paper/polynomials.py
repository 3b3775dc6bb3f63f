"""A sum of Gaussian coordinates: stochastic solvers against the exact solve, by error and by time."""

from pathlib import Path

import numpy as np

import steinax as sx

from ._experiment import Cell, Report, Result, Row
from ._methods import AUTOMATIC, LITERAL, PILOTS, PLAIN, Draws, Setting, measure_method
from ._polynomials_claims import claims
from ._polynomials_page import page
from ._polynomials_problem import coefficients, part_fitted

PILOT = 1000  # draws that hyper-parameters are chosen on, at most
POLYNOMIAL, KERNEL = ("polynomial",), ("kernel",)
BOTH = POLYNOMIAL + KERNEL


def cells(quick: bool) -> list[Cell]:
    """The main text's figure with n = 1000, and the supplement's with more draws."""
    if quick:
        return _cells(1000, 10, BOTH, 25, (25,), automatic=True)
    return [
        # the longest first, so that no core waits for them in the end
        *_cells(10_000, 100, POLYNOMIAL, 10, (), train=0.9),
        *_cells(10_000, 100, POLYNOMIAL, 10, ()),
        *_cells(1000, 300, POLYNOMIAL, 10, (), automatic=True),
        *_cells(1000, 100, BOTH, 25, (5,), automatic=True),
        *_cells(4000, 100, KERNEL, 10, (5,)),
        *_cells(4000, 10, KERNEL, 10, (5,)),
        *_cells(10_000, 30, POLYNOMIAL, 25, (), train=0.9),
        *_cells(10_000, 10, POLYNOMIAL, 25, (), train=0.9),
        *_cells(10_000, 30, POLYNOMIAL, 25, (5, 25)),
        *_cells(10_000, 10, POLYNOMIAL, 25, (5, 25), automatic=True),
        *_cells(1000, 30, BOTH, 25, (1, 5, 25), automatic=True),
        *_cells(1000, 10, BOTH, 25, (1, 5, 25), automatic=True),
    ]


def _cells(
    n: int,
    dim: int,
    families: tuple[str, ...],
    sgd: int,
    point_saga: tuple[int, ...],
    automatic: bool = False,
    train: float = 0.5,
) -> list[Cell]:
    """Plain draws, the exact solve, SGD with its path, and Point-SAGA at some numbers of epochs."""
    problem = {"n": n, "d": dim}
    part = problem | ({} if train == 0.5 else {"train": train})
    found: list[Cell] = []
    for family in families:
        found.append(part | {"method": f"{family}, exact"})
        found.append(part | {"method": f"{family}, {LITERAL}", "epochs": sgd})
        for epochs in point_saga:
            found.append(part | {"method": f"{family}, Point-SAGA", "epochs": epochs})
    if train != 0.5:
        return found
    if automatic:
        found.append(problem | {"method": AUTOMATIC})
    return [*found, problem | {"method": PLAIN}]


def draws(cell: Cell, repetition: int) -> Draws:
    """Independent standard Gaussian draws; the main text's integrand, or with more, the supplement's."""
    n, dim = cell["n"], cell["d"]
    if repetition in PILOTS and n > PILOT:
        if cell["method"].startswith("polynomial"):
            dim = _reduced(dim, PILOT / n)  # the same for both splits
        n = PILOT
    x = np.random.default_rng([21, repetition, dim]).normal(size=(1, n, dim))
    main = cell["n"] == 1000
    values = x.sum(-1) if main else (1 - x).sum(-1)
    return Draws(values[..., None], sx.Sample(x, -x), np.array([0.0 if main else dim]))


def _reduced(dim: int, part: float) -> int:
    """The dimension in which a polynomial has about that part of the coefficients."""
    wanted = part * coefficients(dim)
    return min(range(1, dim + 1), key=lambda one: abs(coefficients(one) - wanted))


def measure(cell: Cell, repetition: int) -> Result:
    """One repetition, fitted to half of the draws, or to nine tenths."""
    reduced = cell["n"] if cell["n"] > PILOT else 0
    setting = Setting(sx.HoldOut(part_fitted(cell)), cell.get("epochs", 25), reduced=reduced)
    return measure_method(cell, repetition, draws, setting)


def report(rows: list[Row], folder: Path) -> Report:
    """Pictures in the paper's layout, tables of errors and times, and claims."""
    return Report(page(rows, folder), tuple(claims(rows)))
