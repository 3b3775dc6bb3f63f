"""The benchmark of lattices runs, and gains much from three replicates."""

import json
import subprocess
import sys

import pytest
from benchmarks._pinned import ROOT

pytest.importorskip("blackjax")
pytest.importorskip("pyerrors")


@pytest.mark.slow
def test_an_interacting_field_gains_far_more_than_chance_allows(tmp_path) -> None:
    """Gains of hundreds are asked to be above 20, with fixed seeds."""
    command = [sys.executable, "-m", "benchmarks.physics.lattice", "--quick", "--only", "strong"]
    subprocess.run([*command, "--out", str(tmp_path)], cwd=ROOT, check=True)
    rows = json.loads((tmp_path / "lattice.json").read_text(encoding="utf-8"))["rows"]
    assert [row["n"] for row in rows] == [400, 100]
    assert min(rows[0]["gain"][kind] for kind in ("phi^2", "phi^4", "C")) > 20
    assert rows[0]["audit"]["none"] == [0, 0]
    assert rows[0]["audit"]["sign"][1] == 3
