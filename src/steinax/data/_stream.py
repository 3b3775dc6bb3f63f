"""Samples larger than memory, read in blocks, and integrands compiled for them."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from .._require import warn
from .._show import counted, some_of
from ..working import CorruptChunkError, chunk_shape, find_missing, locate
from ._functions import Compiled
from ._integrands import IntegrandSpec, named_arguments, named_integrands
from ._sample import Sample, as_names, refuse_space
from ._variables import ByName, Variables, read
from ._weights import refuse_weights


@dataclass(frozen=True)
class RawFiles:
    """The uncompressed files of a float64 array, each with complete draws of one chain.

    Args:
        file: returns the file of a chunk, given its position in the grid.
        rows: the number of draws in a file.
        shape: the shape of the array, (chain, draw, dim) or (draw, dim).
    """

    file: Callable[[tuple[int, ...]], Path]
    rows: int
    shape: tuple[int, ...]

    def read(self, chain: int, rows: slice, out: np.ndarray | None = None) -> np.ndarray:
        """Read some draws of a chain, (draw, dim), into the first rows of `out` if that is given."""
        step, dim = rows.step or 1, self.shape[-1]
        count = len(range(rows.start, rows.stop, step))
        values = aligned(count, dim) if out is None else out[:count]
        done = 0
        while done < count:
            chunk, offset = divmod(rows.start + done * step, self.rows)
            fill = min(count - done, -(-(self.rows - offset) // step))
            position = (chain, chunk, 0) if len(self.shape) == 3 else (chunk, 0)
            self._fill(values[done : done + fill], self.file(position), offset, step)
            done += fill
        return values

    def _fill(self, values: np.ndarray, path: Path, start: int, step: int) -> None:
        """Fill an array with every `step`-th draw of a file."""
        dim = self.shape[-1]
        with path.open("rb") as file:
            size, expected = os.fstat(file.fileno()).st_size, 8 * dim * self.rows
            if size != expected:
                raise EOFError(f"the file has {size} bytes, and a chunk has {expected}")
            if step == 1:
                file.seek(8 * dim * start)
                file.readinto(values)
            else:  # only the pages that contain these draws are read
                mapped = np.memmap(file, np.float64, "r", shape=(self.rows, dim))
                values[:] = mapped[start::step][: len(values)]


def aligned(rows: int, dim: int) -> np.ndarray:
    """Allocate an array aligned to 64 bytes, which compiled jax functions read without a copy.

    >>> aligned(3, 5).ctypes.data % 64, aligned(3, 5).shape
    (0, (3, 5))
    """
    numbers = np.empty(rows * dim + 7)
    first = -(numbers.ctypes.data // 8) % 8
    return numbers[first : first + rows * dim].reshape(rows, dim)


def raw_files(array: Any) -> RawFiles | None:
    """Find the files of a zarr array that stores its numbers as in memory; None for any other array."""
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
        lambda position: folder / metadata.encode_chunk_key(position), rows, tuple(array.shape)
    )


def _as_in_memory(codecs: Any) -> bool:
    """Whether zarr codecs store numbers uncompressed and in the byte order of this machine."""
    from zarr.codecs import BytesCodec

    codec = codecs[0] if len(codecs) == 1 else None
    return (
        isinstance(codec, BytesCodec)
        and getattr(codec.endian, "value", codec.endian) == sys.byteorder
    )


def read_rows(array: Any, what: str, chain: int, rows: slice) -> np.ndarray:
    """Read some draws of one chain, (draw, dim), and check that they are finite."""
    values = unchecked_rows(array, what, chain, rows)
    if not np.isfinite(values).all():
        draw = rows.start + int(np.argmin(np.isfinite(values).all(axis=1))) * (rows.step or 1)
        reason = f"chain {chain} has values that are not finite, the first at draw {draw}"
        raise CorruptChunkError(**locate(array, what, chain, draw), reason=reason)
    return values


def unchecked_rows(
    array: Any, what: str, chain: int, rows: slice, out: np.ndarray | None = None
) -> np.ndarray:
    """Read some draws of one chain, (draw, dim), without checking that they are finite.

    Args:
        array: (chain, draw, dim) or (draw, dim).
        what: "draws" or "scores", for error messages.
        chain: the number of the chain.
        rows: the draws to read.
        out: a buffer for them, which is used if files are read directly.
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
    """Return the index of some draws of a chain."""
    return (chain, rows) if len(array.shape) == 3 else rows


def _first_unreadable(array: Any, chain: int, rows: slice) -> int:
    """Find the first draw among `rows` whose chunk cannot be read."""
    size, files = chunk_shape(array)[-2], raw_files(array)
    for start in range(rows.start // size * size, rows.stop, size):
        draw = max(start, rows.start)
        row = slice(draw, draw + 1)
        try:
            if files is not None:
                files.read(chain, row)
            else:
                read(array[_place(array, chain, row)])
        except Exception:
            return draw
    return rows.start


def _refuse_unwritten(array: Any, what: str, chain: int, rows: slice, values: np.ndarray) -> None:
    """Raise an error for chunks that were never written: they read as the fill value throughout."""
    fill = getattr(array, "fill_value", None) or 0.0
    step, size = rows.step or 1, chunk_shape(array)[-2]
    if step > 1 or size < 2 or not (values[:, 0] == fill).any():
        return
    edges = [0, *range(size - rows.start % size, len(values), size), len(values)]
    for start, stop in pairwise(edges):
        if stop - start > 1 and (values[start:stop] == fill).all():
            draw = rows.start + start
            reason = f"draws {draw} to {draw + stop - start} of chain {chain} are all {fill}: not written"
            raise CorruptChunkError(**locate(array, what, chain, draw), reason=reason)


BLOCK = 2**24  # bytes of draws that are read at once: 16 MB
SMALL = 2**18  # bytes: smaller chunks take longer to locate than to read
MUCH = 2**26  # bytes: below 64 MB the size of chunks does not matter


@dataclass(frozen=True)
class LazySample:
    """Draws and scores in arrays that are read by slices; picklable if the arrays are.

    Args:
        draws: (chain, draw, dim), or (draw, dim) for one chain: anything with `shape`, `dtype` and
            slicing.
        scores: the scores, of the same shape.
        names: one for each dimension.
        variables: the model's variables, unread.
        order: the column of the scores that belongs to each column of the draws; None if the same.
        block: the number of draws that are read at once, a multiple of those in a chunk.
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
        """Read consecutive draws of one chain into memory."""
        rows = slice(start, stop)
        variables = (
            None if self.variables is None else self.variables.isel(slice(chain, chain + 1), rows)
        )
        draws = unchecked_rows(self.draws, "draws", chain, rows)
        scores = self._ordered(unchecked_rows(self.scores, "scores", chain, rows))
        try:
            return Sample(draws, scores, self.names, variables=variables, verified=self.verified)
        except ValueError:  # not finite: the errors below name the chunk
            self.read_draws(chain, rows)
            self.read_scores(chain, rows)
            raise

    def read_draws(self, chain: int, rows: slice) -> np.ndarray:
        """Read draws without their scores, (draw, dim)."""
        return read_rows(self.draws, "draws", chain, rows)

    def read_scores(self, chain: int, rows: slice) -> np.ndarray:
        """Read scores without the draws, with columns in the order of the draws, (draw, dim)."""
        return self._ordered(read_rows(self.scores, "scores", chain, rows))

    def _ordered(self, scores: np.ndarray) -> np.ndarray:
        """Put the columns of scores in the order of the draws."""
        return scores if self.order is None else scores[:, list(self.order)]

    def draw_tiles(self, chain: int, start: int, stop: int, rows: int) -> Iterator[np.ndarray]:
        """Yield unchecked draws, `rows` at a time; each tile may overwrite the previous one."""
        if raw_files(self.draws) is None:
            for cut in self.cuts(start, stop):
                block = unchecked_rows(self.draws, "draws", chain, slice(*cut))
                yield from (block[i : i + rows] for i in range(0, len(block), rows))
            return
        buffer = np.empty((min(rows, stop - start), self.dim))
        for cut in self.cuts(start, stop, rows):
            yield unchecked_rows(self.draws, "draws", chain, slice(*cut), buffer)

    def cuts(self, start: int, stop: int, rows: int | None = None) -> Iterator[tuple[int, int]]:
        """Yield start and stop of the blocks of consecutive draws; they end where chunks do."""
        rows = self.block if rows is None else rows
        while start < stop:
            end = min(stop, (start // rows + 1) * rows)
            yield start, end
            start = end

    def blocks(self) -> Iterator[Sample]:
        """Yield all draws, block by block."""
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
    """Create a lazy sample: check shapes and chunks without reading them, and choose the block size."""
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
    """Choose the number of draws of a block: whole chunks of both arrays if possible."""
    wanted = max(1, BLOCK // (8 * draws.shape[-1]))
    chunk = max(chunk_shape(array)[-2] for array in (draws, scores))
    return min(max(chunk, wanted // chunk * chunk), draws.shape[-2])


def _warn_of_small_chunks(draws: Any) -> None:
    """Warn if a large array is stored in chunks that are slow to read."""
    rows, dim = chunk_shape(draws)[-2:]
    size, total, all_dims = rows * dim * draws.dtype.itemsize, draws.shape[-2], draws.shape[-1]
    if size >= SMALL or prod(draws.shape) * draws.dtype.itemsize < MUCH:
        return
    chunks = (*(1,) * (len(draws.shape) - 2), min(total, BLOCK // (8 * all_dims)), all_dims)
    warn(
        f"the draws are stored in chunks of {rows} ({size / 1e3:.0f} kB), which read at a fraction of the "
        "speed of large ones. If they are read more than once, write both arrays again: "
        f'zarr.from_array("large.zarr", name="draws", data=draws, chunks={chunks}, compressors=None), '
        'the same for "scores", and read them by from_zarr("large.zarr").',
    )


class Stream:
    """A sample larger than memory, whose draws are read in blocks, as often as needed.

    Every pass over the blocks calls `read` again, so nothing is kept. Blocks are one-chain samples;
    those of one chain are consecutive. A function is read sequentially by one reader. Arrays on disk
    can be read at any position by many readers: see `from_arrays`.

    Args:
        read: a function without arguments that returns an iterator over the blocks.
        chains: the number of chains, of equal length, that the blocks make up.

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
        """Create a stream from arrays that are read by slices: zarr, dask, h5py, xarray or NumPy.

        Its blocks are read by several threads, or by the workers of a cluster, each of which opens the
        store itself (zarr, dask and xarray arrays can be sent to workers, h5py arrays cannot).

        Args:
            draws: unconstrained draws, (chain, draw, dim), or (draw, dim) for one chain.
            scores: the scores, of the same shape.
            names: one for each dimension; `x[0]`, `x[1]`, ... by default.
            variables: the model's variables, accessed by name: a DataTree with a group `posterior`, or a
                Dataset; only those that are used are read, block by block.
            block: the number of draws a reader holds at once; by default whole chunks of about 16 MB.

        >>> import dask.array, numpy as np
        >>> x = dask.array.from_array(np.random.default_rng(0).normal(size=(4, 500, 3)))
        >>> Stream.from_arrays(x, -x)
        Stream(4 chains x 500 draws, 3 dimensions: x[0], x[1], x[2])
        """
        return cls.of(lazy_sample(draws, scores, names, variables, block))

    @classmethod
    def of(cls, source: LazySample) -> "Stream":
        """Create the stream of a lazy sample."""
        stream = cls(source.blocks, source.chains)
        stream.source = source
        return stream

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


def compiled[F](f: F) -> F:
    """Compile every function among integrands; names and arrays are returned unchanged."""
    if isinstance(f, Mapping):
        return {name: compiled(g) for name, g in f.items()}  # type: ignore[return-value]
    plain = callable(f) and not isinstance(f, Compiled)
    return Compiled(f) if plain else f  # type: ignore[return-value]


def variables_asked(f: IntegrandSpec, variables: Variables | None) -> dict[str, Any]:
    """Read the model's variables that integrands use, by name: their values and labels.

    >>> import numpy as np, xarray
    >>> tau = xarray.Dataset({"tau": (("chain", "draw"), np.ones((1, 2)))})
    >>> variables_asked(lambda tau, x: tau * x, Variables(tau))
    {'tau': (array([[[1.],
            [1.]]]), ['tau'])}
    """
    if variables is None:
        return {}
    asked: list[str] = []
    for integrand in named_integrands(f).values():
        asked += (
            [integrand]
            if isinstance(integrand, str)
            else _asked(integrand, variables)
            if callable(integrand)
            else []
        )
    read_variables = {}
    for name in asked:
        try:
            read_variables[name] = variables.labelled(name)
        except KeyError:  # no such element: the error is raised at the evaluation
            read_variables[name] = None
    return {name: held for name, held in read_variables.items() if held is not None}


def _asked(f: Callable, variables: Variables) -> list[str]:
    """List a function's arguments, and all of the posterior if it accesses variables by name."""

    def first(name: str) -> np.ndarray:
        return read(variables[name][0, 0]) if name in variables else np.ones(1)

    probe = ByName({}, variables.names, first)
    with suppress(Exception), np.errstate(all="ignore"):  # most functions take another argument
        f(probe)
    return list(
        {
            **named_arguments(f),
            **dict.fromkeys(variables.names if probe.asked else ()),
            **probe.held,
        }
    )
