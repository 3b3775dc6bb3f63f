"""What experiments are made of: cells, rows of results, claims and reports."""

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

EXPERIMENTS = (
    "polynomials",
    "genz",
    "gaussian_processes",
    "lidar",
    "lotka_volterra",
    "sonar",
    "madelon",
)
REPETITIONS = 20  # of each cell, as in the paper
FEWER = {"gaussian_processes": 10, "lidar": 10, "lotka_volterra": 10}  # for time
type Cell = dict[str, Any]  # with "repetitions", that many at most are made


@dataclass(frozen=True)
class Result:
    """One repetition: what a method made of one set of draws.

    Attributes:
        error: estimate less truth, of each integrand.
        seconds: of CPU, to fit and to average.
        tuning: of CPU, to choose hyper-parameters beforehand.
        extra: anything else that a report needs, as JSON takes it.
    """

    error: Sequence[float] | np.ndarray
    seconds: float
    tuning: float = 0.0
    extra: dict[str, Any] | None = None


@dataclass(frozen=True)
class Row:
    """A result as it is kept, with its cell, the number of its repetition and the source measured."""

    cell: Cell
    repetition: int
    error: np.ndarray
    seconds: float
    tuning: float
    extra: dict[str, Any]
    source: str = ""


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, or of ours, and whether these rows bear it out.

    Attributes:
        statement: what is claimed.
        holds: whether it does here.
        evidence: the figures.
        at_any_size: whether it must hold in a quick run too.
    """

    statement: str
    holds: bool
    evidence: str
    at_any_size: bool = False


@dataclass(frozen=True)
class Report:
    """A page of Markdown, without a headline, and the claims that it bears out."""

    page: str
    claims: tuple[Claim, ...]


@dataclass(frozen=True)
class Experiment:
    """The functions of an experiment's module."""

    name: str
    cells: Callable[[bool], list[Cell]]
    measure: Callable[[Cell, int], Result]
    report: Callable[[list[Row], Path], Report]
    prepare: Callable[[bool], None]


def experiment(name: str) -> Experiment:
    """Import an experiment."""
    module = importlib.import_module(f"benchmarks.paper.{name}")
    prepare = getattr(module, "prepare", lambda quick: None)
    return Experiment(name, module.cells, module.measure, module.report, prepare)
