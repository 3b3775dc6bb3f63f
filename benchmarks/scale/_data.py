"""Stores of draws, made block by block: of a size that need not fit in memory."""

from pathlib import Path

import numpy as np

CHUNK = 2**24  # bytes


def write_store(path: Path, draws: int, dim: int, chains: int = 4) -> None:
    """Independent normal draws and their scores in a zarr store, uncompressed, in chunks of 16 MB.

    Args:
        path: of the store, with arrays `draws` and `scores`, (chain, draw, dim).
        draws: of all chains together.
        dim: of each draw.
        chains: how many.
    """
    import zarr

    group = zarr.open_group(path, mode="w")
    length, rows = draws // chains, CHUNK // (8 * dim)
    settings = {"dtype": "f8", "compressors": None, "chunks": (1, min(rows, length), dim)}
    x, score = (
        group.create_array(name, shape=(chains, length, dim), **settings)
        for name in ("draws", "scores")
    )
    rng = np.random.default_rng(0)
    scale = np.linspace(0.5, 2.0, dim)
    for chain in range(chains):
        for start in range(0, length, rows):
            z = rng.normal(size=(min(rows, length - start), dim))
            x[chain, start : start + len(z)] = z * scale + 1.0
            score[chain, start : start + len(z)] = -z / scale
