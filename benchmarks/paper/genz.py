"""Genz's functions of Gaussian draws: four tables of the paper, each beside our figures."""

import time
from itertools import product
from pathlib import Path

import numpy as np
from scipy.special import ndtr

import steinax as sx

from ..problems import GENZ
from . import _genz_page as page, _genz_tables as tables
from ._experiment import Cell, Report, Result, Row
from ._methods import AUTOMATIC, FAMILIES, PLAIN, Draws, Setting, measure_method
from ._tuning import Hyper

N = 1000
GRID = ((1e-2, 1e-1, 1.0, 100.0), (0.5, 1.0, 2.0, 4.0), (1e-8, 1e-5, 1e-3, 1e-1))
SOLVERS = ("SGD", "Point-SAGA")
PARTS = ("polynomial", "kernel", "polynomial + kernel")


def cells(quick: bool) -> list[Cell]:
    """Every cell of the four tables, and a = 5; quick: one function in one dimension."""
    if quick:
        return _table_1("corner peak")
    names = tuple(tables.INTEGRANDS)
    return [
        *(cell for dim in tables.DIMENSIONS for cell in _more_dimensions(dim)),
        *(cell for name in names for cell in (*_table_1(name), *_splits(name), *_hard(name))),
    ]


def _table_1(name: str) -> list[Cell]:
    """One dimension, 500 draws to fit to: table 1 and the kernel table."""
    problem = {"integrand": name, "d": 1, "a": 1.0}
    half = problem | {"train": 0.5}
    found = [problem | {"method": method} for method in (PLAIN, AUTOMATIC)]
    found += [half | {"method": f"{family}, exact"} for family in PARTS]
    for how in SOLVERS:
        found += [half | {"method": f"{family}, {how}", "epochs": 25} for family in PARTS]
        found += [half | {"method": f"kernel, {how}", "epochs": epochs} for epochs in (2, 5)]
    return found


def _splits(name: str) -> list[Cell]:
    """More draws to fit to: the split table."""
    return [
        {
            "integrand": name,
            "d": 1,
            "a": 1.0,
            "train": part,
            "method": f"kernel, {how}",
            "epochs": 5,
        }
        for part in tables.SPLITS[1:]
        for how in SOLVERS
    ]


def _hard(name: str) -> list[Cell]:
    """The default that the paper states, a = 5."""
    problem = {"integrand": name, "d": 1, "a": 5.0, "repetitions": 6}
    exact = [problem | {"train": 0.5, "method": f"{family}, exact"} for family in PARTS]
    return [problem | {"method": PLAIN}, problem | {"method": AUTOMATIC}, *exact]


def _more_dimensions(dim: int) -> list[Cell]:
    """The product-peak table."""
    problem = {"integrand": "product peak", "d": dim, "a": 1.0}
    half = problem | {"train": 0.5}
    return [
        *(problem | {"method": method} for method in (PLAIN, AUTOMATIC)),
        half | {"method": "kernel, exact"},
        half | {"method": tables.HINDSIGHT, "repetitions": 6},
        *(half | {"method": f"kernel, {h}", "epochs": e} for h in SOLVERS for e in (2, 5)),
    ]


def draws(cell: Cell, repetition: int) -> Draws:
    """A thousand independent standard Gaussian draws, and a function of their quantiles."""
    dim = cell["d"]
    family = GENZ[cell["integrand"]]
    h, mean = family(np.full(dim, cell["a"]), np.full(dim, 0.5))
    x = np.random.default_rng([20, repetition, dim]).normal(size=(1, N, dim))
    return Draws(h(ndtr(x))[..., None], sx.Sample(x, -x), np.array([mean]))


def measure(cell: Cell, repetition: int) -> Result:
    """One repetition."""
    if cell["method"] == tables.HINDSIGHT:
        return _whole_grid(draws(cell, repetition))
    part = cell.get("train", 0.5)
    split = sx.InSample() if part == 1 else sx.HoldOut(part)
    return measure_method(cell, repetition, draws, Setting(split, cell.get("epochs", 25)))


def _whole_grid(given: Draws) -> Result:
    """The errors of the exact kernel fit with every hyper-parameter of a grid."""
    errors, start = [], time.process_time()
    for damping, length_scale, strength in product(*GRID):
        hyper = Hyper(damping, length_scale, strength)
        family = FAMILIES["kernel"](hyper)
        found = sx.estimate(
            given.wanted,
            given.sample,
            family,
            penalty=hyper.penalties(family),
            split=sx.HoldOut(0.5),
            solver=sx.Exact(),
            audit="off",
        )
        errors.append(float(found.value[0] - given.truth[0]))
    return Result(errors, time.process_time() - start)


def report(rows: list[Row], folder: Path) -> Report:
    """The four tables, with a verdict on each cell."""
    return page.report(rows)
