"""Run the pieces in a process of their own, on one core, and gather what they measured."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from ..._pinned import ONE_THREAD, ROOT

START = "from benchmarks._pinned import pin; pin(); import sys, pytest; sys.exit(pytest.main(sys.argv[1:]))"


def measured(only: str | None = None) -> list[dict]:
    """A row for every piece, or for those whose names contain a word: times in CPU milliseconds."""
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder, "found.json")
        options = [
            "--override-ini=addopts=",  # the plugin is off where tests run side by side
            "--override-ini=filterwarnings=",
            "--import-mode=importlib",
            "--benchmark-timer=time.process_time",
            f"--benchmark-json={found}",
            "-q",
        ]
        chosen = [] if only is None else ["-k", only]
        command = [sys.executable, "-c", START, *options, *chosen, str(Path(__file__).parent)]
        subprocess.run(
            command, env=os.environ | ONE_THREAD, cwd=ROOT, check=True, stdout=sys.stderr
        )
        return [_row(one) for one in json.loads(found.read_text("utf-8"))["benchmarks"]]


def _row(one: dict) -> dict:
    extra = one["extra_info"]
    return {
        "piece": one["name"].removeprefix("test_"),
        "steinax (ms)": 1e3 * one["stats"]["min"],
        "bare (ms)": 1e3 * extra["bare"],
        "ratio": extra["ratio"],
        "at most": extra["at_most"],
        "reached": "yes" if extra["ratio"] <= extra["at_most"] else "no",
    }
