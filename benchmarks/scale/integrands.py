"""Time and memory for 1 to 100,000 integrands on 2,000 draws in 10 dimensions, f read from zarr."""

import tempfile
from pathlib import Path

import numpy as np

import steinax as sx

from .._pinned import run
from ..speed._problems import skewed_sample

N, DIM = 2000, 10
COUNTS = (1, 100, 1000, 10_000, 100_000)
GIVEN = ("Polynomial(2) + KernelTranslates()", "Polynomial(2)")
# where the plan of memory was not fitted: draws, dimensions, integrands, families
ELSEWHERE = (
    (1000, 5, 10_000, GIVEN),
    (4000, 10, 5000, GIVEN),
    (400, 3, 600, ("chosen",)),
    (1000, 5, 1000, ("chosen",)),
    (2000, 10, 200, ("chosen",)),
)
BATCH = 1000  # columns of a chunk


def write(path: str, sample: sx.Sample, count: int) -> None:
    """Sines of random directions, in chunks of 1,000 columns."""
    import zarr

    rng = np.random.default_rng(1)
    shape = (*sample.draws.shape[:2], count)
    chunks = (*shape[:2], min(count, BATCH))
    array = zarr.create_array(path, shape=shape, chunks=chunks, dtype="float64", compressors=None)
    for start in range(0, count, BATCH):
        width = min(BATCH, count - start)
        direction = rng.normal(size=(sample.dim, width)) / 3
        array[:, :, start : start + width] = np.sin(
            sample.draws @ direction + rng.normal(size=width)
        )


def measure(only: str = "") -> list[dict]:
    """Each in a process of its own, whose memory nothing else has touched.

    Args:
        only: a number of integrands, or `memory` for the plan of memory at other sizes; by default
            all numbers of integrands.
    """
    cases = [(N, DIM, count, GIVEN) for count in COUNTS if only in ("", str(count))]
    cases += ELSEWHERE if only == "memory" else ()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for n, dim, count, families in cases:
            path = str(Path(folder, f"{n}-{dim}-{count}.zarr"))
            write(path, skewed_sample(n, dim)[0], count)
            settings = {"n": n, "dim": dim, "count": count, "path": path}
            for family in families:
                rows += run("scale._integrands", settings | {"family": family})
    return [row | {"exponent": _exponent(row, rows)} for row in rows]


def _exponent(row: dict, rows: list[dict]) -> float | None:
    """Of time in k, from a tenth as many, without what one integrand takes."""
    times = {other["k"]: other["CPU s"] for other in rows if other["family"] == row["family"]}
    count, one = row["k"], times.get(1)
    if one is None or count < 10_000:
        return None
    return float(np.log10((times[count] - one) / (times[count // 10] - one)))
