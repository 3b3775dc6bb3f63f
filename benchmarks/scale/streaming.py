"""Draws from disk: against the bare product in memory, on one worker and two, and as they grow."""

import tempfile
import time
from pathlib import Path

import numpy as np

import steinax as sx

from .._pinned import run
from ._data import write_store

DIM = 256
GROWTH = (10_000, 100_000, 1_000_000, 10_000_000)
RATIO, MEMORY, WORKERS, EQUAL = 1.6, 1000.0, 0.6, 1e-9  # at most


def measure(megabytes: float = 4000.0, only: str | None = None, rounds: int = 2) -> list[dict]:
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
    found = {
        what: run("scale._streamed", {"store": str(store), "what": what, "rounds": rounds}, False)[
            0
        ]
        for what in ("bare", "moments", "linear")
    }
    bare, rows = found["bare"], []
    for what, at_most in (("moments", RATIO), ("linear", None)):
        one = found[what]
        told = f"{one['seconds']:.2f} s and {one['cpu']:.2f} s of CPU against "
        told += f"{bare['seconds']:.2f} and {bare['cpu']:.2f}"
        piece = f"{what} from zarr, p = {DIM} / bare X'X in memory"
        rows.append(_row(f"{piece}, time", one["seconds"] / bare["seconds"], at_most, told))
        rows.append(_row(f"{piece}, CPU time", one["cpu"] / bare["cpu"], at_most, told))
        rows.append(_row(f"{what} from zarr, MB of memory", one["megabytes"], MEMORY, ""))
    return rows


def _workers(store: Path, rounds: int) -> list[dict]:
    from distributed import Client, LocalCluster

    stream, found = sx.from_zarr(store), []
    for count in (1, 2):
        settings = {"n_workers": count, "threads_per_worker": 1, "dashboard_address": None}
        with LocalCluster(**settings) as cluster, Client(cluster) as client:
            seconds = float("inf")
            for _ in range(rounds + 1):  # the first compiles
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
        settings = {"store": str(store), "what": "quadratic", "rounds": rounds}
        one = run("scale._streamed", settings, False)[0]
        cpu.append(one["cpu"])
        told = f"{one['seconds']:.2f} s, {one['megabytes']:.0f} MB"
        rows.append(
            _row(f"{n} draws, d = 5, degree 2, 3 integrands, CPU s", one["cpu"], None, told)
        )
    if len(sizes) > 1:
        exponent = float(np.polyfit(np.log(sizes[-2:]), np.log(cpu[-2:]), 1)[0])
        rows.append(_row("exponent of CPU time in n, the last two sizes", exponent, None, ""))
    return rows
