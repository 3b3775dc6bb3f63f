"""Threads and loops: order, a bounded number in flight, errors that name their piece."""

import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from steinax._numerics import few_threads
from steinax.working import CorruptChunkError, gather
from steinax.working._gather import usable_cores
from working.pieces import Logged, assert_same, places


def test_threads_and_a_loop_give_the_same_bits_in_order(tmp_path):
    task = Logged(tmp_path / "log")
    loop = list(gather(task, range(12), threads=1))
    assert [one.place for one in loop] == list(range(12))
    assert_same(list(gather(task, range(12), threads=3)), loop)
    assert_same(list(gather(task, range(12))), loop)


def test_results_come_in_order_when_the_first_piece_is_the_slowest():
    def task(place: int) -> int:
        time.sleep(0.2 if place == 0 else 0.0)
        return place

    assert list(gather(task, range(8), threads=4)) == list(range(8))


def test_two_threads_work_at_the_same_time():
    both = threading.Barrier(2)
    assert list(gather(lambda _: both.wait(timeout=20) >= 0, range(6), threads=2)) == [True] * 6


def test_no_more_than_two_pieces_per_thread_are_ahead_of_the_consumer(tmp_path):
    log = tmp_path / "log"
    results = gather(Logged(log), range(50), threads=3)
    for taken in range(1, 6):
        next(results)
        time.sleep(0.1)
        assert len(places(log)) <= taken + 2 * 3
    results.close()


def test_nothing_starts_before_the_first_result_is_asked_for_and_a_loop_is_never_ahead(tmp_path):
    log = tmp_path / "log"
    results = gather(Logged(log), range(5), threads=1)
    assert places(log) == []
    next(results)
    assert places(log) == [0]


@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_stops_the_rest_and_names_its_piece(tmp_path, threads):
    log = tmp_path / "log"

    class Broken(Logged):
        def __call__(self, place):
            if place == 4:
                raise ZeroDivisionError("no variance")
            return super().__call__(place)

    with pytest.raises(ZeroDivisionError, match="no variance") as caught:
        list(gather(Broken(log), range(1000), threads=threads, what="moments"))
    assert caught.value.__notes__ == ["moments: piece 4 of 1000 (from 0), 4"]
    assert len(places(log)) <= 4 + 2 * threads


def _blas_threads(_: object = None) -> set[int]:
    return {row["num_threads"] for row in threadpool_info() if row["user_api"] == "blas"}


def test_blas_has_one_thread_in_each_of_several_and_all_of_them_after():
    with threadpool_limits(3, user_api="blas"):
        assert list(gather(_blas_threads, range(4), threads=2)) == [{1}] * 4
        assert _blas_threads() == {3}
        assert list(gather(_blas_threads, range(2), threads=1)) == [{3}] * 2


def test_blas_has_its_threads_back_when_two_runs_end_in_the_order_in_which_they_began():
    with threadpool_limits(3, user_api="blas"):
        first = gather(_blas_threads, range(6), threads=2)
        second = gather(_blas_threads, range(6), threads=2)
        assert next(first) == next(second) == {1}
        first.close()
        assert next(second) == {1}
        second.close()
        assert _blas_threads() == {3}


def test_the_default_is_the_cores_that_this_process_may_use():
    import os

    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert usable_cores() == 1
    finally:
        os.sched_setaffinity(0, allowed)
    assert usable_cores() == len(allowed)


def test_few_draws_are_worked_on_by_one_thread_of_blas_and_many_by_all():
    with threadpool_limits(3, user_api="blas"):
        with few_threads(SimpleNamespace(draws=np.zeros((4, 250, 10)))):
            assert _blas_threads() == {1}
        with few_threads(SimpleNamespace(draws=np.zeros((4, 250_000, 2)))):
            assert _blas_threads() == {3}
        assert _blas_threads() == {3}


def test_no_pieces_and_no_threads():
    assert list(gather(str, [])) == []
    with pytest.raises(ValueError, match="threads = 0: give 1 or more"):
        gather(str, [1], threads=0)


def test_a_corrupt_chunk_is_named_and_travels_between_processes():
    import pickle

    error = CorruptChunkError("draws", (3, 0), file="a.zarr/draws/c/3/0", reason="cut short")
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error)
    assert (copy.array, copy.chunk, copy.file) == ("draws", (3, 0), "a.zarr/draws/c/3/0")
    assert "chunk (3, 0) of 'draws'" in str(error)
