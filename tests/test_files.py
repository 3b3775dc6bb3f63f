"""Scores travel with the file: netCDF and zarr, there and back."""

import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import arviz_base
import numpy as np
import pytest
import xarray

import steinax as sx

RNG = np.random.default_rng(1)
X = RNG.normal(size=(4, 60, 3))
KINDS = ("draws.nc", "draws.zarr")


def _sample() -> sx.Sample:
    tree = arviz_base.from_dict(
        {
            "posterior": {"tau": np.exp(X[..., 0]), "beta": X[..., 1:]},
            "sample_stats": {"lp": -0.5 * (X**2).sum(-1)},
            "log_likelihood": {"y": RNG.normal(size=(4, 60, 5))},
            "observed_data": {"y": np.arange(5.0)},
        },
        coords={"covariate": ["age", "dose"]},
        dims={"beta": ["covariate"]},
    )
    flags = np.zeros((4, 60), bool)
    flags[2, 3] = True
    names = ["tau_log__", "beta[age]", "beta[dose]"]
    density = -0.5 * (X**2).sum(-1)
    return sx.Sample(X, -X, names, diverging=flags, variables=tree, log_density=density)


@pytest.mark.parametrize("name", KINDS)
def test_training_points_come_back(tmp_path: Path, name: str) -> None:
    first, second, third = (
        _sample()[:, stretch] for stretch in (slice(20), slice(20, 33), slice(33, None))
    )
    sample = third.with_training(first, tried=second)
    sx.save(tmp_path / name, sample)
    back = sx.from_arviz(tmp_path / name)
    for stored, given in ((back.training, first), (back.tried, second)):
        (part,) = stored
        np.testing.assert_array_equal(part.draws, given.draws)
        np.testing.assert_array_equal(part.scores, given.scores)
        assert part.names == given.names and part.variables is not None
        np.testing.assert_array_equal(part.variables["tau"], given.variables["tau"])
    one, other = (sx.estimate("tau", each, sx.Polynomial(2)) for each in (sample, back))
    assert "training points" in one.note and one.note == other.note
    np.testing.assert_array_equal(one.value, other.value)
    assert not sx.from_arviz(tmp_path / name, warmup=False).training
    assert back.variables is not None and "training" not in back.variables.tree


@pytest.mark.parametrize("name", KINDS)
def test_everything_comes_back(tmp_path: Path, name: str) -> None:
    sample = _sample()
    est = sx.estimate(["tau", "beta"], sample, sx.Polynomial(2))
    weights = sx.weigh(sample, sx.Polynomial(2))
    sx.save(tmp_path / name, sample, estimate=est, weights=weights)
    back = sx.from_arviz(tmp_path / name)
    for field in ("draws", "scores", "diverging", "log_density"):
        np.testing.assert_array_equal(getattr(back, field), getattr(sample, field))
    assert back.names == sample.names
    assert back.variables is not None and sample.variables is not None
    assert back.variables.names == sample.variables.names == ("tau", "beta")
    tree = back.variables.tree
    for group in ("posterior", "log_likelihood", "observed_data"):
        xarray.testing.assert_identical(
            tree[group].to_dataset().load(), sample.variables.tree[group].to_dataset()
        )
    np.testing.assert_array_equal(tree["sample_stats/lp"], sample.variables.tree["sample_stats/lp"])
    np.testing.assert_array_equal(tree["sample_stats/weights"], weights.weights)
    again = sx.Estimate.from_dataset(tree["steinax"].to_dataset())
    for field in fields(est):
        if field.name not in ("candidates", "audit", "references"):
            np.testing.assert_array_equal(getattr(again, field.name), getattr(est, field.name))
    assert sx.citations(again) == sx.citations(est)
    np.testing.assert_array_equal(
        sx.estimate(["tau", "beta"], back, sx.Polynomial(2)).value, est.value
    )


@pytest.mark.parametrize("name", KINDS)
def test_a_sample_without_variables(tmp_path: Path, name: str) -> None:
    sx.save(tmp_path / name, sx.Sample(X, -X, ["mu", "beta[0]", "beta[1]"]))
    back = sx.from_arviz(tmp_path / name)
    assert back.variables is not None
    assert back.variables.names == ("mu", "beta")
    np.testing.assert_array_equal(sx.data.integrands("beta", back).values, X[..., 1:])


@pytest.mark.parametrize("name", KINDS)
def test_only_what_is_asked_for_is_read(tmp_path: Path, name: str) -> None:
    sx.save(tmp_path / name, _sample())
    variables = sx.from_arviz(tmp_path / name).variables
    assert variables is not None
    lazy = variables.tree["log_likelihood/y"].variable
    assert not lazy._in_memory
    sx.data.integrands("tau", sx.Sample(X, -X, variables=variables))
    assert not lazy._in_memory


@pytest.mark.parametrize("name", KINDS)
def test_a_file_is_replaced_only_if_told_so(tmp_path: Path, name: str) -> None:
    sx.save(tmp_path / name, sx.Sample(X, -X))
    with pytest.raises(FileExistsError, match=r"exists: give another name, or .*overwrite=True"):
        sx.save(tmp_path / name, sx.Sample(2 * X, -X / 2))
    np.testing.assert_array_equal(sx.from_arviz(tmp_path / name).draws, X)
    sx.save(tmp_path / name, sx.Sample(2 * X, -X / 2), overwrite=True)
    np.testing.assert_array_equal(sx.from_arviz(tmp_path / name).draws, 2 * X)


def test_a_folder_that_is_no_store_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "mine.zarr").mkdir()
    (tmp_path / "mine.zarr" / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="something else: give another name"):
        sx.save(tmp_path / "mine.zarr", sx.Sample(X, -X), overwrite=True)
    assert (tmp_path / "mine.zarr" / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("name", KINDS)
def test_a_sample_may_be_saved_where_it_was_read(tmp_path: Path, name: str) -> None:
    sx.save(tmp_path / name, _sample())
    read = sx.from_arviz(tmp_path / name)
    sx.save(tmp_path / name, read, weights=sx.weigh(read, sx.Polynomial(1)), overwrite=True)
    again = sx.from_arviz(tmp_path / name)
    assert again.variables is not None
    assert "weights" in again.variables.tree["sample_stats"]
    np.testing.assert_array_equal(
        sx.data.integrands("tau", again).values[..., 0], np.exp(X[..., 0])
    )
    assert [one.name for one in tmp_path.iterdir()] == [name]


def test_the_users_tree_is_left_alone(tmp_path: Path) -> None:
    sample = _sample()
    assert sample.variables is not None
    before = sample.variables.tree.copy(deep=True)
    sx.save(tmp_path / "draws.zarr", sample, weights=sx.weigh(sample, sx.Polynomial(1)))
    xarray.testing.assert_identical(sample.variables.tree, before)


def test_one_integrand_alone_is_stored_too() -> None:
    est = sx.estimate(["tau", "beta"], _sample(), sx.Polynomial(2))["tau"]
    again = sx.Estimate.from_dataset(est.to_dataset())
    assert again.names == ("tau",)
    np.testing.assert_array_equal(again.value, [est.value])


def test_what_is_no_estimate_is_refused() -> None:
    with pytest.raises(ValueError, match=r"a Dataset of a is not an estimate: give what Estimate"):
        sx.Estimate.from_dataset(xarray.Dataset({"a": 1}))


def test_a_file_of_no_known_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"draws.csv is of no known kind: let it end in .nc"):
        sx.save(tmp_path / "draws.csv", sx.Sample(X, -X))


def test_what_is_no_sample_and_what_is_no_file_is_refused(tmp_path: Path) -> None:
    code = (  # types are checked by beartype here, and not for a user
        "import numpy as np, steinax as sx; x = np.random.normal(size=(4, 50, 1))\n"
        "try: sx.save('g.nc', sx.fit('x[0]', sx.Sample(x, -x), sx.Polynomial(1)))\n"
        "except TypeError as error: print(error)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "this is a ControlVariate: it has a method of its own, .save(path)" in run.stdout
    sx.save(tmp_path / "draws.nc", sx.Sample(X, -X))
    (tmp_path / "part.nc").write_bytes((tmp_path / "draws.nc").read_bytes()[:2000])
    with pytest.raises(OSError, match=r"part\.nc cannot be read as netCDF"):
        sx.from_arviz(tmp_path / "part.nc")


def test_missing_packages_are_named(tmp_path: Path) -> None:
    (tmp_path / "draws.nc").touch()
    code = (
        "import sys; sys.modules['h5py'] = None; import steinax as sx\n"
        "try: sx.from_arviz(sys.argv[1])\n"
        "except ImportError as error: print(error)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "draws.nc")]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said == "this needs h5py, which is not installed: run pip install 'steinax[files]'.\n"
