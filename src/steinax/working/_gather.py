"""Work on many pieces: by threads or by a cluster."""

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Any

from .._progress import progress
from ._keeping import Kept


def piece_note(place: int, piece: object, total: int, what: str) -> str:
    """One line for `add_note`.

    >>> piece_note(3, slice(30, 40), 10, "streaming")
    'streaming: piece 3 of 10 (from 0), slice(30, 40, None)'
    """
    return f"{what or 'working'}: piece {place} of {total} (from 0), {repr(piece)[:200]}"


class _Limit:
    """The first to come sets the limit and the last to go lifts it, in whatever order they go."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._limits: Any = None

    def enter(self) -> None:
        try:
            from threadpoolctl import threadpool_limits
        except ModuleNotFoundError:
            return
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._limits = threadpool_limits(1, user_api="blas")

    def leave(self) -> None:
        with self._lock:
            self._users = max(0, self._users - 1)
            if self._users == 0 and self._limits is not None:
                self._limits.restore_original_limits()
                self._limits = None


_LIMIT = _Limit()  # of the process, as are the threads of BLAS


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread in this process, if threadpoolctl is installed.

    >>> with one_blas_thread():
    ...     pass
    """
    _LIMIT.enter()
    try:
        yield
    finally:
        _LIMIT.leave()


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
        waiting = enumerate(pieces)
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


def gather[P, R](
    task: Callable[[P], R],
    pieces: Sequence[P],
    *,
    client: Any = None,
    threads: int | None = None,
    keep: str | os.PathLike[str] | None = None,
    label: str = "",
    what: str = "working",
) -> Generator[R, None, None]:
    """The results of `task` on each piece, in the order of the pieces, a bounded number in flight.

    Nothing starts before the first result is asked for. An error in a piece stops the rest, and a
    note on it names the piece; `close()` on what is returned stops them too. `task` has to enter
    `precision(np.float64)` itself: a scope of jax holds for its own thread only.

    Args:
        task: called with one piece at a time, on several threads at once. With a client it is
            pickled, and sent to each worker once.
        pieces: what to work on. With a client each piece is pickled, so give places and not data.
        client: a `dask.distributed.Client`; without one, the threads of this process do the work.
        threads: how many, without a client; 1 is a plain loop. By default one for each core this
            process may use, each with one BLAS thread, or 1 where threadpoolctl is not installed.
        keep: a folder for finished results. A run that was stopped and is started again with the
            same folder computes only what is missing. One run at a time may use a folder.
        label: what tells this run from others with the same number of pieces: a text that changes
            whenever a result would.
        what: said beside the progress bar, and in errors. An empty text shows no bar.

    >>> list(gather(lambda x: x * x, [1, 2, 3], threads=2))
    [1, 4, 9]
    """
    if threads is not None and threads < 1:
        raise ValueError(f"threads = {threads}: give 1 or more, or leave it out for all cores.")
    kept = None if keep is None else Kept(keep, label, len(pieces))
    if client is not None:
        from ._cluster import on_cluster

        results = on_cluster(task, pieces, client, kept, what)
    else:
        threads = min(threads or default_threads(), max(len(pieces), 1))
        results = on_threads(_resumed(_named(task, len(pieces), what), kept), pieces, threads)
    return _watched(results, len(pieces), what)


def _named[P, R](task: Callable[[P], R], total: int, what: str) -> Callable[[int, P], R]:
    def work(place: int, piece: P) -> R:
        try:
            return task(piece)
        except Exception as error:
            error.add_note(piece_note(place, piece, total, what))
            raise

    return work


def _resumed[P, R](work: Callable[[int, P], R], kept: Kept | None) -> Callable[[int, P], R]:
    if kept is None:
        return work

    def resumed(place: int, piece: P) -> R:
        with suppress(KeyError):
            return kept.load(place)
        result = work(place, piece)
        kept.store(place, result)
        return result

    return resumed


def _watched[R](
    results: Generator[R, None, None], total: int, what: str
) -> Generator[R, None, None]:
    if not what:
        yield from results
        return
    with progress(what, total) as ticker:
        for result in results:
            ticker.advance()
            yield result
