"""A sign of life for anything that takes longer than two seconds; silent off a terminal."""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

PATIENCE = 2.0  # seconds before anything is shown
FORCED = frozenset(("FORCE_COLOR", "TTY_COMPATIBLE"))  # rich takes anything for a terminal then


class _Ticker:
    """Counts finished steps; draws nothing until `PATIENCE` seconds have passed."""

    def __init__(self, what: str, total: int | None, console: "Console"):
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = [SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()]
        if total is not None:
            columns.insert(2, BarColumn())
        self._bar = Progress(*columns, console=console, transient=True)
        self._task = self._bar.add_task(what, total=total)
        self._timer = threading.Timer(PATIENCE, self._bar.start)
        self._timer.daemon = True

    def start(self) -> None:
        self._timer.start()

    def advance(self) -> None:
        self._bar.advance(self._task)

    def stop(self) -> None:
        self._timer.cancel()
        self._timer.join()
        self._bar.stop()


class _Silence:
    """What stands in for the ticker when nobody watches."""

    def advance(self) -> None:
        """Count one finished step."""


@contextmanager
def progress(
    what: str, total: int | None = None, console: "Console | None" = None
) -> Iterator[_Ticker | _Silence]:
    """Show `what` is being done, and how many of `total` steps are, after two seconds.

    The bar is drawn by a thread of its own, so it moves while one compiled call runs.
    """
    if console is None and (sys.stderr.isatty() or not FORCED.isdisjoint(os.environ)):
        from rich.console import Console

        console = Console(stderr=True)
    if console is None or not console.is_terminal:
        yield _Silence()
        return
    ticker = _Ticker(what, total, console)
    ticker.start()
    try:
        yield ticker
    finally:
        ticker.stop()


__all__ = ["PATIENCE", "progress"]
