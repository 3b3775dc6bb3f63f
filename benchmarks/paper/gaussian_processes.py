"""Realisations of Gaussian processes, drawn with their exact integrals: a figure of the paper."""

from pathlib import Path

import jax
import numpy as np

import steinax as sx

from . import _gaussian_processes_page as page
from ._experiment import Cell, Report, Result, Row
from ._gaussian_processes_problem import SCALES, Mixture, Realisation, realise
from ._gaussian_processes_rows import BEST, EPOCHS, NOISY, VARIANCE, WIDE_METHODS, WIDENED
from ._methods import AUTOMATIC, NETWORK, PILOTS, PLAIN, Draws, Setting, measure_method

SIZES, DIMENSIONS, SIZE = (100, 200, 500, 1000), (1, 2, 5, 10, 20), 500
LARGE = 2000  # draws, for the times only
LINEAR = ("polynomial, exact", "polynomial, SGD", "kernel, exact", "kernel, SGD")
NETWORKS = ((100, 1), (200, 1), (500, 1), (500, 5), (500, 20))  # they take the most time by far
PILOT = 500  # draws that hyper-parameters are chosen on, at most
FOLDS = 5  # as in the paper; leaving draws out one by one selects kernels too narrow for gaps


def cells(quick: bool) -> list[Cell]:
    """Every cell of the panels; quick: one size in one dimension, and in five, and one network."""
    sizes, dims, size = ((200,), (1, 5), 200) if quick else (SIZES, DIMENSIONS, SIZE)
    networks = ((200, 1),) if quick else NETWORKS
    found = []
    for m, dim in [(m, 1) for m in sizes] + [(size, dim) for dim in dims if dim > 1]:
        problem = {"m": m, "d": dim}
        with_network = (NETWORK,) if (m, dim) in networks else ()
        methods = (PLAIN, BEST, *LINEAR, "kernel, Point-SAGA", AUTOMATIC, *with_network)
        found += [problem | {"method": method} for method in methods]
        if dim > 1 or quick:
            with_network = ()
        twice = ("polynomial, SGD", "kernel, SGD", *with_network)
        found += [problem | {"method": method, "objective": VARIANCE} for method in twice]
    found.append({"m": size, "d": 1, "method": "kernel, exact", "objective": VARIANCE})
    for dim in dims[1:]:
        noisy = [{"m": size, "d": dim, "scale": scale} for scale in NOISY]
        found += [one | {"method": method} for one in noisy for method in (PLAIN, BEST)]
    wide = {"m": size, "d": 1, "widened": WIDENED}
    found += [wide | {"method": method} for method in WIDE_METHODS]
    if not quick:
        for family in ("polynomial", "kernel"):
            part = {"m": size, "d": 1, "method": f"{family}, SGD"}
            found += [part | {"epochs": round(_epochs(part) * thirds / 3)} for thirds in (1, 2)]
        found += [{"m": LARGE, "d": 1, "method": method} for method in LINEAR]
    return found


def problem(cell: Cell, repetition: int) -> tuple[np.ndarray, np.ndarray, Realisation]:
    """A mixture at random, draws from it, their scores, and a Gaussian process on them."""
    dim = cell["d"]
    rng = np.random.default_rng([30, repetition, dim])
    mixture = Mixture.random(dim, rng)
    mixture = mixture.widened(cell.get("widened", 0.0))
    x = mixture.draw(cell["m"], rng)
    scale = SCALES[cell.get("scale", "matched")](dim)
    return x, mixture.score(x), realise(mixture, x, scale, rng)


def draws(cell: Cell, repetition: int) -> Draws:
    """What a method is given, or what its hyper-parameters are chosen on."""
    x, score, found = problem(cell, repetition)
    sample = sx.Sample(x[None], score[None])
    return Draws(found.values[None, :, None], sample, np.array([found.integral]))


def measure(cell: Cell, repetition: int) -> Result:
    """One repetition."""
    if cell["method"] == BEST:
        found = problem(cell, repetition)[-1]
        extra = {"deviation": found.deviation}
        return Result([found.best - found.integral], 0.0, extra=extra)
    network = sx.Network(50, 2, jax.nn.silu, residual=True, operator=sx.ScalarLangevin())
    objective = sx.Variance() if cell.get("objective") == VARIANCE else None
    reduced = cell["m"] if cell["m"] > PILOT else 0
    setting = Setting(
        sx.InSample(), _epochs(cell), objective, folds=FOLDS, reduced=reduced, network=network
    )
    tuned_by = cell | {"m": min(cell["m"], PILOT)}
    return measure_method(
        tuned_by,
        repetition,
        lambda given, number: draws(given if number in PILOTS else cell, number),
        setting,
    )


def report(rows: list[Row], folder: Path) -> Report:
    """The panels, tables and claims."""
    return page.report(rows, folder)


def _epochs(cell: Cell) -> int:
    return cell.get("epochs", EPOCHS.get(cell["method"].split(",")[0], 25))
