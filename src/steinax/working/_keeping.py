"""Results stored in a folder, chunks of stored arrays, and the errors raised for both."""

import errno
import json
import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from hashlib import blake2b
from importlib.metadata import version
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from .._require import warn
from .._serialise import from_bytes, to_bytes


class CorruptChunkError(RuntimeError):
    """A chunk of stored draws is missing, cut short or not what was written.

    Attributes:
        array: the name of the array.
        chunk: the index of the chunk in the grid of chunks.
        file: where it is stored, if that is known.
        reason: what the reader said.

    >>> print(CorruptChunkError("draws", (3, 0), file="run.zarr/draws/c/3/0", reason="cut short"))
    chunk (3, 0) of 'draws' cannot be read: cut short (run.zarr/draws/c/3/0). Write this chunk
    again from its source, or leave its draws out; the other chunks are as they were.
    """

    def __init__(
        self, array: str, chunk: Sequence[int] | int, file: str | None = None, reason: str = ""
    ):
        self.array = array
        self.chunk: tuple[int, ...] = tuple(chunk) if isinstance(chunk, Sequence) else (chunk,)
        self.file = file
        self.reason = reason
        super().__init__(array, self.chunk, file, reason)

    def __str__(self) -> str:
        reason = f": {self.reason}" if self.reason else ""
        place = f" ({self.file})" if self.file else ""
        return (
            f"chunk {self.chunk} of {self.array!r} cannot be read{reason}{place}. Write this chunk "
            "again from its source, or leave its draws out; the other chunks are as they were."
        )


def chunk_shape(array: Any) -> tuple[int, ...]:
    """Find the shape of the chunks, or shards, of an array; the whole shape if it is not chunked.

    >>> import numpy as np
    >>> chunk_shape(np.zeros((4, 100, 2)))
    (4, 100, 2)
    """
    chunks = getattr(array, "shards", None) or getattr(array, "chunks", None)
    if chunks is None:  # xarray keeps the chunks of the file
        encoding = getattr(array, "encoding", {})
        chunks = encoding.get("chunks") or encoding.get("chunksizes")
    if chunks is None or len(chunks) != len(array.shape):
        return tuple(array.shape)
    return tuple(int(size if isinstance(size, int) else max(size)) for size in chunks)


def locate(array: Any, what: str, chain: int, draw: int) -> dict[str, Any]:
    """Find the array, the chunk and, for a zarr store, the file that hold a draw."""
    position = (chain, draw, 0)[-len(array.shape) :]
    chunk = tuple(i // size for i, size in zip(position, chunk_shape(array), strict=True))
    return {
        "array": getattr(array, "path", None) or what,
        "chunk": chunk,
        "file": chunk_file(array, chunk),
    }


def find_missing(array: Any, what: str) -> None:
    """Refuse a zarr array with missing chunks, which zarr would read as zeros."""
    if not hasattr(array, "nchunks_initialized") or not hasattr(array, "metadata"):
        return
    grid = [
        -(-size // chunk_size)
        for size, chunk_size in zip(array.shape, chunk_shape(array), strict=True)
    ]
    # zarr counts the chunks in each shard
    per_shard = prod(chunk_shape(array)) // prod(array.chunks)
    total, stored = prod(grid), array.nchunks_initialized // per_shard
    if stored >= total:
        return
    for chunk in product(*(range(size) for size in grid)):
        if not _exists(array, chunk):
            reason = f"{total - stored} of {total} chunks are missing, and zarr would give zeros"
            raise CorruptChunkError(array.path or what, chunk, chunk_file(array, chunk), reason)


def unreadable(array: Any, what: str, first: int, last: int, error: Exception) -> Exception:
    """Find the first chunk that cannot be read, and create the error that names it."""
    sizes = chunk_shape(array)
    edges = list(array.shape)
    start = [0] * len(edges)
    if len(edges) > 2:
        start[2], edges[2] = first, last
    grid = (range(a // size, -(-b // size)) for a, b, size in zip(start, edges, sizes, strict=True))
    for chunk in product(*grid):
        corner = tuple(
            slice(i * size, min((i + 1) * size, n))
            for i, size, n in zip(chunk, sizes, array.shape, strict=True)
        )
        try:
            np.asarray(array[corner])
        except Exception as cause:
            name, reason = getattr(array, "path", None) or what, f"{type(cause).__name__}: {cause}"
            return CorruptChunkError(name, chunk, chunk_file(array, chunk), reason)
    return error


def _exists(array: Any, chunk: tuple[int, ...]) -> bool:
    from zarr.core.sync import sync  # no public name: zarr-developers/zarr-python issue 3637

    return sync((array.store_path / array.metadata.encode_chunk_key(chunk)).exists())


def chunk_file(array: Any, chunk: tuple[int, ...]) -> str | None:
    """Find the file of a zarr store that holds a chunk; None for other arrays."""
    if not hasattr(array, "store_path") or not hasattr(array.metadata, "encode_chunk_key"):
        return None
    return str(array.store_path / array.metadata.encode_chunk_key(chunk)).removeprefix("file://")


class WorkerLostError(RuntimeError):
    """The workers of a cluster are lost, or one piece of work crashes them each time.

    When a single worker dies, another one does its work. This is raised when there has been no
    worker for two minutes (`dask.config.set({"steinax.patience": 600})` makes it ten), when the
    scheduler is lost, and when a piece was lost with its worker several times. Stored results are
    not lost.

    Example::

        from dask.distributed import Client, LocalCluster

        try:
            result = sx.estimate("mu", stream, client=Client(address), keep="kept")
        except sx.working.WorkerLostError:  # the same folder: only what is missing is computed
            result = sx.estimate("mu", stream, client=Client(LocalCluster()), keep="kept")
    """


class OtherRunError(ValueError):
    """A folder of stored results belongs to a run with other settings.

    >>> import tempfile
    >>> from steinax.working import gather
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = list(gather(abs, [-1, 2], keep=folder, label="absolute values"))
    ...     try:
    ...         gather(float, [-1, 2], keep=folder, label="as they are")
    ...     except OtherRunError as error:
    ...         print("another run (another label)" in str(error))
    True
    """


class NotKeptWarning(UserWarning):
    """Results could not be written to the folder of stored results; the run itself continues.

    Its results are right, and those stored before remain. To stop a run at once when the disk is
    full, turn the warning into an error:

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", NotKeptWarning)  # and call `estimate` here
    """


DIGEST = 32  # bytes of the checksum before each stored result
MANIFEST = "manifest.json"
FULL = {errno.ENOSPC, errno.EDQUOT}  # a full disk, or a user's quota


class Kept:
    """Store of the finished results of one run, each in a file that is either complete or absent.

    A file is a checksum and an npz archive. It is written under a temporary name, flushed to disk
    (fsync) and then renamed, so a killed process leaves no incomplete file under the final name.
    """

    def __init__(self, folder: str | os.PathLike[str], label: str, pieces: int):
        self._folder = Path(folder)
        self._run = {"label": label, "pieces": pieces, "steinax": version("steinax")}
        self._lock = threading.Lock()
        self._claimed = False
        self._warned = False
        try:
            self._claim()
        except OSError as error:
            if error.errno not in FULL:
                error.add_note(
                    "nothing was computed yet: give `keep` a folder that can be written to."
                )
                raise
            self._warn(error, len(json.dumps(self._run)))

    def load(self, index: int) -> Any:
        """Load the result of a piece.

        Raises:
            KeyError: if it was not stored, or if its file is truncated or altered.
        """
        try:
            content = self._path(index).read_bytes()
            if not self._claimed or content[:DIGEST] != _digest(content[DIGEST:]):
                raise KeyError(index)
            return from_bytes(content[DIGEST:])
        except (OSError, ValueError):
            raise KeyError(index) from None

    def store(self, index: int, result: object) -> None:
        """Write a result; if that fails, warn once and let the run continue."""
        content = to_bytes(result)
        try:
            with self._lock:
                self._claim()
            _write(self._path(index), _digest(content) + content)
        except OSError as error:
            self._warn(error, len(content) + DIGEST)

    def _path(self, index: int) -> Path:
        return self._folder / f"{index:08d}.kept"

    def _claim(self) -> None:
        """Claim the folder for this run, or refuse it if it belongs to another."""
        if self._claimed:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        manifest = self._folder / MANIFEST
        manifest_content = _read_manifest(manifest)
        if manifest_content is None and not any(self._folder.glob("*.kept")):
            _write(manifest, json.dumps(self._run, indent=1).encode())
        elif manifest_content != self._run:
            manifest_content = manifest_content or {}
            differing = [key for key in self._run if manifest_content.get(key) != self._run[key]]
            raise OtherRunError(
                f"{self._folder} holds the results of another run (another "
                f"{', '.join(differing)}): give `keep` another folder, or delete this one to start "
                "again."
            )
        for unfinished in self._folder.glob("*.unfinished"):
            unfinished.unlink()
        self._claimed = True

    def _warn(self, error: OSError, size: int) -> None:
        with self._lock:
            if self._warned:
                return
            self._warned = True
        warn(
            f"{size:,} bytes could not be kept in {self._folder}: {error.strerror}. The run continues "
            "and its results are right; if it is stopped, results that were not kept are computed "
            "again. To keep further results, make room there.",
            NotKeptWarning,
        )


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=DIGEST).digest()


def _read_manifest(path: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError:  # damaged: the run of these results is unknown
        return {}
    return content if isinstance(content, dict) else {}


def _write(path: Path, content: bytes) -> None:
    unfinished = path.with_suffix(".unfinished")
    try:
        with unfinished.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except OSError:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise
