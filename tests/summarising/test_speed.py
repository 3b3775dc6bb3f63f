"""How long one waits for the first summary: CPU seconds of processes that start anew.

The reference is what any summary of the file needs: importing jax and ArviZ, and reading the file. Each
round takes both times, one after the other; the median of the ratios of five rounds counts. The shell
needs no times: it calls the same function, and imports no other library.
"""

import subprocess
import sys
from pathlib import Path
from statistics import median

import arviz_base
import numpy as np
import pytest
from benchmarks._pinned import cpu_seconds

pytestmark = [pytest.mark.slow, pytest.mark.alone]
READ = """
import arviz_stats, equinox, xarray
xarray.open_datatree({path!r}, engine="h5netcdf").load()
"""
OURS = "import steinax as sx; print(sx.summary({path!r}))"
AT_MOST = 4.0  # times the reference: a goal of 10 seconds where it takes 2.5


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """4 x 1,000 draws of 60 parameters with heavier tails than a Gaussian, as nutpie stores them."""
    pytest.importorskip("h5netcdf")
    x = np.random.default_rng(0).normal(size=(4, 1000, 60))
    for i in range(1, 1000):
        x[:, i] = 0.5 * x[:, i - 1] + np.sqrt(0.75) * x[:, i]
    slope = 1 + 0.3 * x**2  # of y = x + x^3 / 10
    y, score = x + 0.1 * x**3, (-x - 0.6 * x / slope) / slope
    posterior = {"beta": y[..., :58], "tau": np.exp(y[..., 58]), "mu": y[..., 59]}
    names = [*(f"beta[{i}]" for i in range(58)), "tau_log__", "mu"]
    column = "unconstrained_parameter"
    tree = arviz_base.from_dict(
        {"posterior": posterior, "sample_stats": {"unconstrained_draw": y, "gradient": score}},
        dims={"unconstrained_draw": [column], "gradient": [column]},
        coords={column: names},
    )
    path = tmp_path_factory.mktemp("trace") / "trace.nc"
    tree.to_netcdf(path, engine="h5netcdf")
    return path


def test_the_first_summary_takes_a_few_times_what_reading_takes(trace: Path) -> None:
    commands = [
        [sys.executable, "-c", READ.format(path=str(trace))],
        [sys.executable, "-c", OURS.format(path=str(trace))],
    ]
    rounds = [[cpu_seconds(command) for command in commands] for _ in range(6)]
    ratios = [ours / read for read, ours in rounds[1:]]  # the first round wrote bytecode
    assert median(ratios) <= AT_MOST, f"CPU seconds of reading and of the summary: {rounds}"


def test_the_shell_imports_nothing_more_than_its_own_files(trace: Path) -> None:
    python = imported("-c", OURS.format(path=str(trace)))
    shell = imported("-m", "steinax", "summary", str(trace))
    own = {"runpy", "steinax.cli", "steinax.summarising"}
    assert "jax" in python and "steinax.cli" in shell
    assert {name for name in shell - python if not name.startswith("steinax.cli.")} <= own


def imported(*arguments: str) -> set[str]:
    """The modules that a new process imports."""
    command = [sys.executable, "-X", "importtime", *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip() for line in lines}
