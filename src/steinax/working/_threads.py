"""Pieces of work on the threads of this process, in order, a few at a time."""

import os
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice

from ._blas import one_blas_thread

IN_FLIGHT = 2  # pieces per thread: one is worked on, one waits


def usable_cores() -> int:
    """The cores that this process may use, which is less than the machine has if it is pinned.

    >>> usable_cores() >= 1
    True
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def default_threads() -> int:
    """One thread per usable core, if BLAS can be held to one thread in each; else one.

    Without threadpoolctl every thread would start as many BLAS threads as there are cores. Then
    one piece after the other, with BLAS on all cores, is faster and takes less memory.
    """
    try:
        import threadpoolctl  # noqa: F401
    except ModuleNotFoundError:
        return 1
    return usable_cores()


def on_threads[P, R](
    work: Callable[[int, P], R], pieces: Sequence[P], threads: int
) -> Generator[R, None, None]:
    """The results of `work(place, piece)` in the order of the pieces.

    With one thread this is a loop, and BLAS is left as it is.
    """
    if threads == 1:
        for place, piece in enumerate(pieces):
            yield work(place, piece)
        return
    with one_blas_thread(), ThreadPoolExecutor(threads, "steinax") as pool:
        waiting = ((place, piece) for place, piece in enumerate(pieces))
        flying: deque[Future[R]] = deque()
        try:
            for place, piece in islice(waiting, IN_FLIGHT * threads):
                flying.append(pool.submit(work, place, piece))
            while flying:
                yield flying.popleft().result()
                for place, piece in islice(waiting, 1):
                    flying.append(pool.submit(work, place, piece))
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


__all__ = ["default_threads", "on_threads", "usable_cores"]
