"""Parameters of the Lotka-Volterra equations, from subsamples of a Langevin chain."""

from dataclasses import replace
from pathlib import Path

import numpy as np

import steinax as sx

from . import _lotka_volterra_page as page
from ._chains import kept
from ._experiment import Cell, Report, Result, Row
from ._lotka_volterra_chains import CHAINS, sampled
from ._methods import NETWORK, PILOTS, PLAIN, Draws, Setting, measure_method

THIN = 4  # one draw of these is used
SIZES = {"short": (100,), "long": (100, 200, 500, 1000, 2000)}
LENGTHS = {"short": 400, "long": 24_000}  # draws of each chain
LARGEST_OF_NETWORKS = 1000  # beyond, networks would take longer than all else


def cells(quick: bool) -> list[Cell]:
    """Every method at every number of draws; quick: a single number, and no network."""
    chains = "short" if quick else "long"
    return [
        {"chains": chains, "n": n, "method": method}
        for n in SIZES[chains]
        for method in page.METHODS
        if method != NETWORK or (n <= LARGEST_OF_NETWORKS and not quick)
    ]


def prepare(quick: bool) -> None:
    """Run the sampler, and find the truth by quadrature."""
    _sampled("short" if quick else "long")


def draws(cell: Cell, repetition: int) -> Draws:
    """A stretch of a thinned chain for each repetition, none sharing a draw, and the parameters."""
    found = _sampled(cell["chains"])
    stretch = THIN * max(SIZES[cell["chains"]])
    in_each = LENGTHS[cell["chains"]] // stretch
    last = CHAINS * in_each - len(PILOTS)
    if repetition >= last and repetition not in PILOTS:
        raise ValueError(f"the chains hold {last} stretches: ask for at most {last} repetitions.")
    place = last + PILOTS.index(repetition) if repetition in PILOTS else repetition
    chain, number = divmod(place, in_each)
    rows = slice(number * stretch, number * stretch + THIN * cell["n"], THIN)
    x, score = found["x"][None, chain, rows], found["score"][None, chain, rows]
    return Draws(np.exp(x), sx.Sample(x, score), found["truth"])


def measure(cell: Cell, repetition: int) -> Result:
    """One repetition, half of its draws fitted to; plain averages bring what was checked along."""
    result = measure_method(cell, repetition, draws, Setting(sx.HoldOut(0.5), independent=False))
    if cell["method"] != PLAIN:
        return result
    found = _sampled(cell["chains"])
    checks = {name: value.tolist() for name, value in found.items() if value.ndim < 2}
    return replace(result, extra=checks | {"length": found["x"].shape[1]})


def report(rows: list[Row], folder: Path) -> Report:
    """Four panels of errors and one of CPU time, and the claims."""
    return page.report(rows, folder)


def _sampled(chains: str) -> dict[str, np.ndarray]:
    return kept(f"lotka_volterra_{chains}", lambda: sampled(LENGTHS[chains]))
