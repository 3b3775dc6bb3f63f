"""Draws that do not fit in memory, read in blocks."""

import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from .._show import counted, some_of
from ..working import CorruptChunkError
from ..working._keeping import chunk_shape, find_missing, locate
from ._sample import Sample, as_names, refuse_space
from ._variables import Variables, read
from ._weights import refuse_weights


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


def read_rows(array: Any, what: str, chain: int, rows: slice) -> np.ndarray:
    """Some draws of one chain, (draw, dim), all of them finite."""
    values = unchecked_rows(array, what, chain, rows)
    if not np.isfinite(values).all():
        draw = rows.start + int(np.argmin(np.isfinite(values).all(axis=1))) * (rows.step or 1)
        reason = f"chain {chain} has values that are not finite, the first at draw {draw}"
        raise CorruptChunkError(**locate(array, what, chain, draw), reason=reason)
    return values


def unchecked_rows(
    array: Any, what: str, chain: int, rows: slice, out: np.ndarray | None = None
) -> np.ndarray:
    """The same, if need be with numbers that are not finite.

    Args:
        array: (chain, draw, dim) or (draw, dim).
        what: draws or scores.
        chain: of which draws are wanted.
        rows: which.
        out: room for them, which is used where files are read directly.
    """
    files = raw_files(array)
    try:
        if files is not None:
            return files.read(chain, rows, out)
        values = read(array[_place(array, chain, rows)])
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        draw = _first_unreadable(array, chain, rows)
        raise CorruptChunkError(**locate(array, what, chain, draw), reason=reason) from error
    values = np.ascontiguousarray(values, dtype=np.float64)
    _refuse_unwritten(array, what, chain, rows, values)
    return values


def _place(array: Any, chain: int, rows: slice) -> tuple[int, slice] | slice:
    return (chain, rows) if len(array.shape) == 3 else rows


def _first_unreadable(array: Any, chain: int, rows: slice) -> int:
    """The first draw, of those in `rows`, whose chunk cannot be read alone."""
    inside, files = chunk_shape(array)[-2], raw_files(array)
    for start in range(rows.start // inside * inside, rows.stop, inside):
        draw = max(start, rows.start)
        one = slice(draw, draw + 1)
        try:
            if files is not None:
                files.read(chain, one)
            else:
                read(array[_place(array, chain, one)])
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
        verified: whether the scores are known to be right, as in `Sample`.
    """

    draws: Any = field(repr=False)
    scores: Any = field(repr=False)
    names: tuple[str, ...]
    variables: Variables | None
    order: tuple[int, ...] | None
    block: int
    verified: bool = False

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
        also = (
            None if self.variables is None else self.variables.isel(slice(chain, chain + 1), rows)
        )
        draws = unchecked_rows(self.draws, "draws", chain, rows)
        scores = self._ordered(unchecked_rows(self.scores, "scores", chain, rows))
        try:
            return Sample(draws, scores, self.names, variables=also, verified=self.verified)
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


class Stream:
    """Draws that come in blocks, as often as asked for: for samples larger than memory.

    Every pass over the blocks calls `read` anew, so nothing is kept. Blocks are one-chain samples;
    those of one chain follow each other. A function is read by one reader, from the first block to
    the last. Arrays on disk can be read anywhere, by many readers: see `from_arrays`.

    Args:
        read: called with no argument, gives an iterator over the blocks.
        chains: how many chains, of equal length, the blocks make up.

    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(2, 500, 3))
    >>> stream = Stream(lambda: Sample(x, -x).blocks(100), chains=2)
    >>> sum(block.size for block in stream), sum(block.size for block in stream)
    (1000, 1000)
    """

    def __init__(self, read: Callable[[], Iterator[Sample]], chains: int = 1):
        if not callable(read):
            raise TypeError(
                f"a {type(read).__name__} cannot be read twice: give a function that starts anew on every "
                "call, such as lambda: sample.blocks(1000)."
            )
        if chains < 1:
            raise ValueError(
                f"Stream(read, chains={chains}): the blocks make up one chain or more."
            )
        self._read = read
        self.chains = chains
        self.source: LazySample | None = None

    @classmethod
    def from_arrays(
        cls,
        draws: Any,
        scores: Any,
        names: Sequence[str] | None = None,
        *,
        variables: Any = None,
        block: int | None = None,
    ) -> "Stream":
        """A stream of arrays that are read by slices: of zarr, dask, h5py, xarray or NumPy.

        Its blocks are read by several threads, or by the workers of a cluster, each of which opens the
        store itself (zarr, dask and xarray arrays can be sent to one, those of h5py cannot).

        Args:
            draws: unconstrained draws, (chain, draw, dim), or (draw, dim) for one chain.
            scores: of the same shape.
            names: one for each dimension; `x[0]`, `x[1]`, ... when not given.
            variables: the model's own quantities, to be asked for by name: a DataTree with a group
                `posterior`, or a Dataset, of which only what is asked for is read, block by block.
            block: how many draws a reader holds at once; by default whole chunks of about 16 MB.

        >>> import dask.array, numpy as np
        >>> x = dask.array.from_array(np.random.default_rng(0).normal(size=(4, 500, 3)))
        >>> Stream.from_arrays(x, -x)
        Stream(4 chains x 500 draws, 3 dimensions: x[0], x[1], x[2])
        """
        return cls.of(lazy_sample(draws, scores, names, variables, block))

    @classmethod
    def of(cls, source: LazySample) -> "Stream":
        """The stream of a lazy sample."""
        made = cls(source.blocks, source.chains)
        made.source = source
        return made

    def __iter__(self) -> Iterator[Sample]:
        names = None
        for block in self._read():
            if not isinstance(block, Sample):
                raise TypeError(
                    f"the stream gave a {type(block).__name__}: let it yield blocks, each a one-chain Sample."
                )
            if names is not None and block.names != names:
                raise ValueError(
                    f"the stream's blocks have the dimensions {', '.join(names[:5])} and then "
                    f"{', '.join(block.names[:5])}: let all have the same."
                )
            refuse_weights(block, "a stream")
            refuse_space(block, "a stream")
            names = block.names
            yield block

    def __repr__(self) -> str:
        chains = counted(self.chains, "chain")
        if self.source is None:
            return f"Stream({chains})"
        shown, dims = some_of(self.source.names, 4), counted(self.source.dim, "dimension")
        return f"Stream({chains} x {self.source.length} draws, {dims}: {shown})"
