"""The supplement's model of atmospheric pollutants: hyper-parameters of a Gaussian process."""

from dataclasses import replace
from pathlib import Path

import steinax as sx

from . import _lidar_page as page
from ._experiment import Cell, Report, Result, Row
from ._lidar_chain import chain, checks
from ._methods import AUTOMATIC, NETWORK, PILOTS, PLAIN, Draws, Setting, measure_method

SIZES, REPETITIONS = (100, 200, 500, 1000), 20
QUICK_SIZES, QUICK_REPETITIONS = (200,), 2
EPOCHS = {  # of the supplement: 10 for kernels, 25 for all else
    "polynomial, SGD": 25,
    "kernel, SGD": 10,
    "kernel, Point-SAGA": 10,
    NETWORK: 25,
}
METHODS = (
    PLAIN,
    "polynomial, exact",
    "polynomial, SGD",
    "kernel, exact",
    "kernel, SGD",
    "kernel, Point-SAGA",
    "polynomial + kernel, exact",
    NETWORK,
    AUTOMATIC,
)


def prepare(quick: bool) -> None:
    """Run the sampler."""
    chain(_stretches(quick) * _sizes(quick)[-1])


def cells(quick: bool) -> list[Cell]:
    """Every method at every number of draws; the network, which is slow, at the least and the most.

    A quick run has no network here: two other experiments train one.
    """
    stretch, stretches = _sizes(quick)[-1], _stretches(quick)
    return [
        {"m": m, "stretch": stretch, "stretches": stretches, "method": method}
        | ({"epochs": EPOCHS[method]} if method in EPOCHS else {})
        for m in reversed(_sizes(quick))
        for method in METHODS
        if method != NETWORK or (m in {_sizes(quick)[0], stretch} and not quick)
    ]


def draws(cell: Cell, repetition: int) -> Draws:
    """The first draws of a stretch of the thinned chain; the last stretches are the pilots'."""
    last = cell["stretches"] - len(PILOTS)
    number = repetition if repetition < PILOTS[0] else last + repetition - PILOTS[0]
    if repetition < PILOTS[0] and number >= last:
        raise ValueError(f"the chain has draws for {last} repetitions: ask for no more.")
    made = chain(cell["stretch"] * cell["stretches"])
    rows = slice(number * cell["stretch"], number * cell["stretch"] + cell["m"])
    sample = sx.Sample(made["draws"][rows], made["scores"][rows])
    return Draws(made["values"][None, rows], sample, made["truth"])


def measure(cell: Cell, repetition: int) -> Result:
    """One repetition; the checks of model and chain are kept with one of them."""
    setting = Setting(sx.InSample(), cell.get("epochs", 25), independent=False)
    result = measure_method(cell, repetition, draws, setting)
    if cell["method"] == PLAIN and cell["m"] == cell["stretch"] and repetition == 0:
        return replace(result, extra=checks(cell["stretch"] * cell["stretches"]))
    return result


def report(rows: list[Row], folder: Path) -> Report:
    """The errors against the number of draws, the checks, and the claims."""
    return page.report(rows, folder, METHODS)


def _sizes(quick: bool) -> tuple[int, ...]:
    return QUICK_SIZES if quick else SIZES


def _stretches(quick: bool) -> int:
    return (QUICK_REPETITIONS if quick else REPETITIONS) + len(PILOTS)
