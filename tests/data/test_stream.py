"""A stream can be made of any array that is read by slices, and says so where it cannot."""

import pickle
from pathlib import Path

import dask.array
import h5py
import numpy as np
import pytest
import xarray
import zarr

import steinax as sx
from steinax.data._stream import lazy_sample
from steinax.working._keeping import chunk_shape

X = np.random.default_rng(0).normal(size=(4, 240, 3))
SCORES = -X
AXES = ("chain", "draw", "dim")


def as_zarr(path: Path, array: np.ndarray, name: str):
    return zarr.open_group(path / "arrays.zarr", mode="a").create_array(
        name, data=array, chunks=(1, 60, 3), compressors=None
    )


def as_h5py(path: Path, array: np.ndarray, name: str):
    return h5py.File(path / f"{name}.h5", "w").create_dataset(name, data=array, chunks=(1, 60, 3))


SOURCES = {
    "numpy": lambda path, array, name: array,
    "zarr": as_zarr,
    "dask": lambda path, array, name: dask.array.from_array(array, chunks=(1, 60, 3)),
    "h5py": as_h5py,
    "xarray": lambda path, array, name: xarray.DataArray(array, dims=AXES).chunk(draw=60),
}
F = {"first": "x[0]", "square": lambda x: x @ x}


@pytest.mark.parametrize("kind", SOURCES)
def test_every_kind_of_array_gives_the_same(kind: str, tmp_path: Path) -> None:
    make = SOURCES[kind]
    stream = sx.Stream.from_arrays(
        make(tmp_path, X, "draws"), make(tmp_path, SCORES, "scores"), block=60
    )
    blocks = list(stream)
    np.testing.assert_array_equal(np.concatenate([b.x for b in blocks]), X.reshape(-1, 3))
    np.testing.assert_array_equal(np.concatenate([b.score for b in blocks]), SCORES.reshape(-1, 3))
    assert [block.size for block in blocks] == [60] * 16
    got = sx.estimate(F, stream, sx.Polynomial(1))
    expected = sx.estimate(F, sx.Sample(X, SCORES), sx.Polynomial(1))
    for field in ("value", "mcse", "plain_value", "plain_mcse", "plain_ess", "plain_rhat"):
        np.testing.assert_allclose(
            getattr(got, field), getattr(expected, field), rtol=1e-9, atol=1e-14
        )


def test_one_chain_may_be_a_matrix() -> None:
    stream = sx.Stream.from_arrays(X[0], SCORES[0], ["a", "b", "c"])
    assert repr(stream) == "Stream(1 chain x 240 draws, 3 dimensions: a, b, c)"
    np.testing.assert_array_equal(next(iter(stream)).x, X[0])


def test_blocks_are_whole_chunks_of_about_16_megabytes() -> None:
    wide = dask.array.zeros((2, 10_000_000, 10), chunks=(1, 30_000, 10))
    assert chunk_shape(wide) == (1, 30_000, 10)
    assert lazy_sample(wide, wide).block == 180_000
    huge = dask.array.zeros((2, 10_000_000, 10), chunks=(1, 1_000_000, 10))
    assert lazy_sample(huge, huge).block == 1_000_000


def test_small_chunks_are_warned_of_with_the_remedy() -> None:
    small = dask.array.zeros((1, 160_000, 60), chunks=(1, 160, 60))
    with pytest.warns(UserWarning, match=r"zarr.from_array\(.*chunks=\(1, 34952, 60\)"):
        sx.Stream.from_arrays(small, small)


def test_a_lazy_sample_can_be_sent_away(tmp_path: Path) -> None:
    variables = xarray.Dataset({"tau": (("chain", "draw"), np.exp(X[..., 0]))})
    arrays = (as_zarr(tmp_path, X, "draws"), as_zarr(tmp_path, SCORES, "scores"))
    there = pickle.loads(pickle.dumps(sx.Stream.from_arrays(*arrays, variables=variables).source))
    block = there.read(2, 30, 90)
    np.testing.assert_array_equal(block.x, X[2, 30:90])
    np.testing.assert_array_equal(block.variables["tau"].values[0], np.exp(X[2, 30:90, 0]))


BAD = {
    "a list": (lambda: ([[1.0]], X), TypeError, "cannot be read by slices"),
    "other shapes": (lambda: (X, X[:, :-1]), ValueError, r"\(chain, draw, dim\)"),
    "a vector": (lambda: (X[0, :, 0], X[0, :, 0]), ValueError, r"\(draw, dim\)"),
    "nothing": (lambda: (X[:, :0], X[:, :0]), ValueError, r"\(chain, draw, dim\)"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_sample_is_refused(name: str) -> None:
    make, kind, says = BAD[name]
    with pytest.raises(kind, match=says):
        sx.Stream.from_arrays(*make())


def test_variables_must_be_of_the_same_draws() -> None:
    other = xarray.Dataset({"tau": (("chain", "draw"), X[:, :100, 0])})
    with pytest.raises(ValueError, match="those of the same draws"):
        sx.Stream.from_arrays(X, SCORES, variables=other)
    with pytest.raises(ValueError, match="one distinct name"):
        sx.Stream.from_arrays(X, SCORES, ["a", "a", "b"])
    with pytest.raises(ValueError, match="at least one draw at a time"):
        sx.Stream.from_arrays(X, SCORES, block=0)
