"""Whether the long runs are wanted whole: `STEINAX_FULL=1 pytest`. CI runs a part of each."""

import os
from collections.abc import Sequence

FULL = bool(os.environ.get("STEINAX_FULL"))


def part[T](things: Sequence[T], turn: int, of: int) -> Sequence[T]:
    """One of `of` parts, another one at each turn, so that several turns see all; whole if wanted."""
    return things if FULL else things[turn % of :: of]
