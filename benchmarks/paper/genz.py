"""Genz's functions of Gaussian draws: four tables of the paper, each beside our figures."""

import time
from itertools import product
from pathlib import Path

import numpy as np
from scipy.special import ndtr

import steinax as sx

from ..problems import GENZ
from . import _genz_page as page
from . import _genz_tables as tables
from ._experiment import Cell, Report, Result, Row
from ._methods import AUTOMATIC, FAMILIES, PLAIN, Draws, Setting, measure_method
from ._tuning import Hyper

N = 1000
HINDSIGHT = "kernel, exact, every hyper-parameter of a grid"
GRID = ((1e-2, 1e-1, 1.0, 100.0), (0.5, 1.0, 2.0, 4.0), (1e-8, 1e-5, 1e-3, 1e-1))
SOLVERS = ("SGD", "Point-SAGA")


def cells(quick: bool) -> list[Cell]:
    """Every cell of the four tables; quick: three functions in one dimension, and one in ten."""
    names = ("continuous", "corner peak", "discontinuous") if quick else tuple(tables.INTEGRANDS)
    dims = (10,) if quick else tables.DIMENSIONS
    splits = (0.5, 1.0) if quick else tables.SPLITS
    places = [(name, 1, 1.0) for name in names]
    if not quick:
        places += [(name, 1, 5.0) for name in names]
    found = []
    for name, dim, hardness in places + [("product peak", dim, 1.0) for dim in dims]:
        problem = {"integrand": name, "d": dim, "a": hardness}
        found += [problem | {"method": method} for method in (PLAIN, AUTOMATIC)]
        half = problem | {"train": 0.5}
        found.append(half | {"method": "kernel, exact"})
        if dim > 1 and not quick:
            found.append(half | {"method": HINDSIGHT})
        epochs = (2, 5, 25) if dim == 1 else (2, 5)
        found += [
            half | {"method": f"kernel, {how}", "epochs": e} for how in SOLVERS for e in epochs
        ]
        if dim > 1:
            continue
        for family in ("polynomial", "polynomial + kernel"):
            found.append(half | {"method": f"{family}, exact"})
            found += [half | {"method": f"{family}, {how}", "epochs": 25} for how in SOLVERS]
        if hardness == 1:
            found += [
                problem | {"train": part, "method": f"kernel, {how}", "epochs": 5}
                for part in splits
                if part != 0.5
                for how in SOLVERS
            ]
    return found


def draws(cell: Cell, repetition: int) -> Draws:
    """A thousand independent standard Gaussian draws, and a function of their quantiles."""
    dim = cell["d"]
    family = GENZ[cell["integrand"]]
    h, mean = family(np.full(dim, cell["a"]), np.full(dim, 0.5))
    x = np.random.default_rng([20, repetition, dim]).normal(size=(1, N, dim))
    return Draws(h(ndtr(x))[..., None], sx.Sample(x, -x), np.array([mean]))


def measure(cell: Cell, repetition: int) -> Result:
    """One repetition."""
    if cell["method"] == HINDSIGHT:
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
