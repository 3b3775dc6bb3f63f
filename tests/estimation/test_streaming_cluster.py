"""The same call on the workers of a real cluster, and the memory that a stream takes."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import dask.array
import jax.numpy as jnp
import numpy as np
import pytest
import xarray
from dask.distributed import Client, LocalCluster

import steinax as sx
import targets
from full import only_full

ROOT = Path(__file__).parents[2]
F = {"sine": lambda x: jnp.sin(x[0] + x[1]), "tau": "tau"}
KERNEL = sx.KernelTranslates(sx.kernels.SquaredExponential(1.5), sx.Landmarks(40))
FAMILIES = {"polynomial": sx.Polynomial(2), "sum": sx.Polynomial(1) + KERNEL}


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(**settings) as cluster, Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def sample() -> sx.Sample:
    plain = targets.skewed(3).sample(0, length=600)
    variables = xarray.Dataset({"tau": (("chain", "draw"), np.exp(plain.draws[..., 0] / 4))})
    return sx.Sample(plain.draws, plain.scores, variables=variables)


def assert_equal(one: sx.Estimate, other: sx.Estimate) -> None:
    for field in ("value", "mcse", "ess", "plain_value", "plain_mcse"):
        np.testing.assert_allclose(getattr(one, field), getattr(other, field), rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_workers_give_what_threads_give(family: str, sample, client, tmp_path: Path) -> None:
    sx.save(tmp_path / "a.zarr", sample)
    stream = sx.from_zarr(tmp_path / "a.zarr", block=100)
    here = sx.estimate(F, stream, FAMILIES[family])
    there = sx.estimate(F, stream, FAMILIES[family], client=client, keep=tmp_path / "kept")
    assert_equal(there, here)
    assert_equal(sx.estimate(F, stream, FAMILIES[family], keep=tmp_path / "kept"), here)


@pytest.mark.slow
def test_workers_compute_blocks_of_dask_where_they_are(sample, client) -> None:
    variables = xarray.Dataset({"tau": sample.variables["tau"]}).chunk(draw=150)
    arrays = (
        dask.array.from_array(one, chunks=(1, 150, 3)) for one in (sample.draws, sample.scores)
    )
    stream = sx.Stream.from_arrays(*arrays, variables=variables)
    assert_equal(sx.estimate(F, stream, client=client), sx.estimate(F, stream))


@pytest.mark.slow
def test_a_corrupt_chunk_is_named_by_a_worker(sample, client, tmp_path: Path) -> None:
    sx.save(tmp_path / "a.zarr", sample)
    stream = sx.from_zarr(tmp_path / "a.zarr")
    with (tmp_path / "a.zarr/sample_stats/unconstrained_draw/c/2/0/0").open("r+b") as file:
        file.truncate(1000)
    with pytest.raises(sx.working.CorruptChunkError) as caught:
        sx.estimate(F, stream, client=client)
    assert caught.value.chunk == (2, 0, 0)


# 400 MB of draws and as much of scores. Blocks of 16 MB on two threads, read without copies, with features
# and what malloc does not give back, took 320 MB more than a small estimate.
MEGABYTES = 450
PROGRAM = """
import sys
from pathlib import Path
import steinax as sx
from benchmarks._pinned import peak_megabytes
from benchmarks.scale._data import write_store

folder = Path(sys.argv[1])
for name, draws in (("small", 4000), ("large", 5_000_000)):
    write_store(folder / name, draws, 10)
f = {"square": lambda x: x[0] ** 2}
sx.estimate(f, sx.from_zarr(folder / "small"), sx.Polynomial(2))
before = peak_megabytes()
found = sx.estimate(f, sx.from_zarr(folder / "large"), sx.Polynomial(2))
print(peak_megabytes() - before, found.value[0], found.mcse[0])
"""


@only_full  # CI has the same question for blocks that are made, in test_moments.py
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
def test_memory_is_that_of_a_few_blocks(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    grown, value, mcse = map(float, done.stdout.split())
    assert grown < MEGABYTES
    assert abs(value - 1.25) < 1e-9  # 0.5^2 + 1: a square is fitted without any rest
    assert mcse < 1e-9
