"""Workers killed, runs interrupted, disks full: nothing lost, nothing silently wrong."""

import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

from steinax.working import NotKeptWarning, OtherRunError, gather
from working import coordinator
from working.pieces import Logged, assert_same, calls, kept, places


def _wait_until(condition, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.parametrize("victims", [1, 2])
def test_workers_killed_in_mid_run_are_survived(tmp_path, client, victims):
    """With both of them the task itself is lost from their memory, and made again."""
    client.wait_for_workers(2, timeout=60)
    loop = list(gather(Logged(tmp_path / "loop"), range(40), threads=1))
    log = tmp_path / "log"
    results = gather(Logged(log, 0.05), range(40), client=client)
    found = [next(results) for _ in range(8)]
    killed = [*client.run(os.getpid).values()][:victims]
    for process in killed:
        os.kill(process, signal.SIGKILL)
    found += results
    assert_same(found, loop)
    assert set(killed) <= {process for _, process in calls(log)}
    assert {process for _, process in calls(log)} - set(killed)


def _start(folder: Path, address: str | None) -> subprocess.Popen:
    arguments = [folder / "log", folder / "kept", folder / "result"]
    return subprocess.Popen(
        [
            sys.executable,
            coordinator.__file__,
            *map(str, arguments),
            *([address] if address else []),
        ],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        stderr=subprocess.PIPE,
    )


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL], ids=["SIGINT", "SIGKILL"])
@pytest.mark.parametrize("engine", ["threads", "cluster"])
def test_a_run_that_was_stopped_computes_only_what_is_missing(tmp_path, client, stop, engine):
    address = client.scheduler.address if engine == "cluster" else None
    log, folder, result = tmp_path / "log", tmp_path / "kept", tmp_path / "result"
    expected = list(gather(Logged(tmp_path / "loop"), coordinator.PIECES, threads=1))

    first = _start(tmp_path, address)
    _wait_until(lambda: len(kept(folder)) >= 10 or first.poll() is not None)
    first.send_signal(stop)
    _, said = first.communicate(timeout=60)
    assert first.returncode in {-stop, 128 + stop}, said.decode()
    assert not result.exists()
    time.sleep(3 * coordinator.SECONDS)  # a worker ends the piece it was at
    done, before = kept(folder), len(places(log))
    assert 10 <= len(done) < len(coordinator.PIECES)

    second = _start(tmp_path, address)
    _, said = second.communicate(timeout=60)
    assert second.returncode == 0, said.decode()
    assert sorted(places(log)[before:]) == sorted(set(coordinator.PIECES) - done)
    assert result.read_bytes() == b"".join(one.parts["gram"].tobytes() for one in expected)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_disk_that_fills_up_stops_nothing_and_is_said_once(small_disk, tmp_path, threads):
    loop = list(gather(Logged(tmp_path / "loop"), range(30), threads=1))
    log = tmp_path / "log"
    with pytest.warns(NotKeptWarning, match="No space left on device") as said:
        found = list(gather(Logged(log), range(30), threads=threads, keep=small_disk))
    assert_same(found, loop)
    assert len(said) == 1
    done = kept(small_disk)
    assert 0 < len(done) < 30
    assert not list(small_disk.glob("*.unfinished"))

    subprocess.run(["mount", "-o", "remount,size=1m", str(small_disk)], check=True)
    again = list(gather(Logged(log), range(30), threads=threads, keep=small_disk))
    assert_same(again, loop)
    assert sorted(places(log)[30:]) == sorted(set(range(30)) - done)
    assert kept(small_disk) == set(range(30))


def test_a_disk_that_is_full_from_the_start_stops_nothing_and_serves_when_there_is_room(
    small_disk, tmp_path
):
    ballast = small_disk / "ballast"
    with pytest.raises(OSError, match="No space left"), ballast.open("wb") as file:
        file.write(bytes(1_000_000))
    loop = list(gather(Logged(tmp_path / "loop"), range(6), threads=1))
    with pytest.warns(NotKeptWarning, match="No space left on device") as said:
        results = gather(Logged(tmp_path / "log"), range(6), threads=1, keep=small_disk, label="a")
        found = [next(results) for _ in range(3)]
        assert kept(small_disk) == set()
        ballast.unlink()
        found += results
    assert_same(found, loop)
    assert len(said) == 1
    assert kept(small_disk) == {3, 4, 5}
    with pytest.raises(OtherRunError):
        gather(Logged(tmp_path / "log"), range(6), keep=small_disk, label="b")


def test_a_folder_that_nobody_could_write_is_said_before_any_work(tmp_path):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(OSError, match="Not a directory") as caught:
        gather(Logged(tmp_path / "log"), range(3), keep=tmp_path / "file" / "kept")
    assert "give `keep` a folder that can be written" in caught.value.__notes__[0]
    assert places(tmp_path / "log") == []


def test_one_result_that_finds_no_room_is_the_only_one_that_is_not_kept(tmp_path):
    """The kernel's own ENOSPC, from /dev/full: no mount is needed."""
    log, folder = tmp_path / "log", tmp_path / "kept"
    results = gather(Logged(log), range(6), threads=1, keep=folder)
    found = [next(results)]
    (folder / "00000003.unfinished").symlink_to("/dev/full")
    with pytest.warns(NotKeptWarning, match=r"bytes could not be kept.*make room there"):
        found += results
    assert kept(folder) == {0, 1, 2, 4, 5}
    assert_same(list(gather(Logged(log), range(6), threads=1, keep=folder)), found)
    assert places(log) == [0, 1, 2, 3, 4, 5, 3]


def test_who_makes_an_error_of_the_warning_is_stopped_by_a_full_disk(tmp_path):
    log, folder = tmp_path / "log", tmp_path / "kept"
    results = gather(Logged(log), range(6), threads=1, keep=folder)
    next(results)
    (folder / "00000003.unfinished").symlink_to("/dev/full")
    with warnings.catch_warnings(), pytest.raises(NotKeptWarning):
        warnings.simplefilter("error", NotKeptWarning)
        list(results)
    assert kept(folder) == {0, 1, 2}
