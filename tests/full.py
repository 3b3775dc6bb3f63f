"""Whether the long runs are wanted whole: `STEINAX_FULL=1 pytest`. CI runs a part of each."""

import os
from collections.abc import Iterable, Iterator

import pytest

FULL = bool(os.environ.get("STEINAX_FULL"))
only_full = pytest.mark.skipif(not FULL, reason="a long run: STEINAX_FULL=1 pytest makes it")


def cases(label: str, checks: Iterable[tuple], turn: int, of: int) -> Iterator:
    """Checks as parameters of a test; if `of` is not 1 they are slow.

    Then only one of so many parts is made, another one at each turn, so that several turns see all;
    the whole if that is wanted.
    """
    every, marks = list(checks), () if of == 1 else pytest.mark.slow
    for name, check in every if FULL else every[turn % of :: of]:
        yield pytest.param(check, id=f"{label}{name}", marks=marks)
