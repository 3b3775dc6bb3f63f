"""An estimate from a zarr store, and the same in a process of its own, for tests that stop it.

`python stored_posterior.py draws.zarr kept` estimates, keeping what is found on the way.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import zarr

import steinax as sx

CHAINS, DRAWS, DIM = 4, 20_000, 7


def write(path: Path) -> None:
    """Two arrays in two chunks a chain, not compressed."""
    x = np.random.default_rng(3).normal(size=(CHAINS, DRAWS, DIM))
    group = zarr.open_group(path, mode="w")
    for name, values in {"draws": x, "scores": np.sin(x) - 2 * x}.items():
        group.create_array(name, data=values, chunks=(1, DRAWS // 2, DIM), compressors=None)


def estimate(path: Path | str, **working: Any) -> sx.Estimate:
    """Two means and their errors; the scores are not those of the draws, and nobody looks."""
    stream = sx.from_zarr(path, names=[f"x{i}" for i in range(DIM)])
    return sx.estimate(["x0", "x1"], stream, sx.Polynomial(2), audit="off", **working)


if __name__ == "__main__":
    estimate(sys.argv[1], keep=sys.argv[2])
