"""How long one waits for the first summary: processes that start anew, nothing compiled before.

Each round takes both times, one after the other; the best of three rounds counts. The reference is
`import jax` and reading the whole file with xarray.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import arviz_base
import numpy as np
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.alone]
READ = "import jax, xarray; xarray.open_datatree({path!r}, engine='h5netcdf').load()"
OURS = """
from rich.console import Console
from steinax.summarising import render, summary
Console(width=120).print(render(summary({path!r}), 120))
"""
AT_MOST = 3.0


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """4 x 1000 draws of 100 parameters, as nutpie stores them."""
    pytest.importorskip("h5netcdf")
    x = np.random.default_rng(0).normal(size=(4, 1000, 100))
    for i in range(1, 1000):
        x[:, i] = 0.5 * x[:, i - 1] + np.sqrt(0.75) * x[:, i]
    posterior = {"beta": x[..., :98], "tau": np.exp(x[..., 98]), "mu": x[..., 99]}
    names = [*(f"beta[{i}]" for i in range(98)), "tau_log__", "mu"]
    column = "unconstrained_parameter"
    tree = arviz_base.from_dict(
        {"posterior": posterior, "sample_stats": {"unconstrained_draw": x, "gradient": -x}},
        dims={"unconstrained_draw": [column], "gradient": [column]},
        coords={column: names},
    )
    path = tmp_path_factory.mktemp("trace") / "trace.nc"
    tree.to_netcdf(path, engine="h5netcdf")
    return path


def _seconds(code: str, path: Path) -> float:
    """Of a fresh interpreter, which may keep bytecode, as a user's does, and no compiled programs."""
    left_out = ("PYTHONDONTWRITEBYTECODE", "JAX_COMPILATION_CACHE_DIR")
    env = {name: value for name, value in os.environ.items() if name not in left_out}
    start = time.perf_counter()
    command = [sys.executable, "-c", code.format(path=str(path))]
    subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def test_the_first_summary_comes_within_three_times_what_reading_takes(trace: Path) -> None:
    rounds = [(_seconds(READ, trace), _seconds(OURS, trace)) for _ in range(4)]
    read, ours = map(min, zip(*rounds[1:], strict=True))  # the first wrote bytecode
    assert ours <= AT_MOST * read, f"{ours:.2f} s against {read:.2f} s"
