"""Streams from zarr stores: of `save`, of plain arrays, and of stores that are damaged."""

from pathlib import Path

import numpy as np
import pytest
import xarray
import zarr

import steinax as sx

X = np.random.default_rng(0).normal(size=(2, 9000, 5))
NAMES = ["a", "b", "c", "d", "e"]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Draws and scores in chunks of 8,192 draws, uncompressed."""
    path = tmp_path / "plain.zarr"
    group = zarr.open_group(path, mode="w")
    for name, values in (("draws", X), ("scores", -X)):
        group.create_array(name, data=values, chunks=(1, 8192, 5), compressors=None)
    return path


def test_what_save_wrote_has_names_and_variables(tmp_path: Path) -> None:
    path = tmp_path / "saved.zarr"
    variables = xarray.Dataset({"tau": (("chain", "draw"), np.exp(X[..., 0]))})
    sample = sx.Sample(X, -X, NAMES, variables=variables)
    sx.save(path, sample)
    f = {"tau": "tau", "b": "b", "ratio": lambda tau, b: b / tau}
    got = sx.estimate(f, sx.from_zarr(path), sx.Polynomial(2))
    expected = sx.estimate(f, sample, sx.Polynomial(2))
    assert got.names == ("tau", "b", "ratio")
    np.testing.assert_allclose(got.value, expected.value, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(got.mcse[[0, 2]], expected.mcse[[0, 2]], rtol=0.02)  # batches of 4


def test_a_group_and_other_names_will_do(store: Path) -> None:
    group = zarr.open_group(store)
    assert repr(sx.from_zarr(group, names=NAMES)) == repr(sx.from_zarr(store, names=NAMES))
    swapped = sx.from_zarr(store, draws="scores", scores="draws")
    np.testing.assert_array_equal(next(iter(swapped)).x, -X[0, :9000])
    with pytest.raises(ValueError, match="It holds draws, scores"):
        sx.from_zarr(store, draws="x", scores="gradient")
    with pytest.raises(ValueError, match="name both, or neither"):
        sx.from_zarr(store, draws="x")


def test_a_tree_of_dask_arrays_is_a_stream(tmp_path: Path) -> None:
    sample = sx.Sample(X, -X, NAMES)
    tree = sx.to_arviz(sample).chunk(draw=3000)
    stream = sx.from_arviz(tree, stream=True)
    assert stream.source is not None
    assert stream.source.draws.chunks[1] == (3000, 3000, 3000)
    one, other = (
        sx.estimate("a", some, sx.Polynomial(1))
        for some in (stream, sx.Stream.from_arrays(X, -X, NAMES))
    )
    np.testing.assert_allclose(one.plain_value, other.plain_value, rtol=1e-12)
    sx.save(tmp_path / "file.nc", sample)
    from_file = sx.from_arviz(tmp_path / "file.nc", stream=True)
    np.testing.assert_array_equal(next(iter(from_file)).x, X[0])


def test_scores_in_another_order_are_put_right(tmp_path: Path) -> None:
    tree = sx.to_arviz(sx.Sample(X, -X, NAMES))
    stats = tree["sample_stats"].dataset
    turned = stats["gradient"].isel(unconstrained_parameter=[4, 3, 2, 1, 0])
    turned = turned.rename(unconstrained_parameter="other")
    tree["sample_stats"] = xarray.DataTree(stats.drop_vars("gradient").assign(gradient=turned))
    block = next(iter(sx.from_arviz(tree, stream=True)))
    np.testing.assert_array_equal(block.score, -block.x)


def test_a_missing_chunk_is_named_before_anything_is_read(store: Path) -> None:
    (store / "scores/c/1/0/0").unlink()
    with pytest.raises(sx.working.CorruptChunkError, match="1 of 4 chunks are missing") as caught:
        sx.from_zarr(store)
    assert caught.value.chunk == (1, 0, 0)
    assert caught.value.file is not None
    assert caught.value.file.endswith("scores/c/1/0/0")


def test_a_chunk_that_goes_missing_later_is_no_zeros(store: Path) -> None:
    stream = sx.from_zarr(store)
    (store / "draws/c/1/1/0").unlink()
    with pytest.raises(sx.working.CorruptChunkError, match="FileNotFoundError") as caught:
        sx.estimate("x", stream, sx.Polynomial(1))
    assert caught.value.chunk == (1, 1, 0)


def test_a_compressed_chunk_that_goes_missing_later_is_no_zeros(tmp_path: Path) -> None:
    group = zarr.open_group(tmp_path / "packed.zarr", mode="w")
    for name, values in (("draws", X), ("scores", -X)):
        group.create_array(name, data=values, chunks=(1, 8192, 5))
    stream = sx.from_zarr(tmp_path / "packed.zarr")
    (tmp_path / "packed.zarr/draws/c/1/1/0").unlink()
    with pytest.raises(
        sx.working.CorruptChunkError, match=r"draws 8192 to 9000 of chain 1 are all 0\.0"
    ):
        sx.estimate("x", stream, sx.Polynomial(1))


@pytest.mark.parametrize("size", [0, 100, 8 * 5 * 8000])
def test_a_chunk_that_is_cut_short_is_named(store: Path, size: int) -> None:
    stream = sx.from_zarr(store)
    with (store / "draws/c/1/0/0").open("r+b") as file:
        file.truncate(size)
    with pytest.raises(sx.working.CorruptChunkError) as caught:
        sx.estimate("x", stream, sx.Polynomial(1))
    assert caught.value.array == "draws"
    assert caught.value.chunk == (1, 0, 0)


@pytest.mark.parametrize("array", ["draws", "scores"])
def test_what_is_not_finite_is_named(store: Path, array: str) -> None:
    zarr.open_group(store)[array][1, 8500, 2] = np.nan  # type: ignore[index]
    with pytest.raises(
        sx.working.CorruptChunkError, match="not finite, the first at draw 8500"
    ) as caught:
        sx.estimate("x", sx.from_zarr(store), sx.Polynomial(1))
    assert (caught.value.array, caught.value.chunk) == (array, (1, 1, 0))


def test_shards_are_chunks_too(tmp_path: Path) -> None:
    group = zarr.open_group(tmp_path / "shards.zarr", mode="w")
    for name, values in (("draws", X), ("scores", -X)):
        group.create_array(name, data=values, chunks=(1, 1024, 5), shards=(1, 8192, 5))
    stream = sx.from_zarr(tmp_path / "shards.zarr")
    np.testing.assert_array_equal(np.concatenate([block.x for block in stream]), X.reshape(-1, 5))
    (tmp_path / "shards.zarr/draws/c/0/1/0").unlink()
    with pytest.raises(sx.working.CorruptChunkError, match="1 of 4 chunks"):
        sx.from_zarr(tmp_path / "shards.zarr")
