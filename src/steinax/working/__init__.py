"""Many pieces of work: on threads or on a cluster, resumed after an interruption.

Nothing here knows what a draw is: `gather` calls a function on each piece and gives the results in
order. Streams and farms of posteriors are built on it.
"""

from ._gather import gather
from ._keeping import CorruptChunkError, NotKeptWarning, OtherRunError, WorkerLostError

__all__ = [
    "CorruptChunkError",
    "NotKeptWarning",
    "OtherRunError",
    "WorkerLostError",
    "gather",
]
