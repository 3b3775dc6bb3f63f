"""Files of uncompressed chunks, read without zarr, against what zarr reads."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.codecs import BytesCodec

from steinax.data._stream import raw_files

X = np.random.default_rng(0).normal(size=(2, 100, 3))
ROWS = [slice(0, 100), slice(5, 6), slice(29, 61), slice(30, 60), slice(7, 99, 4), slice(2, 90, 41)]


def stored(path: Path, values: np.ndarray = X, **settings: Any) -> zarr.Array:
    chunks = (1, 30, 3)[-values.ndim :]
    return zarr.create_array(
        path, data=values, **{"chunks": chunks, "compressors": None, **settings}
    )


@pytest.mark.parametrize("rows", ROWS, ids=str)
def test_gives_what_zarr_gives(rows: slice, tmp_path: Path) -> None:
    files = raw_files(stored(tmp_path / "a"))
    assert files is not None
    np.testing.assert_array_equal(files.read(1, rows), X[1, rows])
    room = np.full((200, 3), np.nan)
    found = files.read(0, rows, room)
    np.testing.assert_array_equal(found, X[0, rows])
    assert np.shares_memory(found, room)
    flat = raw_files(stored(tmp_path / "b", X[0]))
    assert flat is not None
    np.testing.assert_array_equal(flat.read(0, rows), X[0, rows])


@pytest.mark.parametrize(
    "settings",
    [
        {"compressors": "auto"},
        {"shards": (1, 60, 3)},
        {"chunks": (2, 30, 3)},
        {"chunks": (1, 30, 2)},
        {"serializer": BytesCodec(endian="big")},
        {"zarr_format": 2},
    ],
    ids=str,
)
def test_what_is_stored_otherwise_is_left_to_zarr(settings: dict, tmp_path: Path) -> None:
    assert raw_files(stored(tmp_path / "a", **settings)) is None


def test_other_numbers_and_other_stores_are_left_to_zarr(tmp_path: Path) -> None:
    assert raw_files(stored(tmp_path / "a", X.astype(np.float32))) is None
    assert raw_files(zarr.array(X)) is None
    assert raw_files(X) is None


@pytest.mark.parametrize("change", [-1, 1])
def test_a_file_of_another_size_is_refused(change: int, tmp_path: Path) -> None:
    array = stored(tmp_path / "a")
    with (tmp_path / "a/c/0/1/0").open("r+b") as file:
        file.truncate(30 * 3 * 8 + change)
    files = raw_files(array)
    assert files is not None
    np.testing.assert_array_equal(files.read(0, slice(0, 30)), X[0, :30])
    with pytest.raises(EOFError, match="and a chunk has 720"):
        files.read(0, slice(20, 40))
