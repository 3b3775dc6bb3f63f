"""How many files a call runs through: a reader follows it without opening more."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import steinax as sx

ROOT = os.path.dirname(sx.__file__)
X = np.random.default_rng(0).normal(size=(4, 250, 3))
SAMPLE = sx.Sample(X, -X)
CALLS: dict[str, tuple[Callable[[], object], int]] = {
    "choice": (lambda: sx.estimate("x", SAMPLE), 25),
    "search": (lambda: sx.estimate({"f": np.sin(X)}, SAMPLE), 26),
    "polynomial": (lambda: sx.estimate("x", SAMPLE, sx.Polynomial(2)), 22),
    "fit": (lambda: sx.fit("x", SAMPLE, sx.Polynomial(2)), 15),
    "stream": (
        lambda: sx.estimate("x", sx.Stream(lambda: SAMPLE.blocks(100), 4), sx.Polynomial(2)),
        30,
    ),
}


def files_of(call: Callable[[], object]) -> set[str]:
    """The files of the package in which a function is called."""
    seen: set[str] = set()

    def note(frame, event: str, _) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(ROOT):
            seen.add(Path(frame.f_code.co_filename).relative_to(ROOT).as_posix())

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return seen


@pytest.mark.parametrize("name", CALLS)
def test_a_call_runs_through_few_files(name: str) -> None:
    call, most = CALLS[name]
    call()  # imports
    seen = files_of(call)
    assert "data/_sample.py" in seen or "fitting.py" in seen
    assert len(seen) <= most, sorted(seen)
