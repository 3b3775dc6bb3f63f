"""A real cluster and a real small disk."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from dask.distributed import Client


@pytest.fixture(scope="module")
def client() -> "Iterator[Client]":
    """Two processes with one thread each."""
    dask = pytest.importorskip("dask.distributed")
    with (
        dask.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        dask.Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def small_disk(tmp_path) -> Iterator[Path]:
    """A real file system of 32 kB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=32k", "tmpfs", str(disk)]
    if os.getuid() != 0 or subprocess.run(mount, check=False).returncode != 0:
        pytest.skip("only root can mount a small disk; /dev/full stands in for it")
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)
