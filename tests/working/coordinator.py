"""A run in a process of its own, for tests that stop it: `python coordinator.py log kept result`.

A fourth argument is the address of a cluster; without one, two threads do the work.
"""

import signal
import sys
from pathlib import Path

from steinax.working import gather
from working.pieces import Logged

PIECES = range(40)
SECONDS = 0.1


def main(log: str, folder: str, result: str, address: str | None = None) -> None:
    client = None
    if address is not None:
        from dask.distributed import Client

        client = Client(address)
    found = gather(
        Logged(log, SECONDS), PIECES, client=client, threads=2, keep=folder, label="faults"
    )
    sums = [one.parts["gram"].tobytes() for one in found]
    Path(result).write_bytes(b"".join(sums))


if __name__ == "__main__":
    # a shell has what it starts in the background ignore the signal
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main(*sys.argv[1:])
