"""A saved control variate comes back the same, and a file can do no harm."""

import io
import json
import os
import pickle
import zipfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steinax as sx
import targets
from steinax._numerics import precision
from steinax._serialise import FORMAT

TARGET = targets.banana(2)
SAMPLE = TARGET.sample(0, chains=2, length=40)
NEW = TARGET.sample(1, chains=1, length=10)
F = {"a": lambda x: x[1], "b": lambda x: jnp.sin(x[0])}

FITTED = {
    "polynomial": sx.Polynomial(2),
    "kernel": sx.KernelTranslates(sx.kernels.Matern52()),
    "landmarks": sx.KernelTranslates(sx.kernels.SquaredExponential(2.0), sx.Landmarks(10)),
    "scaled operator": sx.KernelTranslates(operator=-0.5 * sx.ScalarLangevin()),
    "sum": sx.Polynomial(2)
    + sx.KernelTranslates(sx.kernels.InverseMultiquadric() + sx.kernels.Matern32()),
    "features": sx.RandomFeatures(30),
}


def _network() -> sx.ControlVariate:
    """A network with parameters of its own, not trained: training is tested elsewhere."""
    family = sx.Network(8, 2, activation=jax.nn.tanh, residual=True)
    with precision(np.float64):
        params = family.init(None, SAMPLE.x, 2, jax.random.key(0))
        params = jax.tree.map(lambda leaf: np.asarray(leaf) + 0.1, params)
    coordinates = sx.data.AffineMap(np.zeros(2), np.ones(2))
    return sx.ControlVariate(
        family, None, params, np.zeros(2), coordinates, ("a", "b"), "by hand", np.arange(3.0)
    )


def _assert_same(one: sx.ControlVariate, two: sx.ControlVariate) -> None:
    assert jax.tree.structure(one) == jax.tree.structure(two)
    np.testing.assert_array_equal(one(NEW.x, NEW.score), two(NEW.x, NEW.score))
    np.testing.assert_array_equal(one.intercept, two.intercept)
    assert repr(one) == repr(two)


class TestRoundTrip:
    @pytest.mark.parametrize("name", FITTED)
    def test_fitted(self, name: str, tmp_path) -> None:
        g = sx.fit(F, SAMPLE, FITTED[name])
        g.save(tmp_path / "g.npz")
        _assert_same(sx.ControlVariate.load(tmp_path / "g.npz"), g)

    def test_network(self, tmp_path) -> None:
        g = _network()
        assert np.any(g(NEW.x, NEW.score))
        g.save(tmp_path / "g.npz")
        _assert_same(sx.ControlVariate.load(tmp_path / "g.npz"), g)

    def test_name_of_the_file_is_kept(self, tmp_path) -> None:
        sx.fit("x", SAMPLE, sx.Polynomial(1)).save(str(tmp_path / "control"))
        assert os.listdir(tmp_path) == ["control"]

    def test_an_activation_that_cannot_be_named_is_refused(self, tmp_path) -> None:
        g = sx.fit("x", SAMPLE, sx.Polynomial(1))
        odd = sx.Network(4, 1, activation=lambda t: jnp.tanh(2 * t))
        object.__setattr__(g, "family", odd)
        with pytest.raises(TypeError, match=r"activation is one of .*relu.*tanh"):
            g.save(tmp_path / "g.npz")


def _craft(path, module: object, **arrays: np.ndarray) -> None:
    """A file as an attacker would write it."""
    structure = json.dumps({"format": FORMAT, "content": module})
    np.savez(path, structure=np.array(structure), **arrays)


class Bomb:
    """Leaves a trace when it is unpickled."""

    def __reduce__(self):
        return os.mkdir, ("exploded",)


class TestLoadingRunsNothing:
    @pytest.fixture(autouse=True)
    def _in_an_empty_folder(self, tmp_path, monkeypatch) -> None:
        monkeypatch.chdir(tmp_path)

    @pytest.mark.parametrize("name", ["os.system", "subprocess.Popen", "antigravity.Module"])
    def test_a_class_that_is_no_module_of_ours(self, name: str) -> None:
        _craft(
            "bad.npz", {"class": name.split("."), "fields": {"args": {"value": "mkdir exploded"}}}
        )
        with pytest.raises(ValueError, match="import the package that defines it first"):
            sx.ControlVariate.load("bad.npz")
        assert not os.path.exists("exploded")

    def test_a_function_that_is_no_activation(self) -> None:
        _craft("bad.npz", {"activation": "eval"})
        with pytest.raises(ValueError, match="not saved by steinax"):
            sx.ControlVariate.load("bad.npz")

    def test_a_pickled_array(self) -> None:
        good = sx.fit("x", SAMPLE, sx.Polynomial(1))
        good.save("good.npz")
        with zipfile.ZipFile("good.npz") as source, zipfile.ZipFile("bad.npz", "w") as copy:
            for name in source.namelist():
                content = source.read(name) if name != "array0.npy" else _pickled_array()
                copy.writestr(name, content)
        with pytest.raises(ValueError, match="allow_pickle"):
            sx.ControlVariate.load("bad.npz")
        assert not os.path.exists("exploded")

    def test_a_pickle_in_place_of_the_file(self) -> None:
        with open("bad.npz", "wb") as file:
            pickle.dump(Bomb(), file)
        with pytest.raises(ValueError, match="not a file that steinax wrote"):
            sx.ControlVariate.load("bad.npz")
        assert not os.path.exists("exploded")

    def test_another_format(self) -> None:
        np.savez("old.npz", structure=np.array(json.dumps({"format": 99, "content": None})))
        with pytest.raises(ValueError, match="save it again with this version"):
            sx.ControlVariate.load("old.npz")

    def test_something_else(self) -> None:
        _craft("bad.npz", {"value": 3})
        with pytest.raises(ValueError, match="not a control variate"):
            sx.ControlVariate.load("bad.npz")


def _pickled_array() -> bytes:
    content = io.BytesIO()
    np.save(content, np.array([Bomb()], dtype=object), allow_pickle=True)
    return content.getvalue()


@pytest.mark.parametrize("verified", [True, False])
@pytest.mark.parametrize("ending", [".nc", ".zarr"])
def test_a_file_says_whether_scores_are_verified(
    tmp_path: Path, verified: bool, ending: str
) -> None:
    x = np.random.default_rng(0).normal(size=(4, 50, 2))
    path = tmp_path / f"draws{ending}"
    sx.save(path, sx.Sample(x, -x, verified=verified))
    assert sx.from_arviz(path).verified is verified
    if ending == ".zarr":
        assert next(iter(sx.from_zarr(path))).verified is verified
