"""Each sampler, for real: run until its means are precise, or followed while it writes."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import steinax as sx
from steinax.adapters import cmdstan_length
from steinax.cli import main
from stopping import runs

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("batches", [runs.numpyro, runs.blackjax])
def test_a_resumed_sampler_stops_when_its_means_are_precise(
    batches: Callable[[], Iterator[sx.Sample]],
) -> None:
    """Half widths are 0.01 posterior sds; the means are within three of them, 3e-9 by chance."""
    found = sx.until(batches(), tolerance=0.01)
    assert found.reason == "precise" and len(found.looks) >= 2
    assert found.sample.size < 2000 and found.plain_draws.max() > 10_000
    assert (np.abs(found.estimate.value - runs.truth()) < 3 * found.looks[-1].tolerance).all()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Path]:
    """The folder that CmdStan is writing to; with far more draws than are needed."""
    processes = runs.cmdstan(tmp_path, draws=200_000)
    yield tmp_path / "output"
    for process in processes:
        process.kill()
        process.wait()


def test_files_that_cmdstan_is_writing(running: Path) -> None:
    _wait_for_header(running)
    found = sx.until(running, ["k", "sigma_obs"], tolerance=0.05)
    assert found.reason == "precise"
    # all draws so far are used: how many CmdStan writes meanwhile depends on the machine
    assert found.sample.size < 100_000  # of 400,000
    assert found.sample.training  # the warm-up is used
    names = sorted(str(file) for file in running.glob("*.csv"))
    assert cmdstan_length(names) == 200_000
    with pytest.raises(ValueError, match=r"partial=True\) takes the draws"):
        sx.from_cmdstan(running)
    later = sx.from_cmdstan(running, partial=True)
    assert later.length > found.sample.length
    assert np.array_equal(later.draws[:, : found.sample.length], found.sample.draws)


def test_the_command_ends_when_the_means_are_precise(
    running: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _wait_for_header(running)
    words = ["watch", str(running), "--tolerance", "0.05", "--var", "k", "--var", "sigma_obs"]
    assert main([*words, "--json"]) == 0
    out, err = capsys.readouterr()
    answer = json.loads(out)
    assert answer["reason"] == "precise" and len(answer["looks"]) >= 2
    assert "every 95% interval is within its tolerance" in err


def _wait_for_header(folder: Path) -> None:
    """Until there is a file to recognise: `until` waits for the draws itself."""
    for _ in range(200):
        if any(file.stat().st_size for file in folder.glob("*diagnostic*.csv")):
            return
        time.sleep(0.05)
    pytest.fail("CmdStan wrote nothing in ten seconds")


def test_a_run_of_cmdstan_that_ends_is_followed_to_its_end(tmp_path: Path) -> None:
    processes = runs.cmdstan(tmp_path, draws=400)
    _wait_for_header(tmp_path / "output")
    lengths = [sample.length for sample in sx.stopping.follow(tmp_path / "output", every=0.05)]
    assert lengths == sorted(set(lengths)) and lengths[-1] == 400
    assert all(process.wait() == 0 for process in processes)
    assert np.array_equal(
        sx.from_cmdstan(tmp_path / "output").draws,
        sx.from_cmdstan(tmp_path / "output", partial=True).draws,
    )


@pytest.fixture(scope="module")
def model() -> Any:
    """The same regression for nutpie, compiled."""
    from adapters.model_pymc import compiling_by_jax, pm

    with compiling_by_jax():
        import nutpie

        with pm.Model() as model:
            beta = pm.Normal("beta", shape=2)
            pm.Bernoulli("y", logit_p=pm.math.dot(runs.X, beta), observed=runs.Y)
        return nutpie.compile_pymc_model(model, backend="jax", gradient_backend="jax")


@pytest.fixture
def compiled(model: Any) -> Iterator[Any]:
    """The model, in double precision for the threads that sample from it."""
    from adapters.model_pymc import compiling_by_jax

    with compiling_by_jax():
        yield model


KEEP = {"store_gradient": True, "store_unconstrained": True, "progress_bar": False, "seed": 3}


def test_nutpie_in_the_background_is_stopped(compiled: Any) -> None:
    import nutpie

    sampler = nutpie.sample(
        compiled, chains=4, cores=4, draws=10**6, tune=300, blocking=False, **KEEP
    )
    found = sx.until(sampler, tolerance=0.01)
    assert found.reason == "precise" and found.sample.size < 10**5
    assert (np.abs(found.estimate.value - runs.truth()) < 3 * found.looks[-1].tolerance).all()
    with pytest.raises(Exception, match=r"(?i)abort|finish|stop|consumed|none"):
        sampler.inspect()


def test_a_store_that_nutpie_is_writing(compiled: Any, tmp_path: Path) -> None:
    import nutpie

    path = tmp_path / "draws.zarr"
    store = nutpie.zarr_store.LocalStore(str(path), mkdir=True)
    run = {"chains": 4, "cores": 4, "draws": 2000, "tune": 300}
    sampler = nutpie.sample(compiled, blocking=False, zarr_store=store, **run, **KEEP)
    try:
        lengths = [sample.length for sample in sx.stopping.follow(path, every=0.05)]
    finally:
        sampler.wait()
    assert lengths == sorted(set(lengths)) and lengths[-1] == 2000
    found = sx.until(path, tolerance=0.01)
    assert found.reason == "precise" and found.looks[-2].draws < found.looks[-1].draws == 8000
