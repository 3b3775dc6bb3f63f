"""What can go wrong with chunks, workers and folders, by name."""

from collections.abc import Sequence


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


__all__ = ["CorruptChunkError", "NotKeptWarning", "OtherRunError", "WorkerLostError"]
