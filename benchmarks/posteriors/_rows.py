"""From saved estimates to rows of results: one row for each posterior and number of draws."""

import json
import re
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple, TypedDict, cast

import numpy as np

from .. import _store
from .._markdown import known
from ._data import apart
from ._score import Trials, score


class Row(TypedDict):
    """The figures of one posterior at one number of draws, as they are in `posteriors.json`."""

    posterior: str
    n: int
    dim: int
    blocks: int
    gain: dict[str, float]
    worst: str
    worst_gain: float
    calibration: float
    coverage: float
    count: int
    no_error: int
    refused: int
    reference_shift: float
    seconds: float
    first_seconds: float
    gains: dict[str, float]
    chosen: dict[str, int]
    provenance: dict[str, str | int]


class Saved(NamedTuple):
    """What `_measure` found for one posterior and number of draws."""

    about: dict
    start: np.ndarray
    value: np.ndarray
    mcse: np.ndarray
    plain_value: np.ndarray
    plain_mcse: np.ndarray


def read(path: Path) -> Saved:
    """Read what `_measure` saved."""
    about, arrays = _store.read(path)
    return Saved(about, *(arrays[name] for name in Saved._fields[1:]))


def make_row(posterior: str, n: int, found: Saved, references: Saved) -> Row:
    """Score the blocks of `n` draws by the estimates from the reference blocks apart from them."""
    reference, reference_mcse = _reference(found.start, n, references)
    trials = Trials(found.value, found.mcse, found.plain_value, reference, reference_mcse)
    names = found.about["names"]
    half = len(names) // 2
    groups = {"means": range(half), "squares": range(half, 2 * half)}
    figures = asdict(score(trials, names, groups))
    about = {key: found.about[key] for key in ("dim", "seconds", "first_seconds", "provenance")}
    figures["refused"] = found.about.get("refused", 0)
    figures["chosen"] = count_choices(found.about["chosen"])
    figures["reference_shift"] = _shift(references)
    return Row(posterior=posterior, n=n, blocks=len(found.start), **figures, **about)


def count_choices(chosen: list[list[str]]) -> dict[str, int]:
    """How often each sort of candidate led, its numbers left out."""
    sorts = (re.sub(r"\([^)]*median\).*|, mixed.*", "", one) for each in chosen for one in each)
    return dict(Counter(sorts).most_common())


def _reference(start: np.ndarray, n: int, found: Saved) -> tuple[np.ndarray, np.ndarray]:
    r"""For each block the average of $m$ estimates, and its error $\sqrt{\sum_j s_j^2} / m$."""
    masks = [apart(int(one), n) for one in start]
    values = [found.value[mask].mean(axis=0) for mask in masks]
    errors = [np.sqrt(np.sum(found.mcse[mask] ** 2, axis=0)) / mask.sum() for mask in masks]
    return np.stack(values), np.stack(errors)


def _shift(found: Saved) -> float:
    """How far our estimates are from plain averages, all draws used, in standard errors of these."""
    error = np.sqrt(np.sum(found.plain_mcse**2, axis=0)) / len(found.start)
    shift = found.value.mean(axis=0) - found.plain_value.mean(axis=0)
    moving = error > 0
    return float(np.sqrt(np.mean((shift[moving] / error[moving]) ** 2)))


def merge(old: list[Row], new: list[Row]) -> list[Row]:
    """New rows in the place of old ones of the same posterior and number of draws."""
    rows = {(row["posterior"], row["n"]): row for row in [*old, *new]}
    return [rows[key] for key in sorted(rows)]


def read_rows(path: Path) -> list[Row]:
    """The rows of an earlier run, if there was one."""
    return cast(list[Row], known(path.parent, path.stem))


def write_rows(path: Path, rows: list[Row], about: dict) -> None:
    """Write all figures as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n", encoding="utf-8")
    part.replace(path)
