"""One call for many pieces of work: on threads or on a cluster, kept on disk or not."""

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from typing import Any

from .._progress import progress
from ._keeping import Kept
from ._notes import piece_note
from ._threads import default_threads, on_threads


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


__all__ = ["gather"]
