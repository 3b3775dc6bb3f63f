"""Leapfrog states of the warm-up, as training points: they must pay on a differential equation."""

import json
import subprocess
import sys

import pytest
from benchmarks._pinned import ROOT

pytest.importorskip("numpyro")
pytest.importorskip("blackjax")
pytest.importorskip("diffrax")


@pytest.mark.slow
def test_recorded_states_gain_more_than_the_draws_alone(tmp_path) -> None:
    """One replicate, one model, both samplers; gains differ by factors of thousands, so by no chance."""
    command = [sys.executable, "-m", "benchmarks.recorder", "--quick", "--only", "epidemic"]
    subprocess.run([*command, "--out", str(tmp_path)], cwd=ROOT, check=True)
    rows = json.loads((tmp_path / "recorder.json").read_text(encoding="utf-8"))["rows"]
    assert {row["sampler"] for row in rows} == {"BlackJAX", "NumPyro"}
    for row in rows:
        assert row["gain"]["alone"] > 1
        for kind in ("leapfrog", "warm-up", "both"):
            assert row["gain"][kind] > 10 * row["gain"]["alone"], row
