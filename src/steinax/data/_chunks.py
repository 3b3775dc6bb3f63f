"""The chunks of stored arrays: their shape, their place, and which of them are not there."""

from itertools import product
from math import prod
from typing import Any

from ..working import CorruptChunkError


def chunk_shape(array: Any) -> tuple[int, ...]:
    """The shape of a chunk (of a shard, where chunks are stored together); of all, if there are none.

    >>> import numpy as np
    >>> chunk_shape(np.zeros((4, 100, 2)))
    (4, 100, 2)
    """
    chunks = getattr(array, "shards", None) or getattr(array, "chunks", None)
    if chunks is None:  # xarray knows how the file is cut
        encoding = getattr(array, "encoding", {})
        chunks = encoding.get("chunks") or encoding.get("chunksizes")
    if chunks is None or len(chunks) != len(array.shape):
        return tuple(array.shape)
    return tuple(int(one if isinstance(one, int) else max(one)) for one in chunks)


def locate(array: Any, what: str, chain: int, draw: int) -> dict[str, Any]:
    """The array, the chunk and, if it is a zarr store, the file that hold a draw."""
    place = (chain, draw, 0)[-len(array.shape) :]
    chunk = tuple(i // size for i, size in zip(place, chunk_shape(array), strict=True))
    return {
        "array": getattr(array, "path", None) or what,
        "chunk": chunk,
        "file": _file(array, chunk),
    }


def find_missing(array: Any, what: str) -> None:
    """Refuse a zarr array of which chunks are missing: zarr would read them as zeros."""
    if not hasattr(array, "nchunks_initialized") or not hasattr(array, "metadata"):
        return
    grid = [
        -(-size // inside) for size, inside in zip(array.shape, chunk_shape(array), strict=True)
    ]
    # zarr counts the chunks in each shard
    each = prod(chunk_shape(array)) // prod(array.chunks)
    total, held = prod(grid), array.nchunks_initialized // each
    if held >= total:
        return
    for chunk in product(*(range(size) for size in grid)):
        if not _exists(array, chunk):
            reason = f"{total - held} of {total} chunks are missing, and zarr would give zeros"
            raise CorruptChunkError(array.path or what, chunk, _file(array, chunk), reason)


def _exists(array: Any, chunk: tuple[int, ...]) -> bool:
    from zarr.core.sync import sync

    return sync((array.store_path / array.metadata.encode_chunk_key(chunk)).exists())


def _file(array: Any, chunk: tuple[int, ...]) -> str | None:
    if not hasattr(array, "store_path") or not hasattr(array.metadata, "encode_chunk_key"):
        return None
    return str(array.store_path / array.metadata.encode_chunk_key(chunk)).removeprefix("file://")
