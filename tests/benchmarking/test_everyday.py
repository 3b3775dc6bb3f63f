"""The everyday benchmarks at a size for every day: a real model, real chains, what must hold at any size."""

from pathlib import Path

import pytest
from benchmarks._store import save
from benchmarks.everyday import errors, runs
from benchmarks.everyday._sampling import sampled

LENGTHS = (250, 500, 750, 760, 1000)


@pytest.fixture(scope="module")
def chains(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of a regression of counts whose dispersion is skewed."""
    folder = tmp_path_factory.mktemp("chains")
    save(folder / "overdispersed.npz", {}, sampled("overdispersed", runs=2, longest=1000))
    return folder


@pytest.mark.slow
def test_reported_and_true_errors_fall_with_the_number_of_draws(chains: Path) -> None:
    rows = errors.measure(chains, "overdispersed", runs=2, lengths=LENGTHS)
    assert [row["n"] for row in rows] == [4 * length for length in LENGTHS]
    for row in rows[1:]:
        assert row["to the one before"] < 1.05, row
    ours = {row["n"]: row["reported error"] for row in rows}
    assert ours[4000] < 0.9 * ours[3000]
    assert all(row["worth"] > 1000 for row in rows)
    assert rows[-1]["true error"] < rows[0]["true error"]


@pytest.mark.slow
def test_runs_differ_by_as_much_as_their_errors_say(
    chains: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two runs of 5 parameters: right errors are beyond these bounds twice in 1,000 trials."""
    monkeypatch.setattr(runs, "SIZES", ((2, 500),))
    (row,) = runs.measure(chains, "overdispersed")
    assert 0.04 < row["mean"] < 4.1, row
