"""One measurement of a store, in a process that does nothing else: seconds, CPU seconds, memory."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import steinax as sx
from steinax.solvers._streaming import Working, first_pass

from .._pinned import peak_megabytes


def measure(store: str, what: tuple[str, ...], rounds: int = 1, warm: bool = True) -> list[dict]:
    """The least times of some of the functions below, called in turn; the memory is that of all.

    Args:
        store: of draws and scores.
        what: names of functions.
        rounds: how often each is called.
        warm: whether each is called once before that.
    """
    calls = {name: CALLS[name](store) for name in what}
    for call in calls.values() if warm else ():
        call()
    seconds, cpu = (dict.fromkeys(what, float("inf")) for _ in range(2))
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter(), time.process_time()
            call()
            seconds[name] = min(seconds[name], time.perf_counter() - start[0])
            cpu[name] = min(cpu[name], time.process_time() - start[1])
    peak = peak_megabytes()
    return [{"seconds": seconds[name], "cpu": cpu[name], "megabytes": peak} for name in what]


def bare(store: str) -> Callable[[], object]:
    """NumPy's X'X of all draws in memory, BLAS on all cores that this process has."""
    import zarr

    draws: Any = zarr.open_group(store, mode="r")["draws"]
    x = np.ascontiguousarray(draws[:]).reshape(-1, draws.shape[-1])
    return lambda: x.T @ x


def moments(store: str) -> Callable[[], object]:
    """The means and centred products of all draws, read from disk."""
    stream = sx.from_zarr(store)
    return lambda: first_pass(stream, Working())


def linear(store: str) -> Callable[[], object]:
    """A whole estimate, three passes, with as many features as dimensions; compiled beforehand."""
    stream = sx.from_zarr(store)
    sx.estimate(_square, beginning(stream), sx.Polynomial(1))
    return lambda: sx.estimate(_square, stream, sx.Polynomial(1))


def quadratic(store: str) -> Callable[[], object]:
    """A whole estimate of three integrands by polynomials of degree 2."""
    f = {"cube": lambda x: x[0] ** 3, "product": lambda x: x[1] * x[2], "size": _size}
    stream = sx.from_zarr(store)
    return lambda: sx.estimate(f, stream, sx.Polynomial(2))


def beginning(stream: sx.Stream) -> sx.Stream:
    """The first draws of each chain, which take the same compilations."""
    assert stream.source is not None
    return sx.Stream.from_arrays(
        *(one[:, :2000] for one in (stream.source.draws, stream.source.scores))
    )


def _square(x):
    return x[0] ** 2


def _size(x):
    return abs(x).sum()


CALLS = {"bare": bare, "moments": moments, "linear": linear, "quadratic": quadratic}
