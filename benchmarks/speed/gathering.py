"""What handing out a piece of work costs: CPU seconds beside a bare loop, for each engine."""

import tempfile
import time
from typing import Any

import numpy as np
from dask.distributed import Client, LocalCluster

from steinax.working import gather

from .._pinned import best

PIECES = 500


def task(place: int) -> np.ndarray:
    """A result of 80 kB and next to no work."""
    return np.full(10_000, float(place))


def measure(rounds: int = 5) -> list[dict]:
    """Microseconds of this process per piece. A cluster's scheduler runs in it too."""
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        engines = {
            "bare loop": _bare,
            "loop": lambda: _exhaust(threads=1),
            "2 threads": lambda: _exhaust(threads=2),
            "2 processes of a cluster": lambda: _exhaust(client=client),
            "loop, written to disk": lambda: _kept(folder),
            "loop, read from disk": lambda: _exhaust(threads=1, keep=f"{folder}/read"),
        }
        found = best(rounds, **engines)
        return [_row(name, seconds, found["bare loop"]) for name, seconds in found.items()]


def _bare() -> None:
    for place in range(PIECES):
        task(place)


def _exhaust(**settings: Any) -> None:
    for _ in gather(task, range(PIECES), **settings):
        pass


def _kept(folder: str) -> None:
    _exhaust(threads=1, keep=f"{folder}/{time.monotonic_ns()}")


def _row(name: str, seconds: float, bare: float) -> dict:
    return {"engine": name, "microseconds per piece": 1e6 * (seconds - bare) / PIECES}
