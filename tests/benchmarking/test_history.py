"""The benchmarks that asv keeps a history of run, and what is kept is of known commits."""

import json
import math
from pathlib import Path

import pytest
from benchmarks.history.everyday import Everyday

RESULTS = Path(__file__).parents[2] / "benchmarks" / "history" / "results"
NAMES = {name for name in vars(Everyday) if name.startswith(("time_", "peakmem_", "track_"))}


@pytest.mark.slow
def test_the_benchmarks_run_and_gain() -> None:
    everyday = Everyday()
    everyday.setup()
    everyday.time_estimate_with_a_family()
    assert everyday.track_gain_of_means() > 3
    assert 0.2 < everyday.track_errors_in_standard_errors() < 2


def test_another_source_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEASURED", "/somewhere/else")
    with pytest.raises(RuntimeError, match="not of the commit"):
        Everyday().setup()


def test_what_is_kept_names_no_folder_of_a_machine() -> None:
    kept = list(RESULTS.glob("*/*-existing.json"))
    assert kept
    for path in RESULTS.rglob("*.json"):
        assert "existing-py" not in path.name + path.read_text(encoding="utf-8")
    for path in kept:
        row = json.loads(path.read_text(encoding="utf-8"))
        assert path.name.startswith(row["commit_hash"][:8])
        known = {name.rpartition(".")[2]: values for name, values in row["results"].items()}
        assert set(known) <= NAMES
        gain = known["track_gain_of_means"][0][0]
        assert math.isfinite(gain) and gain > 0
