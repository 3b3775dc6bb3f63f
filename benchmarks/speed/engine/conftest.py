"""What every piece is measured by."""

import time
from collections.abc import Callable
from typing import Protocol

import pytest


class Ratio(Protocol):
    """Takes the CPU time of a piece over that of the bare operations."""

    def __call__(
        self,
        ours: Callable[[], object],
        bare: Callable[[], object],
        at_most: float,
        rounds: int = 10,
    ) -> float:
        """The least time of `ours` over the least time of `bare`, each called `rounds` times.

        Both are called in turns, so that what else the machine does falls on both. What they give
        must have been computed when they return (`jax.block_until_ready`).
        """
        ...


@pytest.fixture
def ratio(benchmark) -> Ratio:
    """Measure a piece; the figures go into the benchmark's `extra_info`."""

    def measure(
        ours: Callable[[], object],
        bare: Callable[[], object],
        at_most: float,
        rounds: int = 10,
    ) -> float:
        times = []

        def take_bare_time() -> None:
            start = time.process_time()
            bare()
            times.append(time.process_time() - start)

        for call in (ours, bare):  # compiles
            call()
        benchmark.pedantic(ours, setup=take_bare_time, rounds=rounds)
        found = benchmark.stats.stats.min / min(times)
        benchmark.extra_info |= {"bare": min(times), "ratio": found, "at_most": at_most}
        return found

    return measure
