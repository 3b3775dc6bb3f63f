"""Results kept in a folder, chunks of stored arrays, and the errors of both."""

import errno
import json
import os
import threading
import warnings
from collections.abc import Sequence
from contextlib import suppress
from hashlib import blake2b
from importlib.metadata import version
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from .._serialise import from_bytes, to_bytes


class CorruptChunkError(RuntimeError):
    """A chunk of stored draws is missing, cut short or not what was written.

    Attributes:
        array: the name of the array.
        chunk: the place of the chunk in the grid of chunks.
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
        "file": chunk_file(array, chunk),
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
            raise CorruptChunkError(array.path or what, chunk, chunk_file(array, chunk), reason)


def _exists(array: Any, chunk: tuple[int, ...]) -> bool:
    from zarr.core.sync import sync

    return sync((array.store_path / array.metadata.encode_chunk_key(chunk)).exists())


def chunk_file(array: Any, chunk: tuple[int, ...]) -> str | None:
    """The file of a zarr store that holds a chunk; None if there is no such file."""
    if not hasattr(array, "store_path") or not hasattr(array.metadata, "encode_chunk_key"):
        return None
    return str(array.store_path / array.metadata.encode_chunk_key(chunk)).removeprefix("file://")


class WorkerLostError(RuntimeError):
    """The workers of a cluster are gone, or one piece of work takes them down each time.

    A worker that dies is survived: another one does its work. This is raised when there has been no
    worker for two minutes (`dask.config.set({"steinax.patience": 600})` makes it ten), when the
    scheduler is gone, and when a piece was lost with its worker several times. Nothing that is
    kept is lost.

    Example::

        from dask.distributed import Client, LocalCluster

        try:
            result = sx.estimate("mu", stream, client=Client(address), keep="kept")
        except sx.working.WorkerLostError:  # the same folder: only what is missing is computed
            result = sx.estimate("mu", stream, client=Client(LocalCluster()), keep="kept")
    """


class OtherRunError(ValueError):
    """A folder of kept results belongs to a run with other settings.

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
    """Results could not be written to the folder of kept results; the run itself goes on.

    What it computes is right, and what was kept before stays. To stop a run at once when the disk
    is full, make an error of it:

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", NotKeptWarning)  # and call `estimate` here
    """


DIGEST = 32  # bytes of checksum before each kept result
MANIFEST = "manifest.json"
FULL = {errno.ENOSPC, errno.EDQUOT}  # of a disk, or of what one user may have of it


class Kept:
    """The finished results of one run, each in a file that is there whole or not at all.

    A file is a checksum and an npz archive. It is written under another name, brought to disk
    (fsync) and then renamed, so a killed process leaves no half of it under its own name.
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
                    "nothing was computed yet: give `keep` a folder that can be written."
                )
                raise
            self._warn(error, len(json.dumps(self._run)))

    def load(self, place: int) -> Any:
        """The result of a piece.

        Raises:
            KeyError: if it was not kept, or if its file is cut short or altered: not believed.
        """
        try:
            content = self._path(place).read_bytes()
            if not self._claimed or content[:DIGEST] != _digest(content[DIGEST:]):
                raise KeyError(place)
            return from_bytes(content[DIGEST:])
        except (OSError, ValueError):
            raise KeyError(place) from None

    def store(self, place: int, result: object) -> None:
        """Write a result. If that fails the run goes on, with one warning: nothing is lost yet."""
        content = to_bytes(result)
        try:
            with self._lock:
                self._claim()
            _write(self._path(place), _digest(content) + content)
        except OSError as error:
            self._warn(error, len(content) + DIGEST)

    def _path(self, place: int) -> Path:
        return self._folder / f"{place:08d}.kept"

    def _claim(self) -> None:
        """Make the folder this run's own, or refuse it if it is another's."""
        if self._claimed:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        manifest = self._folder / MANIFEST
        found = _read_manifest(manifest)
        if found is None and not any(self._folder.glob("*.kept")):
            _write(manifest, json.dumps(self._run, indent=1).encode())
        elif found != self._run:
            found = found or {}
            differing = [key for key in self._run if found.get(key) != self._run[key]]
            raise OtherRunError(
                f"{self._folder} holds the results of another run (another "
                f"{', '.join(differing)}): give `keep` another folder, or delete this one to start "
                "again."
            )
        for rest in self._folder.glob("*.unfinished"):
            rest.unlink()
        self._claimed = True

    def _warn(self, error: OSError, size: int) -> None:
        with self._lock:
            if self._warned:
                return
            self._warned = True
        warnings.warn(
            f"{size:,} bytes could not be kept in {self._folder}: {error.strerror}. "
            "The run goes on and its results are right; if it is stopped, those not kept are "
            "computed again. Each further result is tried: make room there.",
            NotKeptWarning,
            stacklevel=2,
        )


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=DIGEST).digest()


def _read_manifest(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError:  # damaged: nobody knows whose results these are
        return {}
    return found if isinstance(found, dict) else {}


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
