"""Faults under a whole estimate from a zarr store: it is the same number, or an error with a name."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import steinax as sx
from working import stored_posterior
from working.stored_posterior import estimate

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("store") / "draws.zarr"
    stored_posterior.write(path)
    return path


@pytest.fixture(scope="module")
def undisturbed(store) -> sx.Estimate:
    return estimate(store)


def _assert_same(found: sx.Estimate, expected: sx.Estimate) -> None:
    """Bit for bit: how draws are dealt out does not depend on who works, nor does the order."""
    np.testing.assert_array_equal(found.value, expected.value)
    np.testing.assert_array_equal(found.mcse, expected.mcse)


def _kept(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*.kept")}


def _wait_for(folder: Path, pieces: int) -> None:
    end = time.monotonic() + 120
    while len(_kept(folder)) < pieces:
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)


def test_a_worker_killed_in_mid_estimate_changes_no_bit(store, undisturbed, client, tmp_path):
    whole, folder = tmp_path / "whole", tmp_path / "kept"
    _assert_same(estimate(store, client=client, keep=whole), undisturbed)
    victim = client.run(os.getpid).popitem()[1]
    at_death = []

    def kill() -> None:
        _wait_for(folder, 5)
        os.kill(victim, signal.SIGKILL)
        at_death.append(len(_kept(folder)))

    killer = threading.Thread(target=kill)
    killer.start()
    found = estimate(store, client=client, keep=folder)
    killer.join()
    _assert_same(found, undisturbed)
    assert at_death[0] < len(_kept(folder)) == len(_kept(whole))
    assert victim not in client.run(os.getpid).values()


def test_an_estimate_that_was_killed_goes_on_where_it_was(store, undisturbed, tmp_path):
    folder = tmp_path / "kept"
    first = subprocess.Popen(
        [sys.executable, stored_posterior.__file__, str(store), str(folder)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    _wait_for(folder, 5)
    first.kill()
    assert first.wait(timeout=60) == -signal.SIGKILL
    before = _kept(folder)
    _assert_same(estimate(store, keep=folder), undisturbed)
    after = _kept(folder)
    assert len(after) > len(before) >= 5
    assert {path: after[path] for path in before} == before, "nothing is computed twice"


@pytest.mark.parametrize("half", [0, 1])
@pytest.mark.parametrize("engine", ["threads", "cluster"])
def test_a_chunk_cut_short_in_mid_run_is_named_and_mended_without_losing_the_rest(
    store, undisturbed, client, tmp_path, engine, half
):
    folder = tmp_path / "kept"
    working = {"client": client if engine == "cluster" else None, "keep": folder}
    chunk = store / "scores" / "c" / "2" / str(half) / "0"
    whole = chunk.read_bytes()

    def cut() -> None:
        _wait_for(folder, 4)  # all chains were read once
        chunk.write_bytes(whole[: len(whole) // 2])

    cutter = threading.Thread(target=cut)
    cutter.start()
    with pytest.raises(sx.working.CorruptChunkError) as caught:
        estimate(store, **working)
    cutter.join()
    chunk.write_bytes(whole)
    before = _kept(folder)
    assert len(before) >= 4
    _assert_same(estimate(store, **working), undisturbed)
    after = _kept(folder)
    assert {path: after[path] for path in before} == before
    assert (caught.value.array, caught.value.chunk) == ("scores", (2, half, 0))
    assert caught.value.file == str(chunk)


@pytest.mark.parametrize("half", [0, 1])
def test_of_two_chunks_that_are_read_at_once_the_one_that_was_cut_is_named(tmp_path, half):
    store = tmp_path / "draws.zarr"
    stored_posterior.write(store)
    chunk = store / "draws" / "c" / "1" / str(half) / "0"
    chunk.write_bytes(chunk.read_bytes()[:1000])
    with pytest.raises(sx.working.CorruptChunkError) as caught:
        estimate(store)
    assert (caught.value.array, caught.value.chunk) == ("draws", (1, half, 0))
    assert caught.value.file == str(chunk)


def test_a_full_disk_under_an_estimate_changes_no_bit(store, undisturbed, small_disk):
    with pytest.warns(sx.working.NotKeptWarning, match="No space left on device"):
        found = estimate(store, keep=small_disk / "kept")
    _assert_same(found, undisturbed)
    partly = len(_kept(small_disk))
    subprocess.run(["mount", "-o", "remount,size=4m", str(small_disk)], check=True)
    _assert_same(estimate(store, keep=small_disk / "kept"), undisturbed)
    assert len(_kept(small_disk)) > partly > 0
