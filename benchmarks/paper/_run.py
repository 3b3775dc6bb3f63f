"""Repetitions on all cores, kept as they come: one line of JSON each, and none is measured twice."""

import json
import multiprocessing
import os
import resource
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import numpy as np

from .._pinned import ONE_THREAD, pin
from .._programs import keep_programs
from .._provenance import provenance, source
from ._experiment import Cell, Row, experiment
from ._tuning import coarse

KEPT_FIELDS = ("cell", "repetition", "seconds", "tuning", "extra", "source")


def run(
    wanted: Mapping[str, tuple[list[Cell], int]], results: Path, workers: int, quick: bool
) -> None:
    """Measure what is not kept yet of this source, each cell on one core with all its repetitions.

    Args:
        wanted: the cells of each experiment, by its name, and the most repetitions of each.
        results: the folder of the results.
        workers: how many processes, each on a core of its own.
        quick: whether sizes are small and times are not read.
    """
    results.mkdir(parents=True, exist_ok=True)
    tasks = {name: _missing(name, *of, results) for name, of in wanted.items()}
    tasks = {name: of for name, of in tasks.items() if of}
    if not tasks:
        return
    began, before = time.monotonic(), _cpu_of_workers()
    os.environ.update(ONE_THREAD)  # new processes inherit it, before they import jax
    context = multiprocessing.get_context("spawn")
    cores = context.Queue()
    for core in range(workers):
        cores.put(core)
    with ProcessPoolExecutor(workers, context, initializer=_start, initargs=(cores,)) as pool:
        ready = {name: pool.submit(_prepare, name, quick) for name in tasks}
        waiting = {}
        for name, of in tasks.items():
            ready[name].result()
            path = str(_path(results, name))
            waiting |= {pool.submit(_measure, name, *task, path, quick): name for task in of}
        for done, future in enumerate(as_completed(waiting), start=1):
            where = f"{waiting[future]}, {done} of {len(waiting)}"
            print(f"{where}: {future.result()}", file=sys.stderr, flush=True)
    took, used = time.monotonic() - began, _cpu_of_workers() - before
    print(f"{took:.0f} s, {used:.0f} CPU s of {workers} workers", file=sys.stderr, flush=True)


def _cpu_of_workers() -> float:
    """The CPU seconds of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _missing(
    name: str, cells: list[Cell], repetitions: int, results: Path
) -> list[tuple[Cell, list[int]]]:
    """Return the cells of an experiment with the repetitions that are not kept yet of this source."""
    now = source()
    kept = {
        _key(row.cell, row.repetition) for row in _rows(_path(results, name)) if row.source == now
    }
    found = []
    for cell in cells:
        most = min(repetitions, cell.get("repetitions", repetitions))
        missing = [r for r in range(most) if _key(cell, r) not in kept]
        if missing:
            found.append((cell, missing))
    return found


def kept_rows(name: str, cells: list[Cell], repetitions: int, results: Path) -> list[Row]:
    """The rows of some cells that are kept, up to a number of repetitions, each as it was measured last."""
    wanted = {_key(cell, r) for cell in cells for r in range(repetitions)}
    found = {_key(row.cell, row.repetition): row for row in _rows(_path(results, name))}
    return [row for key, row in found.items() if key in wanted]


def _start(cores: "multiprocessing.Queue[int]") -> None:
    pin(cores.get())
    keep_programs()
    provenance()  # of the source as it is now


def _prepare(name: str, quick: bool) -> None:
    experiment(name).prepare(quick)


def _measure(name: str, cell: Cell, repetitions: list[int], path: str, quick: bool) -> str:
    """All missing repetitions of a cell; the first is run twice, once for jax to compile.

    But for cells of few repetitions, which are slow ones: there compilation is a small part. And not in
    a quick run, whose times nobody reads.
    """
    measure, about = experiment(name).measure, provenance()
    if quick:
        coarse()
    if "repetitions" not in cell and not quick:
        measure(cell, repetitions[0])
    parent = multiprocessing.parent_process()
    for repetition in repetitions:
        if parent is not None and not parent.is_alive():  # the run was stopped
            break
        result = measure(cell, repetition)
        line = {
            "cell": cell,
            "repetition": repetition,
            "error": [float(one) for one in np.atleast_1d(result.error)],
            "seconds": result.seconds,
            "tuning": result.tuning,
            "extra": result.extra or {},
            **about,
        }
        _append(path, json.dumps(line) + "\n")
    return " ".join(f"{key}={value}" for key, value in cell.items())


def _append(path: str, line: str) -> None:
    """In one write, so that lines of several processes do not mix."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)


def _path(results: Path, name: str) -> Path:
    return results / f"{name}.jsonl"


def _rows(path: Path) -> Iterator[Row]:
    """Every whole line; a run that was stopped may have left a part of one."""
    if not path.exists():
        return
    for text in path.read_text(encoding="utf-8").splitlines():
        try:
            line = json.loads(text)
        except json.JSONDecodeError:
            continue
        error = np.array(line.pop("error"))
        yield Row(error=error, **{name: line[name] for name in KEPT_FIELDS})


def _key(cell: Cell, repetition: int) -> str:
    return json.dumps([sorted(cell.items()), repetition])
