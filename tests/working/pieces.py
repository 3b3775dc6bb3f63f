"""Work that leaves a trace: each call writes its piece and its process to a log."""

import os
import signal
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np


class Moments(NamedTuple):
    place: int
    mean: np.ndarray
    parts: dict[str, np.ndarray]


class Logged:
    """A task on integers. The sums depend on the piece alone, so every engine gives the same bits."""

    def __init__(self, log: str | os.PathLike[str], seconds: float = 0.0):
        self.log = os.fspath(log)
        self.seconds = seconds

    def __call__(self, place: int) -> Moments:
        time.sleep(self.seconds)
        draws = np.random.default_rng(place).normal(size=(400, 5))
        result = Moments(place, draws.mean(0), {"gram": draws.T @ draws})
        with open(self.log, "a") as file:
            file.write(f"{place} {os.getpid()}\n")
        return result


class Murderous(Logged):
    """A piece that takes its worker down, as one does that outgrows the memory."""

    victim = 5

    def __call__(self, place: int) -> Moments:
        if place == self.victim:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__(place)


def calls(log: Path) -> list[tuple[int, int]]:
    """The pieces that were computed, with their processes."""
    if not log.exists():
        return []
    rows = (line.split() for line in log.read_text().splitlines())
    return [(int(place), int(process)) for place, process in rows]


def places(log: Path) -> list[int]:
    return [place for place, _ in calls(log)]


def kept(folder: Path) -> set[int]:
    return {int(path.stem) for path in folder.glob("*.kept")}


def assert_same(found: list[Moments], expected: list[Moments]) -> None:
    """Bit for bit."""
    assert [type(one) for one in found] == [type(one) for one in expected]
    assert [one.place for one in found] == [one.place for one in expected]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one.mean, other.mean)
        np.testing.assert_array_equal(one.parts["gram"], other.parts["gram"])
