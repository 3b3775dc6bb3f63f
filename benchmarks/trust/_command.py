"""What the commands that run replicates share: their arguments, and how they end."""

import argparse
from collections.abc import Callable
from pathlib import Path

from .._markdown import about, write
from .._pinned import ROOT

type Page = Callable[[list[dict], dict], str]


def parser(name: str, description: str | None, replicates: int) -> argparse.ArgumentParser:
    """The arguments of `python -m benchmarks.trust.<name>`."""
    made = argparse.ArgumentParser(
        prog=f"python -m benchmarks.trust.{name}", description=description
    )
    made.add_argument("--replicates", type=int, default=replicates)
    made.add_argument("--cells", default="", help="only cells whose names hold this")
    made.add_argument("--out", type=Path, default=ROOT / "docs" / "benchmarks")
    cache = Path.home() / ".cache" / "steinax" / "trust"
    made.add_argument("--cache", type=Path, default=cache, help="where replicates are kept")
    made.add_argument(
        "--workers", type=int, default=1, help="processes, each on one core; 0: what is kept"
    )
    return made


def chosen(made: argparse.ArgumentParser, cells: tuple[str, ...]) -> argparse.Namespace:
    """What was asked for, with the cells that it names as `wanted`."""
    given = made.parse_args()
    given.wanted = [cell for cell in cells if given.cells in cell]
    if not given.wanted:
        made.error(f"no cell holds {given.cells!r}: they are called like {cells[0]!r}.")
    return given


def finish(name: str, out: Path, rows: list[dict], page: Page) -> None:
    """Write the page and its figures, and print it."""
    where = about(f"benchmarks.trust.{name}")
    text = page(rows, where)
    write(out, name, text, where, rows)
    print(text)


def spread(counts: list[int]) -> str:
    """How many replicates there are, of rows that need not have as many."""
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
