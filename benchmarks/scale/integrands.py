"""Time and memory for 1 to 100,000 integrands on 2,000 draws in 10 dimensions, f read from zarr."""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import steinax as sx

from .._pinned import ROOT, peak_megabytes
from ..speed._problems import skewed_sample

N, DIM = 2000, 10
COUNTS = (1, 100, 1000, 10_000, 100_000)
FAMILIES = {
    "Polynomial(2) + KernelTranslates()": sx.Polynomial(2) + sx.KernelTranslates(),
    "Polynomial(2)": sx.Polynomial(2),
}
MEMORY = 1e9  # bytes, the budget of each
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
        direction = rng.normal(size=(DIM, width)) / 3
        array[:, :, start : start + width] = np.sin(
            sample.draws @ direction + rng.normal(size=width)
        )


def once(family: str, count: int, path: str) -> dict:
    """One estimate, in this process: CPU seconds, compilation among them, and memory beside the plan."""
    import zarr

    sample, _ = skewed_sample(N, DIM)
    array = {"f": zarr.open_array(path, mode="r")}
    made, memory = FAMILIES[family], MEMORY if count > 1 else None
    before = peak_megabytes()
    plan = sx.memory_plan(array, sample, made, memory=memory)
    begin = time.process_time()
    sx.estimate(array, sample, made, memory=memory)
    seconds = time.process_time() - begin
    peak = peak_megabytes() - before
    return {
        "family": family,
        "k": count,
        "blocks": plan.blocks,
        "CPU s": seconds,
        "MB": peak,
        "predicted MB": plan.total / 1e6,
        "ratio": 1e6 * peak / plan.total,
    }


def measure(counts: tuple[int, ...] = COUNTS, only: str = "") -> list[dict]:
    """Each in a process of its own, whose memory nothing else has touched."""
    sample, _ = skewed_sample(N, DIM)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for count in counts:
            path = str(Path(folder, f"{count}.zarr"))
            write(path, sample, count)
            rows += [_apart(one, count, path) for one in FAMILIES if only in one]
    return [row | {"exponent": _exponent(row, rows)} for row in rows]


def _exponent(row: dict, rows: list[dict]) -> float | None:
    """Of time in k, from a tenth as many, without what one integrand takes."""
    times = {other["k"]: other["CPU s"] for other in rows if other["family"] == row["family"]}
    count, one = row["k"], times.get(1)
    if one is None or count // 10 not in times or count < 10_000:
        return None
    return float(np.log10((times[count] - one) / (times[count // 10] - one)))


def _apart(family: str, count: int, path: str) -> dict:
    code = (
        "import json; from benchmarks.scale.integrands import once; "
        f"print(json.dumps(once({family!r}, {count}, {path!r})))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])
