"""The same call on a cluster of processes: the same bits, in order, a bounded number in flight."""

import time

import pytest

pytest.importorskip("distributed")

import dask.config
from dask.distributed import Client, LocalCluster

from steinax.working import CorruptChunkError, WorkerLostError, gather
from working.pieces import Logged, Murderous, assert_same, calls, kept, places

pytestmark = pytest.mark.slow


class Unreadable(Logged):
    def __call__(self, place):
        if place == 3:
            raise CorruptChunkError("draws", (place, 0), reason="cut short")
        return super().__call__(place)


def test_a_cluster_gives_the_bits_of_a_loop_in_order_from_both_workers(tmp_path, client):
    loop = list(gather(Logged(tmp_path / "loop"), range(30), threads=1))
    log = tmp_path / "log"
    assert_same(list(gather(Logged(log, 0.02), range(30), client=client)), loop)
    assert sorted(places(log)) == list(range(30))
    assert len({process for _, process in calls(log)}) == 2


def test_two_runs_at_once_do_not_take_each_others_results(client):
    first = gather(lambda x: x + 1, range(20), client=client)
    second = gather(lambda x: x - 1, range(20), client=client)
    assert list(zip(first, second, strict=True)) == [(x + 1, x - 1) for x in range(20)]


def test_no_more_than_three_pieces_per_thread_are_ahead_of_the_consumer(tmp_path, client):
    log = tmp_path / "log"
    results = gather(Logged(log), range(100), client=client)
    for taken in range(1, 5):
        next(results)
        time.sleep(0.3)
        assert taken < len(places(log)) <= taken + 3 * 2
    results.close()


def test_an_error_on_a_worker_names_its_piece_and_stops_the_rest(tmp_path, client):
    log = tmp_path / "log"
    with pytest.raises(CorruptChunkError, match=r"chunk \(3, 0\) of 'draws'") as caught:
        list(gather(Unreadable(log), range(500), client=client, what="streaming"))
    assert caught.value.__notes__ == ["streaming: piece 3 of 500 (from 0), 3"]
    assert len(places(log)) < 30


def test_a_task_of_many_megabytes_is_sent_without_a_word(client):
    ballast = bytes(20_000_000)
    assert list(gather(lambda x: x + len(ballast), [1, 2], client=client)) == [
        20_000_001,
        20_000_002,
    ]


def test_what_a_cluster_kept_serves_threads_too(tmp_path, client):
    log, folder = tmp_path / "log", tmp_path / "kept"
    first = list(gather(Logged(log), range(12), client=client, keep=folder, label="a"))
    assert kept(folder) == set(range(12))
    (folder / "00000007.kept").unlink()
    assert_same(list(gather(Logged(log), range(12), threads=2, keep=folder, label="a")), first)
    (folder / "00000002.kept").write_bytes(b"cut")
    assert_same(list(gather(Logged(log), range(12), client=client, keep=folder, label="a")), first)
    assert sorted(places(log)[12:]) == [2, 7]


def test_what_is_no_client_is_refused(client):
    with pytest.raises(
        TypeError, match=r"client is a LocalCluster: give a dask.distributed.Client"
    ):
        list(gather(str, [1], client=client.cluster))


def test_a_piece_that_kills_every_worker_is_named(tmp_path):
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
        pytest.raises(
            WorkerLostError, match=r"lost with its worker 2 times.*more memory"
        ) as caught,
    ):
        client.run_on_scheduler(_allow_one_failure)
        list(gather(Murderous(tmp_path / "log"), [Murderous.victim], client=client))
    assert caught.value.__notes__ == [f"working: piece 0 of 1 (from 0), {Murderous.victim}"]


def _allow_one_failure(dask_scheduler):
    dask_scheduler.allowed_failures = 1


@pytest.mark.parametrize("lost", ["workers", "scheduler"])
def test_a_cluster_that_goes_away_is_an_error_and_no_endless_wait(tmp_path, lost):
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
        dask.config.set({"steinax.patience": 2}),
    ):
        results = gather(Logged(tmp_path / "log", 0.05), range(400), client=client)
        next(results)
        if lost == "workers":
            client.cluster.scale(0)  # pyright: ignore[reportOptionalMemberAccess]
        else:
            cluster.close()
        with pytest.raises(WorkerLostError, match="With `keep`, only what is missing"):
            list(results)
