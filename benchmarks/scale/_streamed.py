"""One measurement of a store, in a process that does nothing else: seconds, CPU seconds, memory."""

import time
from collections.abc import Callable

import numpy as np

import steinax as sx
from steinax.estimation._stream_coordinates import first_pass
from steinax.estimation._stream_runs import Working

from .._pinned import peak_megabytes


def measure(store: str, what: str, rounds: int = 1) -> list[dict]:
    """The least times of `what`, which is a function below, after one call that compiles."""
    call = CALLS[what](store)
    seconds, cpu = float("inf"), float("inf")
    for _ in range(rounds):
        start = time.perf_counter(), time.process_time()
        call()
        seconds = min(seconds, time.perf_counter() - start[0])
        cpu = min(cpu, time.process_time() - start[1])
    return [{"seconds": seconds, "cpu": cpu, "megabytes": peak_megabytes()}]


def bare(store: str) -> Callable[[], object]:
    """NumPy's X'X of all draws in memory, BLAS on all cores."""
    import zarr

    x = zarr.open_group(store, mode="r")["draws"][:].reshape(-1, sx.from_zarr(store).source.dim)
    return lambda: x.T @ x


def moments(store: str) -> Callable[[], object]:
    """The means and centred products of all draws, read from disk."""
    stream = sx.from_zarr(store)
    return lambda: first_pass(stream, Working())


def linear(store: str) -> Callable[[], object]:
    """A whole estimate, three passes, with as many features as dimensions."""
    stream = sx.from_zarr(store)
    some = sx.Stream.from_arrays(
        *(one[:, :2000] for one in (stream.source.draws, stream.source.scores))
    )
    sx.estimate(lambda x: x[0] ** 2, some, sx.Polynomial(1))
    return lambda: sx.estimate(lambda x: x[0] ** 2, stream, sx.Polynomial(1))


def quadratic(store: str) -> Callable[[], object]:
    """A whole estimate of three integrands by polynomials of degree 2."""

    def f(x):
        return np.ones(3) * x[0] ** 3

    stream = sx.from_zarr(store)
    sx.estimate(f, stream, sx.Polynomial(2))
    return lambda: sx.estimate(f, stream, sx.Polynomial(2))


CALLS = {"bare": bare, "moments": moments, "linear": linear, "quadratic": quadratic}
