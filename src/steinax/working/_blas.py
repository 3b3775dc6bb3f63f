"""BLAS on one thread, while threads of ours do the work beside each other."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


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


__all__ = ["one_blas_thread"]
