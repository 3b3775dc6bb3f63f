"""The command as a shell runs it: start, pipes, exit codes, and what is kept between two runs."""

import json
import os
import subprocess
import sys
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
    line = f"{sys.executable} -m steinax summary draws.nc | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert done.stdout == "141\n" and not done.stderr


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
    assert not seen or b"reading draws.nc" in seen or b"choosing control variates" in seen


@pytest.mark.parametrize("words", ["summary", "audit", "estimate --var mu", "convert"])
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing.nc", "there is no file nothing.nc: check the path"),
        ("nodir/*.csv", "no file matches nodir/*.csv: check the folder"),
    ],
)
def test_a_missing_file_is_told_before_anything_heavy_is_imported(
    words: str, name: str, message: str, tmp_path: Path
) -> None:
    line = [*words.split()[:1], name, *words.split()[1:]]
    line += ["out.nc"] if words == "convert" else []
    code = (
        "import sys; from steinax.cli import main; code = main(sys.argv[1:]); "
        "print(code, *sorted({'jax', 'numpy', 'xarray', 'scipy'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", code, *line]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.split() == ["2"]
    assert message in done.stderr
