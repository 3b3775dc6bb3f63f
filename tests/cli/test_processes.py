"""The command as a shell runs it: start, pipes, exit codes, and what is kept between two runs."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


def test_exit_codes(process) -> None:
    assert process("audit", "draws.nc").returncode == 0
    failed = process("audit", "wrong.nc")
    assert failed.returncode == 1 and not failed.stderr
    missing = process("audit", "nothing.nc")
    assert missing.returncode == 2 and not missing.stdout
    assert missing.stderr == "steinax: error: there is no file nothing.nc: check the path.\n"
    assert "Traceback" in process("audit", "nothing.nc", "--debug").stderr


def test_nothing_but_the_answer_is_printed(process) -> None:
    done = process("summary", "draws.nc", "--json")
    assert done.returncode == 0 and not done.stderr
    assert len(json.loads(done.stdout)["parameters"]) == 4


@pytest.mark.skipif(sys.platform == "win32", reason="pipes close otherwise")
def test_closed_pipe_is_quiet(here: Path) -> None:
    line = f"{sys.executable} -m steinax summary draws.nc --quick | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert done.stdout == "141\n" and not done.stderr


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="the folder is named otherwise")
def test_compiled_programs_are_kept_for_the_next_run(process, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    words = ("estimate", "draws.nc", "--var", "tau")
    first = process(*words, XDG_CACHE_HOME=str(tmp_path))
    kept = {path for path in tmp_path.rglob("*") if path.is_file()}
    second = process(*words, XDG_CACHE_HOME=str(tmp_path))
    assert first.returncode == second.returncode == 0
    assert first.stdout == second.stdout and not second.stderr
    assert kept and kept == {path for path in tmp_path.rglob("*") if path.is_file()}


def test_the_users_own_cache_is_respected(process, tmp_path: Path) -> None:
    own, other = tmp_path / "own", tmp_path / "other"
    settings = {"JAX_COMPILATION_CACHE_DIR": str(own), "XDG_CACHE_HOME": str(other)}
    assert process("summary", "draws.nc", **settings).returncode == 0
    assert not other.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
def test_progress_goes_to_the_terminal_only(here: Path) -> None:
    """What is shown while one waits is on stderr, and is wiped out."""
    import pty

    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "steinax", "estimate", "draws.nc", "--var", "tau"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, text=True)
    os.close(theirs)
    seen = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        seen += part
    out, _ = child.communicate()
    os.close(ours)
    assert child.returncode == 0
    assert "\x1b" not in out and "tau" in out
    assert not seen or b"choosing control variates" in seen


@pytest.mark.alone
def test_summary_starts_and_ends_in_three_times_the_time_of_jax_and_xarray(
    process, tmp_path: Path
) -> None:
    """4 chains of 1,000 draws of 100 parameters, start included; the best of three."""
    import numpy as np

    import steinax as sx

    x = np.random.default_rng(0).normal(size=(4, 1000, 100))
    path = tmp_path / "large.nc"
    sx.save(path, sx.Sample(x, -x, [f"beta[{i}]" for i in range(100)]))
    read = f"import jax, xarray; xarray.open_datatree({str(path)!r}, engine='h5netcdf').load()"

    def seconds(command: list[str]) -> float:
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - start

    least = min(seconds([sys.executable, "-c", read]) for _ in range(3))
    ours = [sys.executable, "-m", "steinax", "summary", str(path)]
    assert min(seconds(ours) for _ in range(3)) < 3 * least
