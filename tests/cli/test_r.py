"""The functions of r/steinax.R, in R, on real output of CmdStan."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "r" / "test.R"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed")
def test_summaries_in_r(data_dir: Path) -> None:
    folders = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["Rscript", SCRIPT],
        env=os.environ | {"PATH": folders, "STEINAX_DATA": str(data_dir)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("Test passed") == 3
