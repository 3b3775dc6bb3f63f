"""Many integrands: in blocks they give what they give together, within the memory that was planned."""

from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import steinax as sx
from steinax.data import IntegrandColumns, integrand_columns
from steinax.estimation._blocks import MemoryPlan, plan_blocks
from steinax.estimation._result import ARRAYS
from steinax.working import CorruptChunkError

pytestmark = pytest.mark.slow

K = 11
X = np.log(np.random.default_rng(0).gamma(3.0, size=(4, 60, 2)))
SAMPLE = sx.Sample(X, 3.0 - np.exp(X))
F = np.sin(X @ np.random.default_rng(1).normal(size=(2, K)))


def _in_blocks(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """Let blocks be so narrow as no budget would make them on so few draws."""

    def narrow(columns: IntegrandColumns, *rest: object) -> MemoryPlan:
        return MemoryPlan(len(columns.names), width, 0.0, 0.0, 0.0)

    monkeypatch.setattr("steinax.estimation._estimate.plan_blocks", narrow)


def _same(one: sx.Estimate, other: sx.Estimate) -> None:
    assert one.names == other.names
    for field in ("value", "mcse", "plain_value", "ess", "batches", "freedom"):
        ours, theirs = getattr(one, field), getattr(other, field)
        np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-10, err_msg=field)


@pytest.mark.parametrize(
    ("family", "options"),
    [
        (sx.Polynomial(2), {}),
        (sx.Polynomial(2) + sx.KernelTranslates(), {}),
        (sx.Polynomial(3), {}),
        (sx.Polynomial(2), {"split": sx.HoldOut(0.5)}),
        (sx.KernelTranslates(), {"solver": sx.Exact(dual=True), "split": sx.CrossFit(4)}),
    ],
    ids=["primal", "dual", "tails", "hold-out", "dual on demand"],
)
def test_blocks_give_what_all_give_together(family, options, monkeypatch) -> None:
    together = sx.estimate({"f": F}, SAMPLE, family, **options)
    _in_blocks(monkeypatch, 4)
    apart = sx.estimate({"f": F}, SAMPLE, family, **options)
    assert apart.note.endswith("3 blocks of 4 integrands")
    assert len(apart.chosen) == K
    _same(apart, together)


def test_one_factorisation_serves_all_blocks(monkeypatch) -> None:
    made = []
    original = sx.Exact.crossfitted
    monkeypatch.setattr(sx.Exact, "crossfitted", lambda *given: made.append(1) or original(*given))
    _in_blocks(monkeypatch, 2)
    sx.estimate({"f": F}, SAMPLE, sx.KernelTranslates())
    assert len(made) == 1


def test_the_automatic_choice_is_made_for_each_block(monkeypatch) -> None:
    _in_blocks(monkeypatch, 6)
    apart = sx.estimate({"f": F}, SAMPLE)
    assert len(apart) == K
    assert np.all(apart.mcse < apart.plain_mcse)
    _in_blocks(monkeypatch, K)
    _same(sx.estimate({"f": F[..., :6]}, SAMPLE), apart[list(apart.names[:6])])


class TestStored:
    """Integrands that lie on disk, or are computed when they are asked for."""

    @pytest.mark.parametrize("kind", ["zarr", "dask", "xarray", "h5py", "memmap"])
    def test_they_are_read_by_columns(self, kind: str, tmp_path: Path, monkeypatch) -> None:
        stored = _stored(kind, tmp_path)
        family = sx.Polynomial(2)
        together = sx.estimate({"f": F}, SAMPLE, family)
        _same(sx.estimate({"f": stored}, SAMPLE, family), together)
        _in_blocks(monkeypatch, 4)
        _same(sx.estimate({"f": stored}, SAMPLE, family), together)

    def test_only_the_columns_asked_for_are_read(self, tmp_path: Path) -> None:
        zarr = pytest.importorskip("zarr")
        array = zarr.create_array(tmp_path / "f", shape=F.shape, chunks=(4, 60, 3), dtype="f8")
        array[:] = F
        found = integrand_columns({"f": array}, SAMPLE)
        for chunk in (1, 2, 3):  # gone once the columns are counted
            (tmp_path / "f" / "c" / "0" / "0" / str(chunk)).write_bytes(b"cut short")
        np.testing.assert_array_equal(found.read(0, 3).values, F[..., :3])
        with pytest.raises(CorruptChunkError, match=r"chunk \(0, 0, 2\)"):
            found.read(6, 8)

    def test_a_missing_chunk_is_named(self, tmp_path: Path) -> None:
        zarr = pytest.importorskip("zarr")
        array = zarr.create_array(tmp_path / "f", shape=F.shape, chunks=(4, 60, 3), dtype="f8")
        array[:] = F
        (tmp_path / "f" / "c" / "0" / "0" / "2").unlink()
        with pytest.raises(CorruptChunkError, match=r"chunk \(0, 0, 2\)"):
            sx.estimate({"f": array}, SAMPLE, sx.Polynomial(2))

    def test_more_axes_are_flattened(self, tmp_path: Path) -> None:
        dask_array = pytest.importorskip("dask.array")
        values = np.random.default_rng(2).normal(size=(4, 60, 3, 5))
        found = integrand_columns({"f": dask_array.from_array(values)}, SAMPLE)
        assert found.names[7] == "f[1, 2]"
        flat = values.reshape(4, 60, 15)
        np.testing.assert_array_equal(found.read(4, 12).values, flat[..., 4:12])


def _stored(kind: str, folder: Path):
    if kind == "memmap":
        array = np.memmap(folder / "f.bin", dtype="f8", mode="w+", shape=F.shape)
        array[:] = F
        return array
    package = pytest.importorskip("dask.array" if kind in ("dask", "xarray") else kind)
    if kind == "zarr":
        return package.array(F, chunks=(2, 30, 3), store=folder / "f")
    if kind == "h5py":
        return package.File(folder / "f.h5", "w").create_dataset("f", data=F)
    array = package.from_array(F, chunks=(2, 30, 3))
    xarray = pytest.importorskip("xarray")
    return xarray.DataArray(array, dims=("chain", "draw", "k")) if kind == "xarray" else array


class TestFunctions:
    """Functions of which all columns are computed for any of them."""

    def test_columns_of_a_function(self, monkeypatch) -> None:
        monkeypatch.setattr("steinax.data._functions.BATCH", 8 * 3 * 50)  # of 50 draws
        found = integrand_columns(
            {"x": "x", "wide": lambda x: jnp.sin(x[0] * jnp.arange(3.0))}, SAMPLE
        )
        values = found.read(1, 4).values
        expected = np.sin(X[..., :1] * np.arange(3.0))
        np.testing.assert_allclose(values[..., 0], X[..., 1])
        np.testing.assert_allclose(values[..., 1:], expected[..., :2], atol=1e-15)

    def test_a_function_of_numpy_is_counted_on_one_draw(self) -> None:
        found = integrand_columns(lambda x: np.asarray(x)[:1].tolist()[0] * np.ones(3), SAMPLE)
        assert found.names == ("f[0]", "f[1]", "f[2]")


class TestPlan:
    """The memory is known before it is taken."""

    def test_blocks_fit_the_budget(self) -> None:
        wide = {"f": np.broadcast_to(F[..., :1], (4, 60, 50_000))}
        small, large = (
            sx.estimation.memory_plan(wide, SAMPLE, sx.Polynomial(2), memory=memory)
            for memory in (4e8, 3e9)
        )
        assert small.total <= 4e8
        assert small.blocks > large.blocks >= 1
        cuts = list(small.cuts())
        assert cuts[0][0] == 0
        assert cuts[-1][1] == 50_000
        assert all(a[1] == b[0] for a, b in pairwise(cuts))

    def test_too_little_is_refused_with_a_remedy(self) -> None:
        with pytest.raises(MemoryError, match="Give a larger `memory`"):
            sx.estimate({"f": F}, SAMPLE, sx.Polynomial(2), memory=1e6)

    def test_the_solver_is_asked_what_it_takes(self) -> None:
        """Exact, in dual form, a factorisation of 6,000 draws takes more than there is."""
        x = np.random.default_rng(0).normal(size=(4, 1500, 1))
        sample, f = sx.Sample(x, -x), {"f": x[..., 0] ** 2}
        with pytest.raises(MemoryError, match="to fit"):
            sx.estimate(f, sample, sx.KernelTranslates(), solver=sx.Exact(dual=True), memory=6e8)
        few = sx.Nystrom(20)
        plan = sx.estimation.memory_plan(f, sample, sx.KernelTranslates(), solver=few, memory=6e8)
        assert plan.total < 3e8
        found = sx.estimate(f, sample, sx.KernelTranslates(), solver=few, memory=6e8)
        assert abs(found.value[0] - 1) < 5 * found.mcse[0]  # false alarm 6e-7

    def test_a_factorisation_that_cannot_fit_is_refused(self) -> None:
        n = 4 * 60
        few = plan_blocks(integrand_columns({"f": F}, SAMPLE), SAMPLE, None, 4e9)
        assert few.fixed > 8 * n**2


@cache
def _wide() -> sx.Estimate:
    """An estimate of 100,000 integrands, all but the first few of them repeated."""
    base = sx.estimate({"f": F}, SAMPLE, sx.Polynomial(2))
    index = np.arange(100_000) % K
    arrays = {field: np.asarray(getattr(base, field))[..., index] for field in ARRAYS}
    names = tuple(f"f[{i}]" for i in range(len(index)))
    return replace(base, names=names, chosen=base.chosen[:1] * len(index), **arrays)


class TestResult:
    """An estimate of very many integrands."""

    def test_it_prints_in_a_few_lines(self) -> None:
        wide = _wide()
        assert len(repr(wide).splitlines()) < 30
        assert "... and 99980 more" in repr(wide)

    def test_its_covariance_is_refused_and_that_of_some_is_not(self) -> None:
        wide = _wide()
        with pytest.raises(MemoryError, match="80 GB"):
            _ = wide.covariance
        assert wide[["f[3]", "f[99999]"]].covariance.shape == (2, 2)

    def test_an_unknown_name_is_refused_in_a_few_words(self) -> None:
        wide = _wide()
        with pytest.raises(KeyError) as error:
            wide["g"]
        assert len(str(error.value)) < 200

    def test_it_is_stored_and_read_back(self) -> None:
        wide = _wide()
        back = sx.Estimate.from_dataset(wide.to_dataset())
        np.testing.assert_array_equal(back.mcse, wide.mcse)

    def test_functions_of_some_expectations(self) -> None:
        wide = _wide()
        some = wide[["f[0]", "f[1]"]].derived({"sum": lambda mean: mean["f[0]"] + mean["f[1]"]})
        expected = np.sqrt(wide[["f[0]", "f[1]"]].covariance.sum())
        np.testing.assert_allclose(some.mcse[0], expected)
