"""Draws and scores that stay where they are stored until some of them are asked for."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from ..working import CorruptChunkError
from ._chunks import chunk_shape, find_missing, locate
from ._sample import Sample, as_names
from ._variables import Variables, read

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
        draws, scores = self.read_draws(chain, rows), self.read_scores(chain, rows)
        return Sample(draws, scores, self.names, variables=also)

    def read_draws(self, chain: int, rows: slice) -> np.ndarray:
        """Draws alone, (draw, dim)."""
        return _read(self.draws, "draws", chain, rows)

    def read_scores(self, chain: int, rows: slice) -> np.ndarray:
        """Scores alone, their columns in the order of those of the draws."""
        scores = _read(self.scores, "scores", chain, rows)
        return scores if self.order is None else scores[:, list(self.order)]

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


def _read(array: Any, what: str, chain: int, rows: slice) -> np.ndarray:
    place = (chain, rows) if len(array.shape) == 3 else rows
    try:
        values = read(array[place])
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        draw = _first_unreadable(array, chain, rows)
        raise CorruptChunkError(**locate(array, what, chain, draw), reason=reason) from error
    values = np.ascontiguousarray(values, dtype=np.float64)
    if not np.isfinite(values).all():
        draw = rows.start + int(np.argmin(np.isfinite(values).all(axis=1))) * (rows.step or 1)
        reason = f"chain {chain} has values that are not finite, the first at draw {draw}"
        raise CorruptChunkError(**locate(array, what, chain, draw), reason=reason)
    _refuse_unwritten(array, what, chain, rows, values)
    return values


def _first_unreadable(array: Any, chain: int, rows: slice) -> int:
    """The first draw, of those in `rows`, whose chunk cannot be read alone."""
    inside = chunk_shape(array)[-2]
    for start in range(rows.start // inside * inside, rows.stop, inside):
        draw = max(start, rows.start)
        one = slice(draw, draw + 1)
        try:
            read(array[(chain, one) if len(array.shape) == 3 else one])
        except Exception:
            return draw
    return rows.start


def _refuse_unwritten(array: Any, what: str, chain: int, rows: slice, values: np.ndarray) -> None:
    """A chunk that was never written reads as one value throughout, and says nothing of it."""
    fill = getattr(array, "fill_value", None) or 0.0
    step, inside = rows.step or 1, chunk_shape(array)[-2]
    if step > 1 or inside < 2 or not (values[:, 0] == fill).any():
        return
    edges = [0, *range(inside - rows.start % inside, len(values), inside), len(values)]
    for start, stop in pairwise(edges):
        if stop - start > 1 and (values[start:stop] == fill).all():
            draw = rows.start + start
            reason = f"draws {draw} to {draw + stop - start} of chain {chain} are all {fill}: not written"
            raise CorruptChunkError(**locate(array, what, chain, draw), reason=reason)
