"""Draws from disk: against the bare product in memory, on one worker and two, and as they grow."""

import tempfile
import time
from pathlib import Path

import numpy as np

import steinax as sx

from .._pinned import ONE_THREAD, run
from ._data import write_store
from ._growth import exponent
from ._streamed import beginning

DIM = 256
GROWTH = (10_000, 100_000, 1_000_000, 10_000_000)
LONG = 10_000_000  # draws: timed once
RATIO, MEMORY, WORKERS, EQUAL = 1.6, 1000.0, 0.6, 1e-9  # at most


def measure(megabytes: float = 4000.0, only: str | None = None, rounds: int = 3) -> list[dict]:
    """Rows of figures; sizes are of the draws alone, and their scores take as much again."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="steinax-scale-") as folder:
        if only in (None, "moments", "workers"):
            store = Path(folder, "wide.zarr")
            write_store(store, int(megabytes * 1e6 / (8 * DIM)) // 4 * 4, DIM)
            rows += _against_bare(store, rounds) if only in (None, "moments") else []
            rows += _workers(store, rounds) if only in (None, "workers") else []
        if only in (None, "growth"):
            rows += _growth(Path(folder), [n for n in GROWTH if 40 * n <= megabytes * 1e6], rounds)
    return rows


def _row(piece: str, figure: float, at_most: float | None, detail: str) -> dict:
    reached = None if at_most is None else "yes" if figure <= at_most else "no"
    return {
        "piece": piece,
        "figure": figure,
        "at most": at_most,
        "reached": reached,
        "detail": detail,
    }


def _against_bare(store: Path, rounds: int) -> list[dict]:
    """In turn in one process: in seconds on all cores, and in CPU seconds on one; memory by itself."""
    parts = {"moments": ("moments", RATIO), "linear": ("whole estimate", None)}
    rows = []
    for what, (piece, at_most) in parts.items():
        settings = {"store": str(store), "what": ("bare", what), "rounds": rounds}
        if what == "linear":  # compiled on a part of the draws
            settings |= {"rounds": 1, "warm": False}
        name = f"{piece} from zarr, p = {DIM} / bare X'X in memory"
        for cores, one_core, unit in (("all cores", False, "seconds"), ("one core", True, "cpu")):
            bare, one = (row[unit] for row in run("scale._streamed", settings, one_core))
            told = f"{one:.2f} s against {bare:.2f} s"
            clock = "time" if unit == "seconds" else "CPU time"
            rows.append(_row(f"{name}, {clock}, {cores}", one / bare, at_most, told))
        alone = settings | {"what": (what,), "rounds": 1, "warm": False}
        (one,) = run("scale._streamed", alone, False)
        rows.append(_row(f"{piece} from zarr, MB of memory", one["megabytes"], MEMORY, ""))
    return rows


def _workers(store: Path, rounds: int) -> list[dict]:
    """A worker is one core: dask holds BLAS to one thread in each, and XLA is told the same."""
    from distributed import Client, LocalCluster

    stream, found = sx.from_zarr(store), []
    settings = {"threads_per_worker": 1, "dashboard_address": None, "env": ONE_THREAD}
    for count in (1, 2):
        with LocalCluster(n_workers=count, **settings) as cluster, Client(cluster) as client:
            seconds, some = float("inf"), beginning(stream)  # which compiles
            got = sx.estimate(_third_power, some, sx.Polynomial(1), client=client)
            for _ in range(max(rounds - 1, 1)):
                start = time.perf_counter()
                got = sx.estimate(_third_power, stream, sx.Polynomial(1), client=client)
                seconds = min(seconds, time.perf_counter() - start)
            found.append((seconds, np.r_[got.value, got.mcse]))
    (one, left), (two, right) = found
    apart = float(np.max(np.abs(left - right) / np.abs(left)))
    told = f"{two:.2f} s against {one:.2f} s"
    return [
        _row("two dask workers / one, time", two / one, WORKERS, told),
        _row("two dask workers - one, relative", apart, EQUAL, "value and mcse"),
    ]


def _third_power(x):
    return x[0] ** 3


def _growth(folder: Path, sizes: list[int], rounds: int) -> list[dict]:
    rows, cpu = [], []
    for n in sizes:
        store = folder / f"{n}.zarr"
        write_store(store, n, 5)
        often = rounds if n < LONG else 1
        settings = {"store": str(store), "what": ("quadratic",), "rounds": often}
        one = run("scale._streamed", settings, False)[0]
        cpu.append(one["cpu"])
        told = f"{one['seconds']:.2f} s, {one['megabytes']:.0f} MB"
        piece = f"{n} draws, d = 5, degree 2, 3 integrands, CPU s"
        rows.append(_row(piece, one["cpu"], None, told))
    if len(sizes) > 1:
        told = f"beyond the CPU s of {sizes[0]} draws, from the two largest sizes"
        rows.append(
            _row("exponent of CPU time in n", exponent([float(n) for n in sizes], cpu), None, told)
        )
    return rows
