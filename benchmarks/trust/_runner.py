"""Replicates in rounds, on several cores, kept as they come.

All cells get their first round of replicates, then all their second, so that a run that is stopped
leaves an even table. Every round of a cell is one file, below a folder that is named after
the source that was measured; what is there is not measured again, so that a run goes on where it was
stopped, and 200 replicates can be made 2,000 later.
"""

import hashlib
import importlib
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from .. import _pinned
from .._programs import keep_programs
from .._provenance import source
from .._store import read, save

ROUND = 100
BESIDE = {
    "coverage": "_samplers",
    "catalogue": "_catalogued",
    "unadjusted": "_unadjusted",
    "stopping": "_stopped",
}
type Arrays = dict[str, np.ndarray]


def folder(cache: Path, kind: str) -> Path:
    """Where the replicates of this source are kept: steinax's, and that of the benchmark itself."""
    digest = hashlib.sha256()
    here = Path(__file__).parent
    measuring = [here / f"{name}.py" for name in (BESIDE[kind], f"_{kind}_replicate")]
    for path in sorted([*(here.parent / "problems").rglob("*.py"), *measuring]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return cache.resolve() / kind / f"{source()}-{digest.hexdigest()[:6]}"


def collect(
    kind: str, cells: Sequence[str], replicates: int, cache: Path, workers: int
) -> dict[str, Arrays]:
    """The arrays of every cell, (replicate, ...), measured where they are not kept yet.

    Without workers nothing is measured, and cells of which nothing is kept are left out.
    """
    where = folder(cache, kind)
    settings = {
        "kind": kind,
        "cells": list(cells),
        "replicates": replicates,
        "folder": str(where),
        "workers": workers,
    }
    with ThreadPoolExecutor(max(workers, 1)) as pool:
        runs = [
            pool.submit(_pinned.run, "trust._runner", settings | {"worker": w}, core=w)
            for w in range(workers)
        ]
        for run in runs:
            run.result()
    some = [cell for cell in cells if workers or _path(where, cell, 0).exists()]
    return {cell: kept(where, cell, replicates) for cell in some}


def kept(where: Path, cell: str, replicates: int) -> Arrays:
    """All replicates of a cell that are kept, up to `replicates`."""
    parts = [
        {name: array[: replicates - start] for name, array in read(path)[1].items()}
        for start in range(0, replicates, ROUND)
        if (path := _path(where, cell, start)).exists()
    ]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def measure(
    kind: str, cells: list[str], replicates: int, folder: str, worker: int, workers: int
) -> list[dict]:
    """One worker's part of all rounds."""
    keep_programs()
    replicate = importlib.import_module(f"benchmarks.trust._{kind}_replicate").replicate
    tasks = [(start, cell) for start in range(0, replicates, ROUND) for cell in cells]
    for start, cell in tasks[worker::workers]:
        stop = min(start + ROUND, replicates)
        path = _path(Path(folder), cell, start)
        arrays = read(path)[1] if path.exists() else {}
        done = start + (len(next(iter(arrays.values()))) if arrays else 0)
        if done >= stop:
            continue
        new = replicate(cell, np.arange(done, stop))
        if arrays:
            new = {name: np.concatenate([arrays[name], new[name]]) for name in new}
        save(path, {"cell": cell}, new)
        print(f"{cell}: {done} to {stop}", file=sys.stderr, flush=True)
    return []


def _path(where: Path, cell: str, start: int) -> Path:
    slug = "".join(c if c.isalnum() or c in "-.+" else "_" for c in cell)
    return where / slug / f"{start:05d}.npz"
