"""Run a function on many pieces of work, on threads or a cluster, and resume after an interruption.

This package is independent of draws and scores: `gather` calls a function on each piece and yields
the results in order. Streams and farms of posteriors are built on it.
"""

from ._fingerprint import fingerprint as fingerprint
from ._gather import gather
from ._keeping import (
    CorruptChunkError,
    NotKeptWarning,
    OtherRunError,
    WorkerLostError,
    chunk_file as chunk_file,
    chunk_shape as chunk_shape,
    find_missing as find_missing,
    locate as locate,
    unreadable as unreadable,
)

__all__ = [
    "CorruptChunkError",
    "NotKeptWarning",
    "OtherRunError",
    "WorkerLostError",
    "gather",
]
