"""Pieces of work on the workers of a dask cluster, in order; workers may die on the way."""

import pickle
import queue
import time
import uuid
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import CancelledError
from typing import Any

from .._require import require
from ._gather import piece_note
from ._keeping import Kept, WorkerLostError

IN_FLIGHT = 3  # pieces per thread of a worker: one is worked on, two wait or travel
RETRIES = 2  # of a piece that raised an error, which may have been the network's
PATIENCE = 120.0  # seconds without any worker; `dask.config.set({"steinax.patience": 600})`
GLANCE = 1.0  # seconds between looks at the workers while nothing arrives


def on_cluster[P, R](
    task: Callable[[P], R], pieces: Sequence[P], client: Any, kept: Kept | None, what: str
) -> Generator[R, None, None]:
    """The results of `task(piece)` in the order of the pieces; a result is kept when it arrives."""
    crew = _Crew(client, task)
    arrived: dict[int, R] = {}
    sent = 0
    try:
        for place in range(len(pieces)):
            while sent < min(len(pieces), place + crew.window):
                try:
                    arrived[sent] = _load(kept, sent)
                except KeyError:
                    crew.send(sent, pieces[sent])
                sent += 1
            while place not in arrived:
                found = crew.next_arrival()
                if found is None:
                    continue
                try:
                    arrived[found] = crew.fetch(found)
                except Exception as error:
                    error.add_note(piece_note(found, pieces[found], len(pieces), what))
                    raise
                if kept is not None:
                    kept.store(found, arrived[found])
            yield arrived.pop(place)
    finally:
        crew.dismiss()


def _load(kept: Kept | None, place: int) -> Any:
    if kept is None:
        raise KeyError(place)
    return kept.load(place)


class _Crew:
    """The workers of a client, with one task that each of them gets once."""

    def __init__(self, client: Any, task: Callable):
        self._client = _checked(client)
        self._patience = require("dask", extra="dask").config.get("steinax.patience", PATIENCE)
        self._run = f"steinax-{uuid.uuid4().hex}"
        self._seen = time.monotonic()
        self._finished: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._flying: dict[int, Any] = {}
        self.window = IN_FLIGHT
        self._look()
        self._task = self._ship(task)

    def send(self, place: int, piece: object) -> None:
        key = (self._run, place)  # a group without the task in it, or one worker gets them all
        try:
            future = self._client.submit(
                _call, self._task, piece, key=key, pure=False, retries=RETRIES
            )
        except Exception as error:
            if self._client.status in {"closing", "closed"}:
                raise _scheduler_lost() from error
            raise
        self._flying[place] = future
        future.add_done_callback(lambda _: self._finished.put(place))

    def next_arrival(self) -> int | None:
        """The place of a piece that is done, or None after a glance at the workers."""
        try:
            return self._finished.get(timeout=GLANCE)
        except queue.Empty:
            self._look()
            return None

    def fetch(self, place: int) -> Any:
        """A result, brought here; its worker may die meanwhile, and another one computes it."""
        future = self._flying.pop(place)
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
                if future.status == "error":  # the task's own
                    raise
                self._look()

    def dismiss(self) -> None:
        """Nothing more is wanted: what has not begun is cancelled."""
        if self._client.status == "running":
            self._client.cancel([*self._flying.values(), self._task])
        self._flying.clear()

    def _look(self) -> None:
        try:
            threads = sum(self._client.nthreads().values())
        except (OSError, TypeError):  # the scheduler does not answer
            threads = 0
        if threads:
            self._seen = time.monotonic()
            self.window = IN_FLIGHT * threads
        elif time.monotonic() - self._seen > self._patience:
            raise WorkerLostError(
                f"the cluster has had no worker for {self._patience:g} seconds: start workers and "
                "call again. With `keep`, only what is missing is computed."
            )

    def _ship(self, task: Callable) -> Any:
        """The task as a result that workers pass on; unlike scattered data it can be made again."""
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


__all__ = ["on_cluster"]
