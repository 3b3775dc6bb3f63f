"""The panel of applied posteriors: a small part, with the real sampler."""

import json
import subprocess
import sys

import pytest
from benchmarks._pinned import ROOT

pytest.importorskip("numpyro")


@pytest.mark.slow
def test_a_hierarchy_and_a_regression_in_many_dimensions(tmp_path) -> None:
    """Two replicates each; a gain is known to a factor of two or three, and these are below a fifth."""
    targets = ["logistic hierarchy", "logistic, 200"]
    command = [sys.executable, "-m", "benchmarks.applied", "--replicates", "2", "--only", *targets]
    folders = ["--out", str(tmp_path), "--cache", str(tmp_path / "chains")]
    subprocess.run([*command, *folders], cwd=ROOT, check=True)
    rows = json.loads((tmp_path / "applied.json").read_text(encoding="utf-8"))["rows"]
    regression, hierarchy = sorted(rows, key=lambda row: row["dim"])
    assert hierarchy["dim"] == 302 and regression["dim"] == 200
    assert hierarchy["alone"]["gain"]["means"] > 80
    assert hierarchy["trained"]["gain"]["predictions"] > 500
    assert regression["alone"]["gain"]["sds"] > 5
    assert (tmp_path / "applied.png").exists()
    assert "logistic hierarchy | 302" in (tmp_path / "applied.md").read_text(encoding="utf-8")
