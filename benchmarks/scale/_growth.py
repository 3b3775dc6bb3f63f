"""One picture of three growths: with draws, with integrands, with posteriors."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .._pictures import pyplot

type Line = tuple[str, list[float], list[float]]  # a label, sizes, CPU seconds


def draw(folder: Path) -> None:
    """Write `scale_growth.png` from the figures in the folder."""
    panels = {
        "draws, from zarr": list(_draws(_rows(folder, "streaming"))),
        "integrands, from zarr": list(_integrands(_rows(folder, "integrands"))),
        "posteriors": list(_posteriors(_rows(folder, "farm"))),
    }
    figure, axes = pyplot().subplots(1, 3, figsize=(10, 3.4), layout="constrained")
    for ax, (what, lines) in zip(axes, panels.items(), strict=True):
        for label, sizes, seconds in lines:
            told = f"{label}: exponent {exponent(sizes, seconds):.2f}"
            ax.plot(sizes, seconds, marker="o", markersize=4, label=told)
        ax.set(xscale="log", yscale="log", xlabel=what)
        ax.grid(alpha=0.3)
        ax.legend(fontsize=7, loc="best")
    axes[0].set_ylabel("CPU seconds")
    figure.savefig(folder / "scale_growth.png", dpi=150)


def exponent(sizes: list[float], seconds: list[float]) -> float:
    r"""The exponent $b$ of $a + c\, n^b$, with $a$ the time of the smallest size, from the two largest.

    >>> exponent([1, 10, 100, 1000], [2.0, 2.1, 3.0, 12.0])
    1.0
    """
    beyond = np.array(seconds[-2:]) - (seconds[0] if len(sizes) > 2 else 0.0)
    return round(float(np.diff(np.log(beyond))[0] / np.diff(np.log(sizes[-2:]))[0]), 3)


def _rows(folder: Path, command: str) -> list[dict]:
    path = folder / f"scale_{command}.json"
    if not path.exists():
        raise SystemExit(
            f"{path} is not there: python -m benchmarks.scale {command} --out {folder} writes it."
        )
    return json.loads(path.read_text(encoding="utf-8"))["rows"]


def _draws(rows: list[dict]) -> Iterator[Line]:
    grown = [row for row in rows if row["piece"].partition(" ")[2].startswith("draws, d")]
    sizes = [float(row["piece"].partition(" ")[0]) for row in grown]
    yield "d = 5, degree 2", sizes, [row["figure"] for row in grown]


def _integrands(rows: list[dict]) -> Iterator[Line]:
    for family in dict.fromkeys(row["family"] for row in rows):
        own = [row for row in rows if row["family"] == family]
        label = "degree 2 + kernel" if "Kernel" in family else "degree 2"
        yield label, [row["k"] for row in own], [row["CPU s"] for row in own]


def _posteriors(rows: list[dict]) -> Iterator[Line]:
    sizes: dict[float, float] = {}
    for row in rows:
        if row["ok"] is not None and row["ok"] not in sizes:
            sizes[row["ok"]] = row["CPU seconds"]
    yield "4 x 250 draws, d = 5", list(sizes), list(sizes.values())
