"""Many dimensions and 400 draws: time, memory, and what is gained with fewer draws than dimensions."""

from .._pinned import run
from ._dimensions import FAMILIES

DIMS = (100, 1_000, 10_000, 100_000)


def measure(dims: tuple[int, ...] = DIMS) -> list[dict]:
    """Each in a process of its own, on one core."""
    settings = [{"dim": dim, "family": family} for dim in dims for family in FAMILIES]
    return [run("scale._dimensions", one)[0] for one in settings]
