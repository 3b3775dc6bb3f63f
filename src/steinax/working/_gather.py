"""Run a function on many pieces of work, on threads or on a cluster."""

import os
import pickle
import queue
import time
import uuid
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from itertools import islice
from typing import Any

from .._numerics import one_blas_thread
from .._require import require
from .._show import progress
from ._keeping import Kept, WorkerLostError

IN_FLIGHT = 3  # pieces per thread of a worker: one running, two waiting or in transfer
RETRIES = 2  # of a piece that raised an error, which may be one of the network
PATIENCE = 120.0  # seconds to wait without any worker; `dask.config.set({"steinax.patience": 600})`
POLL = 1.0  # seconds between checks of the workers while no result arrives


def on_cluster[P, R](
    task: Callable[[P], R], pieces: Sequence[P], client: Any, kept: Kept | None, what: str
) -> Generator[R, None, None]:
    """Yield `task(piece)` in the order of the pieces, and store each result when it arrives."""
    pool = _WorkerPool(client, task)
    arrived: dict[int, R] = {}
    sent = 0
    try:
        for index in range(len(pieces)):
            while sent < min(len(pieces), index + pool.window):
                try:
                    arrived[sent] = _load(kept, sent)
                except KeyError:
                    pool.send(sent, pieces[sent])
                sent += 1
            while index not in arrived:
                done = pool.next_arrival()
                if done is None:
                    continue
                try:
                    arrived[done] = pool.fetch(done)
                except Exception as error:
                    error.add_note(piece_note(done, pieces[done], len(pieces), what))
                    raise
                if kept is not None:
                    kept.store(done, arrived[done])
            yield arrived.pop(index)
    finally:
        pool.cancel()


def _load(kept: Kept | None, index: int) -> Any:
    if kept is None:
        raise KeyError(index)
    return kept.load(index)


class _WorkerPool:
    """The workers of a client, with one task that is sent to each of them once."""

    def __init__(self, client: Any, task: Callable):
        self._client = _checked(client)
        self._patience = require("dask", extra="dask").config.get("steinax.patience", PATIENCE)
        self._run = f"steinax-{uuid.uuid4().hex}"
        self._last_seen = time.monotonic()
        self._finished: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._futures: dict[int, Any] = {}
        self.window = IN_FLIGHT
        self._check_workers()
        self._task = self._ship(task)

    def send(self, index: int, piece: object) -> None:
        key = (self._run, index)  # apart from the task's key, or dask sends all to one worker
        try:
            future = self._client.submit(
                _call, self._task, piece, key=key, pure=False, retries=RETRIES
            )
        except Exception as error:
            if self._client.status in {"closing", "closed"}:
                raise _scheduler_lost() from error
            raise
        self._futures[index] = future
        future.add_done_callback(lambda _: self._finished.put(index))

    def next_arrival(self) -> int | None:
        """Wait for a finished piece and return its index, or None after `POLL` seconds."""
        try:
            return self._finished.get(timeout=POLL)
        except queue.Empty:
            self._check_workers()
            return None

    def fetch(self, index: int) -> Any:
        """Fetch a result from its worker; if the worker dies, another one computes it again."""
        future = self._futures.pop(index)
        killed = require("distributed", extra="dask").KilledWorker
        while True:
            try:
                return future.result(timeout=self._patience)
            except killed as error:
                raise WorkerLostError(
                    f"a piece was lost with its worker {error.allowed_failures + 1} times. It may "
                    "need more memory than a worker has: give workers more, or make chunks smaller."
                ) from error
            except CancelledError as error:
                raise _scheduler_lost() from error
            except TimeoutError:
                if future.status == "error":  # raised by the task itself
                    raise
                self._check_workers()

    def cancel(self) -> None:
        """Cancel all pieces that have not started."""
        if self._client.status == "running":
            self._client.cancel([*self._futures.values(), self._task])
        self._futures.clear()

    def _check_workers(self) -> None:
        try:
            threads = sum(self._client.nthreads().values())
        except (OSError, TypeError):  # the scheduler does not answer
            threads = 0
        if threads:
            self._last_seen = time.monotonic()
            self.window = IN_FLIGHT * threads
        elif time.monotonic() - self._last_seen > self._patience:
            raise WorkerLostError(
                f"the cluster has had no worker for {self._patience:g} seconds: start workers and "
                "call again. With `keep`, only what is missing is computed."
            )

    def _ship(self, task: Callable) -> Any:
        """Send the task as a future, which dask, unlike scattered data, can compute again."""
        config = require("dask", extra="dask").config
        pickled = require("distributed.protocol.pickle", extra="dask").dumps(task)
        with config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"}):
            return self._client.submit(pickle.loads, pickled, key=f"task-{self._run}", pure=False)


def _call[P, R](task: Callable[[P], R], piece: P) -> R:
    return task(piece)


def _scheduler_lost() -> WorkerLostError:
    return WorkerLostError(
        "the scheduler of the cluster is gone, or has cancelled the work: start it and call again. "
        "With `keep`, only what is missing is computed."
    )


def _checked(client: Any) -> Any:
    if not isinstance(client, require("distributed", extra="dask").Client):
        raise TypeError(
            f"client is a {type(client).__name__}: give a dask.distributed.Client, such as "
            "Client(cluster) or Client('tcp://address:8786')."
        )
    if client.asynchronous:
        raise TypeError("client is asynchronous: make it with Client(..., asynchronous=False).")
    return client


def piece_note(index: int, piece: object, total: int, what: str) -> str:
    """Describe a piece in one line, for `add_note`.

    >>> piece_note(3, slice(30, 40), 10, "streaming")
    'streaming: piece 3 of 10 (from 0), slice(30, 40, None)'
    """
    return f"{what or 'working'}: piece {index} of {total} (from 0), {repr(piece)[:200]}"


THREADED = 2  # pieces per thread: one running, one waiting


def usable_cores() -> int:
    """Count the cores that this process may use: fewer than the machine has if it is pinned.

    >>> usable_cores() >= 1
    True
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def on_threads[P, R](
    work: Callable[[int, P], R], pieces: Sequence[P], threads: int
) -> Generator[R, None, None]:
    """Yield `work(index, piece)` in the order of the pieces.

    With one thread this is a loop, and the threads of BLAS are not limited.
    """
    if threads == 1:
        for index, piece in enumerate(pieces):
            yield work(index, piece)
        return
    with one_blas_thread(), ThreadPoolExecutor(threads, "steinax") as pool:
        waiting = enumerate(pieces)
        futures: deque[Future[R]] = deque()
        try:
            for index, piece in islice(waiting, THREADED * threads):
                futures.append(pool.submit(work, index, piece))
            while futures:
                yield futures.popleft().result()
                for index, piece in islice(waiting, 1):
                    futures.append(pool.submit(work, index, piece))
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
    """Yield the results of `task` on each piece, in order, with a bounded number in flight.

    Nothing starts before the first result is requested. An error in a piece stops the remaining ones,
    and a note on it names the piece; `close()` on the generator stops them too. `task` has to enter
    `precision(np.float64)` itself: a scope of jax applies to its own thread only.

    Args:
        task: called with one piece at a time, on several threads at once. With a client it is
            pickled and sent to each worker once.
        pieces: arguments of `task`. With a client each is pickled, so give indices instead of data.
        client: a `dask.distributed.Client`; without one, the threads of this process do the work.
        threads: their number, without a client; 1 is a plain loop. By default one for each core this
            process may use, each with one BLAS thread.
        keep: a folder for finished results. A run that was stopped and is started again with the
            same folder computes only what is missing. One run at a time may use a folder.
        label: identifies this run among those with as many pieces: a text that changes whenever a
            result would.
        what: shown with the progress bar and in errors. An empty text shows no bar.

    >>> list(gather(lambda x: x * x, [1, 2, 3], threads=2))
    [1, 4, 9]
    """
    if threads is not None and threads < 1:
        raise ValueError(f"threads = {threads}: give 1 or more, or leave it out for all cores.")
    kept = None if keep is None else Kept(keep, label, len(pieces))
    if client is not None:
        results = on_cluster(task, pieces, client, kept, what)
    else:
        threads = min(threads or usable_cores(), max(len(pieces), 1))
        results = on_threads(_resumed(_named(task, len(pieces), what), kept), pieces, threads)
    return _watched(results, len(pieces), what)


def _named[P, R](task: Callable[[P], R], total: int, what: str) -> Callable[[int, P], R]:
    def work(index: int, piece: P) -> R:
        try:
            return task(piece)
        except Exception as error:
            error.add_note(piece_note(index, piece, total, what))
            raise

    return work


def _resumed[P, R](work: Callable[[int, P], R], kept: Kept | None) -> Callable[[int, P], R]:
    if kept is None:
        return work

    def resumed(index: int, piece: P) -> R:
        with suppress(KeyError):
            return kept.load(index)
        result = work(index, piece)
        kept.store(index, result)
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
