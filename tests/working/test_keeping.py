"""Kept results: only what is missing is computed, and only what is whole is believed."""

import io
import json
import shutil
from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest

from steinax._serialise import FORMAT, from_bytes, to_bytes
from steinax.working import OtherRunError, gather
from working.pieces import Logged, assert_same, kept, places


class Inner(NamedTuple):
    name: str
    values: np.ndarray


@dataclass(frozen=True)
class Outer:
    inner: Inner
    rest: tuple
    count: int = 0


def test_a_result_comes_back_as_it_was():
    values = np.array([[np.nan, -0.0], [np.inf, 1e-310]])
    result = Outer(
        Inner("θ", values),
        (None, True, 3, 0.1, float("nan"), [np.float32(0.1), np.zeros((0, 2), np.int8)]),
        count=2**70,
    )
    found = from_bytes(to_bytes({"a": result, 3: np.array(["x", "yz"])}))
    assert list(found) == ["a", 3]
    assert isinstance(found["a"], Outer) and isinstance(found["a"].inner, Inner)
    assert found["a"].inner.name == "θ" and found["a"].count == 2**70
    assert found["a"].inner.values.tobytes() == values.tobytes()
    assert repr(found["a"].rest) == repr(result.rest)
    np.testing.assert_array_equal(found[3], np.array(["x", "yz"]))


def test_jax_arrays_come_back_as_numpy_arrays():
    found = from_bytes(to_bytes(jnp.arange(3)))
    assert isinstance(found, np.ndarray) and found.tolist() == [0, 1, 2]


@pytest.mark.parametrize("result", [object(), {1, 2}, np.array([object()]), [lambda: 0]])
def test_what_only_pickle_could_hold_is_refused(result):
    with pytest.raises(TypeError, match="cannot be written to a file: results are numbers"):
        to_bytes(result)


@pytest.mark.parametrize("name", ["os.system", "builtins.list", "collections.Counter"])
def test_a_file_cannot_make_anything_but_records(name):
    structure = {"format": FORMAT, "content": {"class": name.split("."), "fields": {}}}
    buffer = io.BytesIO()
    np.savez(buffer, structure=np.array(json.dumps(structure)))
    with pytest.raises(ValueError, match=f"{name}: import the package"):
        from_bytes(buffer.getvalue())


@pytest.mark.parametrize("threads", [1, 3])
def test_a_finished_run_is_read_and_not_computed_again(tmp_path, threads):
    log, folder = tmp_path / "log", tmp_path / "deep" / "kept"
    first = list(gather(Logged(log), range(9), threads=threads, keep=folder, label="a"))
    assert sorted(places(log)) == list(range(9)) and kept(folder) == set(range(9))
    again = list(gather(Logged(log), range(9), threads=threads, keep=folder, label="a"))
    assert len(places(log)) == 9
    assert_same(again, first)


def test_only_missing_pieces_are_computed(tmp_path):
    log, folder = tmp_path / "log", tmp_path / "kept"
    results = gather(Logged(log), range(9), threads=1, keep=folder)
    first = [next(results) for _ in range(4)]
    results.close()
    assert kept(folder) == {0, 1, 2, 3}
    again = list(gather(Logged(log), range(9), threads=1, keep=folder))
    assert places(log) == list(range(9))
    assert_same(again[:4], first)


DAMAGE = {
    "cut short": lambda content: content[: len(content) // 2],
    "empty": lambda _: b"",
    "one bit": lambda content: content[:200] + bytes([content[200] ^ 1]) + content[201:],
    "checksum": lambda content: bytes(32) + content[32:],
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_result_is_computed_again(tmp_path, damage):
    log, folder = tmp_path / "log", tmp_path / "kept"
    first = list(gather(Logged(log), range(6), threads=2, keep=folder))
    victim = folder / "00000003.kept"
    whole = victim.read_bytes()
    victim.write_bytes(damage(whole))
    again = list(gather(Logged(log), range(6), threads=2, keep=folder))
    assert sorted(places(log)) == [0, 1, 2, 3, 3, 4, 5]
    assert_same(again, first)
    assert victim.read_bytes() == whole


@pytest.mark.parametrize(("label", "pieces", "differs"), [("b", 6, "label"), ("a", 7, "pieces")])
def test_the_folder_of_another_run_is_refused_before_anything_is_done(
    tmp_path, label, pieces, differs
):
    log, folder = tmp_path / "log", tmp_path / "kept"
    list(gather(Logged(log), range(6), threads=1, keep=folder, label="a"))
    with pytest.raises(OtherRunError, match=rf"another {differs}\): give `keep` another folder"):
        gather(Logged(log), range(pieces), threads=1, keep=folder, label=label)
    assert len(places(log)) == 6


def test_a_damaged_manifest_is_refused_and_a_deleted_folder_starts_again(tmp_path):
    log, folder = tmp_path / "log", tmp_path / "kept"
    list(gather(Logged(log), range(3), threads=1, keep=folder))
    manifest = folder / "manifest.json"
    assert json.loads(manifest.read_text())["pieces"] == 3
    manifest.write_text(manifest.read_text()[:10])
    with pytest.raises(OtherRunError, match="delete this one to start again"):
        gather(Logged(log), range(3), threads=1, keep=folder)
    shutil.rmtree(folder)
    list(gather(Logged(log), range(3), threads=1, keep=folder))
    assert places(log) == [0, 1, 2, 0, 1, 2]


def test_results_whose_manifest_is_gone_are_not_believed(tmp_path):
    folder = tmp_path / "kept"
    list(gather(abs, range(3), threads=1, keep=folder, label="a"))
    (folder / "manifest.json").unlink()
    with pytest.raises(OtherRunError, match="delete this one"):
        gather(float, range(3), threads=1, keep=folder, label="b")


def test_what_a_killed_process_left_half_written_is_removed(tmp_path):
    folder = tmp_path / "kept"
    list(gather(Logged(tmp_path / "log"), range(3), threads=1, keep=folder))
    (folder / "00000001.unfinished").write_bytes(b"half")
    list(gather(Logged(tmp_path / "log"), range(3), threads=1, keep=folder))
    assert not list(folder.glob("*.unfinished"))
