"""Uncompressed chunks on a local disk, read straight from their files: one copy, and no event loop."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class RawFiles:
    """The files of an array of float64, each with whole draws of one chain.

    Args:
        file: the one of a chunk, by its place in the grid.
        rows: how many draws a file holds.
        shape: of the array, (chain, draw, dim) or (draw, dim).
    """

    file: Callable[[tuple[int, ...]], Path]
    rows: int
    shape: tuple[int, ...]

    def read(self, chain: int, rows: slice, out: np.ndarray | None = None) -> np.ndarray:
        """Some draws of a chain, (draw, dim), in the first rows of `out` if that is given."""
        step, dim = rows.step or 1, self.shape[-1]
        count = len(range(rows.start, rows.stop, step))
        values = aligned(count, dim) if out is None else out[:count]
        done = 0
        while done < count:
            chunk, inside = divmod(rows.start + done * step, self.rows)
            some = min(count - done, -(-(self.rows - inside) // step))
            place = (chain, chunk, 0) if len(self.shape) == 3 else (chunk, 0)
            self._fill(values[done : done + some], self.file(place), inside, step)
            done += some
        return values

    def _fill(self, values: np.ndarray, path: Path, start: int, step: int) -> None:
        """Every `step`-th draw of a file, as many as there is room for."""
        dim = self.shape[-1]
        with path.open("rb") as file:
            size, whole = os.fstat(file.fileno()).st_size, 8 * dim * self.rows
            if size != whole:
                raise EOFError(f"the file has {size} bytes, and a chunk has {whole}")
            if step == 1:
                file.seek(8 * dim * start)
                file.readinto(values)
            else:  # no more of the file is read than these draws lie on
                every = np.memmap(file, np.float64, "r", shape=(self.rows, dim))
                values[:] = every[start::step][: len(values)]


def aligned(rows: int, dim: int) -> np.ndarray:
    """An empty array at a multiple of 64 bytes, which a compiled function of jax reads where it is.

    >>> aligned(3, 5).ctypes.data % 64, aligned(3, 5).shape
    (0, (3, 5))
    """
    numbers = np.empty(rows * dim + 7)
    first = -(numbers.ctypes.data // 8) % 8
    return numbers[first : first + rows * dim].reshape(rows, dim)


def raw_files(array: Any) -> RawFiles | None:
    """The files of a zarr array that holds its numbers as they are in memory; None for any other."""
    metadata = getattr(array, "metadata", None)
    root = getattr(getattr(array, "store", None), "root", None)
    if metadata is None or root is None or metadata.zarr_format != 3:
        return None
    *chain, rows, dim = array.chunks
    whole = dim == array.shape[-1] and all(size == 1 for size in chain)
    if not whole or array.dtype != np.float64 or not _as_in_memory(metadata.codecs):
        return None
    folder = Path(root, array.path)
    return RawFiles(
        lambda place: folder / metadata.encode_chunk_key(place), rows, tuple(array.shape)
    )


def _as_in_memory(codecs: Any) -> bool:
    from zarr.codecs import BytesCodec

    one = codecs[0] if len(codecs) == 1 else None
    return isinstance(one, BytesCodec) and getattr(one.endian, "value", one.endian) == sys.byteorder
