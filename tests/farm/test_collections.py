"""Farms over files and samples: ordered, resumable, on processes and on a cluster."""

import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
import xarray

import posterior_zoo
import steinax as sx
from steinax.farm import _many
from steinax.farm._batched import NUMBERS
from steinax.working import OtherRunError


def _samples() -> list[sx.Sample]:
    """Of three shapes, mixed."""
    draws, scores = posterior_zoo.zoo(1)
    cuts = [250, 100, 250, 100, 64, 250, 64, 100]
    return [
        sx.Sample(x[:, :cut], s[:, :cut]) for x, s, cut in zip(draws, scores, cuts, strict=True)
    ]


def _same(one: sx.farm.Estimates, other: sx.farm.Estimates) -> None:
    assert one.names == other.names
    assert one.status.tolist() == other.status.tolist()
    assert one.reason.tolist() == other.reason.tolist()
    for number in NUMBERS:
        np.testing.assert_array_equal(getattr(one, number), getattr(other, number))


def test_samples_of_several_shapes_come_in_order() -> None:
    samples = _samples()
    rows = sx.estimate_many(posterior_zoo.square, samples)
    assert rows.ok.all(), rows
    for i, sample in enumerate(samples):
        alone = sx.estimate(posterior_zoo.square, sample, sx.Polynomial(2))
        np.testing.assert_allclose(rows.value[i], alone.value, rtol=1e-9)
        np.testing.assert_allclose(rows.plain_mcse[i], alone.plain_mcse, rtol=1e-9)


def test_rows_are_in_the_order_of_their_sources() -> None:
    """Whatever is computed together: posteriors of three lengths, and one that cannot be read."""
    rng = np.random.default_rng(0)
    draws = [rng.normal(size=(4, length, 1)) for length in (50, 60, 70, 50, 60, 50)]
    sources = [*draws[:2], None, *draws[2:]]
    rows = sx.estimate_many("x", sources, load=lambda x: sx.Sample(x, -x))
    expected = [np.nan if x is None else x.mean() for x in sources]
    np.testing.assert_allclose(rows.plain_value[:, 0], expected, atol=1e-12)


def test_other_integrands_fail() -> None:
    x = np.random.default_rng(0).normal(size=(4, 100, 2))
    samples = [sx.Sample(x, -x), sx.Sample(x[..., :1], -x[..., :1]), sx.Sample(x, -x)]
    rows = sx.estimate_many("x", samples)
    assert rows.status.tolist() == ["ok", "integrands", "ok"]
    assert "x[0], x[1]" in rows.reason[1]


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_files(tmp_path: Path, suffix: str) -> None:
    samples = _samples()[:4]
    paths = [tmp_path / f"{i}{suffix}" for i in range(4)]
    for path, sample in zip(paths, samples, strict=True):
        sx.save(path, sample)
    (tmp_path / "broken.nc").write_bytes(b"no file of draws")
    sources = [paths[0], tmp_path / "missing.nc", *paths[1:], str(tmp_path / "broken.nc")]
    rows = sx.estimate_many(posterior_zoo.square, sources)
    good = [0, 2, 3, 4]
    assert rows.status[[1, 5]].tolist() == ["unreadable", "unreadable"]
    assert "missing.nc" in rows.reason[1]
    direct = sx.estimate_many(posterior_zoo.square, samples)
    _same(rows[good], direct)


def test_a_function_that_loads() -> None:
    rows = sx.estimate_many("x", range(5), load=posterior_zoo.made)
    assert rows.status.tolist() == ["ok", "ok", "ok", "unreadable", "ok"]
    assert "three" in rows.reason[3]
    without = sx.estimate_many("x", range(2))
    assert set(without.status) == {"unreadable"}
    assert "give load=" in without.reason[0]


def test_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is interrupted after some pieces computes only the others when it is started again."""
    monkeypatch.setattr(_many, "SOURCES", 2)
    visits = tmp_path / "visits"
    sources = [(str(visits), i) for i in range(8)]
    whole = sx.estimate_many("x", sources, load=posterior_zoo.counted)
    visits.unlink()
    keep = tmp_path / "kept"
    stop = tmp_path / "stop"
    stop.touch()
    monkeypatch.setattr(posterior_zoo, "STOP", (stop, 5))
    with pytest.raises(KeyboardInterrupt):
        sx.estimate_many("x", sources, load=posterior_zoo.counted, threads=1, keep=keep)
    first = visits.read_text().split()
    stop.unlink()
    rows = sx.estimate_many("x", sources, load=posterior_zoo.counted, threads=1, keep=keep)
    again = visits.read_text().split()[len(first) :]
    assert first == ["0", "1", "2", "3", "4"]
    assert again == ["4", "5", "6", "7"]
    _same(rows, whole)
    with pytest.raises(OtherRunError):
        sx.estimate_many("x", sources[:-1], load=posterior_zoo.counted, keep=keep)


def test_another_batch_is_another_run(tmp_path: Path) -> None:
    x, scores = posterior_zoo.zoo(1)
    rows = sx.estimate_many("x", sx.Batch(x, scores), keep=tmp_path)
    _same(sx.estimate_many("x", sx.Batch(x, scores), keep=tmp_path), rows)
    for f, batch in (("x", sx.Batch(x + 1, scores)), (lambda x: x, sx.Batch(x, scores))):
        with pytest.raises(OtherRunError):
            sx.estimate_many(f, batch, keep=tmp_path)


def test_what_was_kept_answers_only_its_own_question(tmp_path: Path) -> None:
    """Closures, diverging draws and variables change the rows, and so they make another run."""
    x = posterior_zoo.zoo(1)[0]
    flags = np.zeros(x.shape[:3], dtype=bool)

    def scaled(by: float):
        return {"square": lambda x: by * x[0] ** 2}

    def with_tau(by: float) -> list[sx.Sample]:
        tau = [by * np.exp(one[..., 0]) for one in x]
        trees = [xarray.Dataset({"tau": (("chain", "draw"), one)}) for one in tau]
        return [sx.Sample(one, -one, variables=tree) for one, tree in zip(x, trees, strict=True)]

    def batch(diverging: np.ndarray) -> sx.Batch:
        return sx.Batch(x, -x, diverging=diverging)

    pairs = {
        "closure": ((scaled(1.0), batch(flags)), (scaled(100.0), batch(flags))),
        "diverging": (("x", batch(flags)), ("x", batch(~flags))),
        "variables": (("tau", with_tau(1.0)), ("tau", with_tau(10.0))),
        "unasked": ((lambda tau: tau, with_tau(1.0)), (lambda x: x, with_tau(1.0))),
    }
    for name, (one, other) in pairs.items():
        rows = sx.estimate_many(*one, audit="off", keep=tmp_path / name)
        _same(sx.estimate_many(*one, audit="off", keep=tmp_path / name), rows)
        with pytest.raises(OtherRunError):
            sx.estimate_many(*other, audit="off", keep=tmp_path / name)
    sx.estimate_many("x", with_tau(1.0), keep=tmp_path / "x")
    sx.estimate_many("x", with_tau(2.0), keep=tmp_path / "x")  # nobody asks for tau


def test_a_posterior_on_disk_that_changed_is_another_run(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    x, scores = posterior_zoo.zoo(1)
    stored = [zarr.array(one) for one in (x, scores)]
    sx.estimate_many("x", sx.Batch(*stored), audit="off", keep=tmp_path)
    stored[0][3] = x[3] + 1  # neither the first nor the last
    with pytest.raises(OtherRunError):
        sx.estimate_many("x", sx.Batch(*stored), audit="off", keep=tmp_path)


def test_a_batch_on_disk(tmp_path: Path) -> None:
    """Arrays of zarr and mapped files are read piece by piece."""
    zarr = pytest.importorskip("zarr")
    x, scores = posterior_zoo.zoo(2)
    whole = sx.estimate_many("x", sx.Batch(x, scores))
    stored = [zarr.array(one, chunks=(4, *one.shape[1:])) for one in (x, scores)]
    _same(sx.estimate_many("x", sx.Batch(*stored)), whole)
    mapped = []
    for name, one in (("draws", x), ("scores", scores)):
        np.save(tmp_path / f"{name}.npy", one)
        mapped.append(np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    _same(sx.estimate_many("x", sx.Batch(*mapped)), whole)


def test_a_task_is_pickled() -> None:
    task = sx.farm.FarmTask(posterior_zoo.square, sx.Polynomial(1))
    samples = _samples()
    again = pickle.loads(pickle.dumps(task))
    _same(again(samples), task(samples))
    x, scores = posterior_zoo.zoo(1)
    _same(again(sx.Batch(x, scores)), sx.estimate_many(task.f, sx.Batch(x, scores), task.family))


@pytest.mark.slow
def test_processes_give_the_same_rows() -> None:
    """What Spark and Ray do: the task and the samples are pickled and sent to other processes."""
    task, samples = sx.farm.FarmTask(posterior_zoo.square), _samples()
    parts = [samples[:3], samples[3:]]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        rows = sx.farm.Estimates.concatenate(pool.map(task, parts))
    _same(rows, sx.farm.Estimates.concatenate(map(task, parts)))


@pytest.mark.slow
def test_a_cluster_gives_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(_many, "SOURCES", 2)
    monkeypatch.setattr(_many, "POSTERIORS", 3)
    x, scores = posterior_zoo.zoo(1)
    paths = [tmp_path / f"{i}.nc" for i in range(5)]
    for path, sample in zip(paths[:4], _samples(), strict=False):
        sx.save(path, sample)
    with (
        distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        _same(
            sx.estimate_many(posterior_zoo.square, paths, client=client),
            sx.estimate_many(posterior_zoo.square, paths),
        )
        batch = sx.Batch(x, scores)
        _same(sx.estimate_many("x", batch, client=client), sx.estimate_many("x", batch))


@pytest.mark.slow
def test_a_bag_of_samples() -> None:
    """The task is all that a dask bag needs."""
    bag = pytest.importorskip("dask.bag")
    samples, task = _samples(), sx.farm.FarmTask(posterior_zoo.square)
    rows = (
        bag.from_sequence(samples, npartitions=2).map_partitions(task).compute(scheduler="threads")
    )
    _same(sx.farm.Estimates.concatenate(rows), task(samples))


def test_rows_of_an_estimate() -> None:
    x, scores = posterior_zoo.zoo(1)
    rows = sx.estimate_many({"mean": lambda x: x[0]}, sx.Batch(x, scores))
    assert [one.value[0, 0] for one in rows] == rows.value[:, 0].tolist()
    np.testing.assert_array_equal(rows[-1].value, rows.value[-1:])
    with pytest.raises(IndexError):
        rows[len(rows)]
    low, high = rows.interval().T
    assert (low < rows.value.T).all()
    assert (high > rows.value.T).all()
    dataset = rows.to_dataset()
    assert dataset["mcse"].sel(integrand="mean").shape == (len(rows),)
    assert dataset["status"].values.tolist() == ["ok"] * len(rows)
