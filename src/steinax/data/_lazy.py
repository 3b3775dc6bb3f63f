"""Draws and scores that stay where they are stored until some of them are asked for."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from ._chunks import chunk_shape, find_missing
from ._raw import raw_files
from ._reading import read_rows, unchecked_rows
from ._sample import Sample, as_names
from ._variables import Variables

BLOCK = 2**24  # bytes of draws that are read at once: 16 MB
SMALL = 2**18  # bytes: smaller chunks take longer to find than to read
MUCH = 2**26  # bytes: with less than 64 MB it does not matter


@dataclass(frozen=True)
class LazySample:
    """Draws and scores in arrays that are read by slices; it can be pickled if they can.

    Args:
        draws: (chain, draw, dim), or (draw, dim) for one chain: anything with `shape`, `dtype` and
            slicing.
        scores: of the same shape.
        names: one for each dimension.
        variables: the model's own quantities, unread.
        order: which column of the scores belongs to each column of the draws; None if the same.
        block: how many draws are read at once, a multiple of those in a chunk.
    """

    draws: Any = field(repr=False)
    scores: Any = field(repr=False)
    names: tuple[str, ...]
    variables: Variables | None
    order: tuple[int, ...] | None
    block: int

    @property
    def chains(self) -> int:
        """The number of chains."""
        return self.draws.shape[0] if len(self.draws.shape) == 3 else 1

    @property
    def length(self) -> int:
        """The number of draws in each chain."""
        return self.draws.shape[-2]

    @property
    def dim(self) -> int:
        """The dimension of a draw."""
        return self.draws.shape[-1]

    def read(self, chain: int, start: int, stop: int) -> Sample:
        """Some consecutive draws of one chain, in memory."""
        rows = slice(start, stop)
        also = None if self.variables is None else self.variables.part(chain, rows)
        draws = unchecked_rows(self.draws, "draws", chain, rows)
        scores = self._ordered(unchecked_rows(self.scores, "scores", chain, rows))
        try:
            return Sample(draws, scores, self.names, variables=also)
        except ValueError:  # not finite: these say in which chunk
            self.read_draws(chain, rows)
            self.read_scores(chain, rows)
            raise

    def read_draws(self, chain: int, rows: slice) -> np.ndarray:
        """Draws alone, (draw, dim)."""
        return read_rows(self.draws, "draws", chain, rows)

    def read_scores(self, chain: int, rows: slice) -> np.ndarray:
        """Scores alone, their columns in the order of those of the draws."""
        return self._ordered(read_rows(self.scores, "scores", chain, rows))

    def _ordered(self, scores: np.ndarray) -> np.ndarray:
        return scores if self.order is None else scores[:, list(self.order)]

    def draw_tiles(self, chain: int, start: int, stop: int, rows: int) -> Iterator[np.ndarray]:
        """Draws alone, `rows` at a time, unchecked; the next tile may overwrite the last."""
        if raw_files(self.draws) is None:
            for cut in self.cuts(start, stop):
                block = unchecked_rows(self.draws, "draws", chain, slice(*cut))
                yield from (block[i : i + rows] for i in range(0, len(block), rows))
            return
        buffer = np.empty((min(rows, stop - start), self.dim))
        for cut in self.cuts(start, stop, rows):
            yield unchecked_rows(self.draws, "draws", chain, slice(*cut), buffer)

    def cuts(self, start: int, stop: int, rows: int | None = None) -> Iterator[tuple[int, int]]:
        """Where the blocks of a run of draws start and stop: they end where chunks do."""
        rows = self.block if rows is None else rows
        while start < stop:
            end = min(stop, (start // rows + 1) * rows)
            yield start, end
            start = end

    def blocks(self) -> Iterator[Sample]:
        """All draws, block by block."""
        for chain in range(self.chains):
            for start, stop in self.cuts(0, self.length):
                yield self.read(chain, start, stop)


def lazy_sample(
    draws: Any,
    scores: Any,
    names: Sequence[str] | None = None,
    variables: Any = None,
    block: int | None = None,
    order: Sequence[int] | None = None,
) -> LazySample:
    """Check shapes and chunks, of which nothing is read, and choose how much to read at once."""
    for what, array in (("draws", draws), ("scores", scores)):
        if not hasattr(array, "shape") or not hasattr(array, "dtype"):
            raise TypeError(
                f"{what} of type {type(array).__name__} cannot be read by slices: give a zarr, dask, h5py or "
                "NumPy array, (chain, draw, dim)."
            )
    shape = tuple(draws.shape)
    if shape != tuple(scores.shape) or len(shape) not in (2, 3) or 0 in shape:
        raise ValueError(
            f"draws have shape {shape} and scores {tuple(scores.shape)}: give both as (chain, draw, dim), "
            "or as (draw, dim) for one chain."
        )
    for what, array in (("draws", draws), ("scores", scores)):
        find_missing(array, what)
    _warn_of_small_chunks(draws)
    named = as_names(names, shape[-1])
    held = None if variables is None else Variables(variables)
    if held is not None and held.sizes != (shape[0] if len(shape) == 3 else 1, shape[-2]):
        raise ValueError(
            f"the variables have {held.sizes} chains and draws, and the draws have shape {shape}: give "
            "those of the same draws, warm-up left out of both."
        )
    rows = _rows(draws, scores) if block is None else block
    if rows < 1:
        raise ValueError(f"block={block}: read at least one draw at a time.")
    return LazySample(draws, scores, named, held, None if order is None else tuple(order), rows)


def _rows(draws: Any, scores: Any) -> int:
    """As many draws as make a block, whole chunks of both arrays where that is possible."""
    wanted = max(1, BLOCK // (8 * draws.shape[-1]))
    inside = max(chunk_shape(array)[-2] for array in (draws, scores))
    return min(max(inside, wanted // inside * inside), draws.shape[-2])


def _warn_of_small_chunks(draws: Any) -> None:
    rows, dim = chunk_shape(draws)[-2:]
    size, total, all_dims = rows * dim * draws.dtype.itemsize, draws.shape[-2], draws.shape[-1]
    if size >= SMALL or prod(draws.shape) * draws.dtype.itemsize < MUCH:
        return
    chunks = (*(1,) * (len(draws.shape) - 2), min(total, BLOCK // (8 * all_dims)), all_dims)
    warnings.warn(
        f"the draws are stored in chunks of {rows} ({size / 1e3:.0f} kB), which read at a fraction of the "
        "speed of large ones. If they are read more than once, write both arrays again: "
        f'zarr.from_array("large.zarr", name="draws", data=draws, chunks={chunks}, compressors=None), '
        'the same for "scores", and read them by from_zarr("large.zarr").',
        stacklevel=4,
    )
