"""Without extras: an estimate on one's own arrays, and for all else word of what to install."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any


def _say(call: Callable[[], Any], extra: str) -> None:
    try:
        call()
    except ImportError as error:
        assert f"pip install 'steinax[{extra}]'" in str(error), error
    else:
        raise AssertionError(f"{extra} is not needed after all")


def _say_of_samplers(sx: Any, sample: Any, folder: Path) -> None:
    _say(lambda: sx.from_pymc(None, None), "pymc")
    _say(lambda: sx.from_numpyro(None), "numpyro")
    for name in ("draws.nc", "draws.zarr"):
        _say(lambda name=name: sx.save(folder / name, sample), "files")
    (folder / "old.nc").write_bytes(b"")
    (folder / "old.zarr").mkdir()
    _say(lambda: sx.from_arviz(folder / "old.nc"), "files")
    _say(lambda: sx.from_nutpie(folder / "old.zarr"), "files")
    _say(lambda: sx.from_zarr(folder / "old.zarr"), "files")
    _say(lambda: sx.estimate_many("x", [sample], client=object()), "dask")


def _say_of_pictures(sx: Any, sample: Any, estimate: Any) -> None:
    family = sx.Polynomial(1)
    fitted = sx.fit("x", sample, sx.Network(2), solver=sx.Stochastic(epochs=1))
    _say(lambda: sx.plot_estimate(estimate), "plots")
    _say(lambda: sx.plot_worth(estimate), "plots")
    _say(lambda: sx.plot_candidates(estimate), "plots")
    _say(lambda: sx.plot_forest(estimate), "plots")
    _say(lambda: sx.plot_audit(sample), "plots")
    _say(lambda: sx.plot_residuals("x", sample, family), "plots")
    _say(lambda: sx.plot_training(fitted), "plots")
    _say(lambda: sx.plot_convergence("x", sample, family), "plots")


def main() -> None:
    import expect
    import numpy as np

    import steinax as sx
    from steinax.cli import main as command

    expect.installed()
    x = np.random.default_rng(0).normal(expect.MEAN, expect.SD, size=(4, 50, 2))
    sample = sx.Sample(x, (expect.MEAN - x) / expect.SD**2)
    expect.exact_mean("x", sample)
    estimate = sx.estimate("x", sample)
    assert np.allclose(estimate.value, expect.MEAN)
    assert len(sx.summary(sample)) == 2 and len(sx.citations(estimate)) > 3
    try:
        sx.citations(x)
    except TypeError as error:
        assert "give the result of estimate or weigh" in str(error)
    with tempfile.TemporaryDirectory() as folder:
        _say_of_samplers(sx, sample, Path(folder))
    _say_of_pictures(sx, sample, estimate)
    _say(lambda: __import__("steinax.checks.strategies"), "checks")
    assert command(["--version"]) == 0 and command(["completion", "bash"]) == 2


if __name__ == "__main__":
    main()
