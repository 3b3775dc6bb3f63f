"""A stream gives the same numbers whoever reads it, and what a fit by hand gives."""

from itertools import pairwise
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
import zarr

import steinax as sx
import targets
from steinax._numerics import precision
from steinax.chains import controlled_statistics
from steinax.estimation._estimate import stream_degree, stream_held_out, stream_problem
from steinax.solvers import instability
from steinax.solvers._streaming import Working, features_of

F = {"sine": lambda x: jnp.sin(x[0] + x[1]), "norm": lambda x: jnp.sum(x**2), "first": "x[0]"}
KERNEL = sx.KernelTranslates(sx.kernels.SquaredExponential(1.5), sx.Landmarks(40))
FAMILIES = {"polynomial": sx.Polynomial(2), "landmarks": KERNEL, "sum": sx.Polynomial(1) + KERNEL}
FIELDS = ("value", "mcse", "ess", "rhat", "freedom", "plain_value", "plain_mcse", "batches")


def sample(length: int = 240) -> sx.Sample:
    return targets.skewed(3).sample(0, length=length)


def write(path: Path, of: sx.Sample, rows: int) -> Path:
    group = zarr.open_group(path, mode="w")
    for name, values in (("draws", of.draws), ("scores", of.scores)):
        group.create_array(name, data=values, chunks=(1, rows, of.dim), compressors=None)
    return path


def assert_equal(one: sx.Estimate, other: sx.Estimate, rtol: float) -> None:
    assert one.names == other.names
    for field in FIELDS:
        left, right = getattr(one, field), getattr(other, field)
        scale = np.abs(right).max()
        np.testing.assert_allclose(left, right, rtol=rtol, atol=rtol * scale, err_msg=field)


def fast_first(names):
    return [names[0], *(pytest.param(name, marks=pytest.mark.slow) for name in names[1:])]


@pytest.mark.parametrize("name", fast_first([*FAMILIES]))
def test_is_least_squares_without_each_fold(name: str) -> None:
    """Features of all draws at once, and a dense fit to those outside each fold."""
    of, working = sample(), Working(threads=1)
    stream = sx.Stream.from_arrays(of.draws, of.scores, block=50)
    wanted, f = sx.data.integrands(F, of), sx.data.integrands(F, of).values.reshape(of.size, -1)
    folds = sx.CrossFit().boundaries(of.chains, of.length)
    with precision(np.float64):
        problem, coordinates, n, _ = stream_problem(stream, FAMILIES[name], None, None, working)
        features, penalty = features_of(problem, coordinates, n - n / len(folds))
        a = np.asarray(features.matrix(of.x, of.score))
    rest, intercepts = np.empty_like(f), []
    for start, stop in folds:
        out = np.r_[0:start, stop:n]
        mean, mean_f = a[out].mean(axis=0), f[out].mean(axis=0)
        rows = np.concatenate([a[out] - mean, np.sqrt(penalty)])
        right = np.concatenate([f[out] - mean_f, np.zeros((len(penalty), f.shape[1]))])
        coef = np.linalg.lstsq(rows, right)[0]
        rest[start:stop] = f[start:stop] - a[start:stop] @ coef
        intercepts.append(mean_f - mean @ coef)
    got = sx.estimate(F, stream, FAMILIES[name])
    assert got.names == wanted.names
    np.testing.assert_allclose(
        got.value, rest.mean(axis=0), rtol=0, atol=1e-8 * got.plain_mcse.max()
    )
    expected = controlled_statistics(
        rest.reshape(of.chains, of.length, -1),
        wanted.values,
        instability(rest, np.array(intercepts), folds),
    )
    left = rest.std(axis=0) > 1e-6  # of a mean nothing is left
    np.testing.assert_allclose(got.rhat[left], expected.rhat[left], rtol=1e-9)
    np.testing.assert_allclose(got.mcse[left], expected.mcse[left], rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_threads_and_blocks_do_not_matter(family: str, tmp_path: Path) -> None:
    of = sample()
    stored = sx.from_zarr(write(tmp_path / "a.zarr", of, 60))
    whole = sx.estimate(F, stored, FAMILIES[family])
    for block in (13, 100, 240):
        stream = sx.from_zarr(tmp_path / "a.zarr", block=block)
        assert_equal(sx.estimate(F, stream, FAMILIES[family]), whole, 1e-8)
    found = []
    for threads in (1, 2, 2):
        with precision(np.float64):
            working = Working(threads=threads)
            problem, coordinates, n, _ = stream_problem(
                stored, FAMILIES[family], None, None, working
            )
            better, *_ = stream_held_out(F, stored, sx.CrossFit(), problem, coordinates, n, working)
        found.append(better)
    for one, other in pairwise(found):
        np.testing.assert_array_equal(one.mean, other.mean)
        np.testing.assert_array_equal(one.mcse, other.mcse)


@pytest.mark.slow
def test_long_chains_are_summed_in_batches(tmp_path: Path) -> None:
    of = sample(length=9000)
    stream = sx.from_zarr(write(tmp_path / "a.zarr", of, 9000))
    got, whole = (sx.estimate(F, one, sx.Polynomial(2)) for one in (stream, of))
    size = whole.plain_mcse
    np.testing.assert_allclose(got.value / size, whole.value / size, atol=1e-9)
    np.testing.assert_allclose(got.plain_value / size, whole.plain_value / size, atol=1e-9)
    np.testing.assert_allclose(got.plain_mcse, whole.plain_mcse, rtol=0.03)
    np.testing.assert_allclose(got.mcse[0], whole.mcse[0], rtol=0.03)
    # What is left has heavy tails: over eight seeds the two differ by 2.4% (one standard deviation).
    np.testing.assert_allclose(got.mcse[1], whole.mcse[1], rtol=0.1)
    np.testing.assert_allclose(got.plain_rhat, whole.plain_rhat, rtol=1e-9)
    assert got.batches.shape == whole.batches.shape


@pytest.mark.slow
def test_a_run_that_was_stopped_goes_on(tmp_path: Path) -> None:
    of, keep = sample(length=3000), tmp_path / "kept"
    path = write(tmp_path / "a.zarr", of, 3000)
    first = sx.estimate(F, sx.from_zarr(path), keep=keep)
    kept = sorted(keep.rglob("*.kept"))
    assert len(kept) == 4 + 2 * 8  # chains, then folds twice
    kept[-1].unlink()  # what was not finished
    kept[6].unlink()
    again = sx.estimate(F, sx.from_zarr(path), keep=keep)
    for field in FIELDS:
        np.testing.assert_array_equal(getattr(again, field), getattr(first, field))
    assert sorted(keep.rglob("*.kept")) == kept


@pytest.mark.slow
def test_what_was_kept_is_used_and_only_for_the_same_question(tmp_path: Path) -> None:
    path, keep = write(tmp_path / "a.zarr", sample(length=500), 500), tmp_path / "kept"
    sx.estimate(F, sx.from_zarr(path), keep=keep)
    before = {one: one.stat().st_mtime_ns for one in keep.rglob("*.kept")}
    sx.estimate(F, sx.from_zarr(path), keep=keep)
    assert {one: one.stat().st_mtime_ns for one in keep.rglob("*.kept")} == before
    others = {"sine": lambda x: jnp.cos(x[0]), "norm": F["norm"], "first": "x[0]"}
    for f, family in ((others, None), (F, sx.Polynomial(1))):
        with pytest.raises(ValueError, match="another run"):
            sx.estimate(f, sx.from_zarr(path), family, keep=keep)


@pytest.mark.slow
def test_a_function_has_one_reader() -> None:
    of = sample()
    with pytest.raises(ValueError, match=r"use Stream\.from_arrays"):
        sx.estimate(F, sx.Stream(lambda: of.blocks(100), chains=4), keep="somewhere")
    with pytest.raises(ValueError, match="for a Stream"):
        sx.estimate(F, of, keep="somewhere")


def test_a_stream_chooses_a_degree_for_each_integrand() -> None:
    """Of normal draws a cube needs the third degree; of draws with heavy tails that may hurt."""
    x = np.random.default_rng(0).normal(size=(4, 2000, 2))
    cube = {"cube": lambda x: x[0] ** 3, "mean": lambda x: x[1] + 0.1 * jnp.sin(5 * x[1])}
    found = sx.estimate(cube, sx.Stream.from_arrays(x, -x))
    assert found.chosen[0] == "Polynomial(3)"
    assert found.mcse[0] < 1e-10
    given = sx.estimate(cube, sx.Stream.from_arrays(x, -x), sx.Polynomial(2))
    assert given.mcse[0] > 0.01
    y = np.random.default_rng(1).standard_t(5, size=(4, 2000, 2))
    heavy = sx.Stream.from_arrays(y, -6 * y / (5 + y**2))
    chosen, cubic = (sx.estimate("x", heavy, family) for family in (None, sx.Polynomial(3)))
    assert (chosen.mcse <= 1.001 * cubic.mcse).all()


@pytest.mark.parametrize(
    ("n", "dim", "degree"),
    [(10**4, 2, 3), (10**4, 10, 3), (5000, 10, 2), (10**9, 10, 2), (10**4, 30, 2), (1000, 30, 1)],
)
def test_the_degrees_of_a_stream_are_affordable(n: int, dim: int, degree: int) -> None:
    assert stream_degree(n, dim) == degree
