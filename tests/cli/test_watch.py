"""`steinax watch`: the looks, the table and the exit code; following a real run is in tests/stopping."""

import json
import shutil
import sys
import threading
from pathlib import Path

import pytest

from steinax.cli import main


def test_it_ends_with_0_when_the_means_are_precise(here: Path, capsys) -> None:
    assert main(["watch", "draws.zarr", "--tolerance", "0.1", "--var", "mu", "--json"]) == 0
    out, err = capsys.readouterr()
    answer = json.loads(out)
    assert answer["reason"] == "precise" and [row["name"] for row in answer["estimates"]] == ["mu"]
    *_, before, last_look = answer["looks"]  # of 400 draws in each of four chains, all are used
    assert before["draws"] < 1000 and last_look["draws"] == 1600 == 4 * answer["draws"]
    assert last_look["widest"] <= 1
    assert answer["plain_draws"]["mu"] > 300
    first, *_, last = err.strip().splitlines()
    assert first == "200 draws: 1 of 1 intervals within the tolerance"
    assert last.startswith("plain averages would need ") and last.endswith(" draws, for mu")


def test_it_ends_with_3_when_the_draws_are_not_enough(here: Path, capsys) -> None:
    assert main(["watch", "draws.zarr", "--tolerance", "1e-14", "--unit", "absolute"]) == 3
    out, err = capsys.readouterr()
    assert "the draws ended before every mean was precise" in err
    assert [line for line in out.splitlines() if line.startswith("tau ")]


def test_a_budget_of_draws(here: Path, capsys) -> None:
    assert main(["watch", "draws.zarr", "--tolerance", "1e-14", "--draws", "300"]) == 3
    assert "stopped at the budget of draws" in capsys.readouterr().err


def test_wrong_scores_end_with_1(here: Path, capsys) -> None:
    assert main(["convert", "wrong.nc", "wrong.zarr"]) == 0
    assert main(["watch", "wrong.zarr", "--tolerance", "0.1"]) == 1
    assert "sign" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="no folder replaces another there")
def test_a_folder_without_files_is_waited_for(tmp_path: Path, output: Path, capsys) -> None:
    """A shell starts the model with & and then this command, which may be first."""
    folder, ready = tmp_path / "new", tmp_path / "ready"
    folder.mkdir()
    shutil.copytree(output, ready)
    ready.chmod(0o755)
    start = threading.Timer(0.5, lambda: ready.replace(folder))  # all files at once
    start.start()
    assert main(["watch", str(folder), "--tolerance", "0.1", "--var", "mu", "--csv"]) == 0
    start.join()
    out, err = capsys.readouterr()
    assert err.startswith(f"steinax: note: {folder} is empty: waiting for the sampler.\n")
    assert out.splitlines()[1].startswith("mu,")


def test_a_folder_that_stays_empty_ends_the_command(tmp_path: Path, capsys) -> None:
    assert main(["watch", str(tmp_path), "--tolerance", "0.1", "--seconds", "0.3"]) == 2
    assert f"no CSV file at {tmp_path}: check the path" in capsys.readouterr().err


def test_files_without_draws_are_waited_for_as_long(tmp_path: Path, capsys) -> None:
    (tmp_path / "run_1.csv").touch()
    assert main(["watch", str(tmp_path), "--tolerance", "0.1", "--seconds", "0.3"]) == 2
    assert "no draws within 0.3 seconds: give" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["watch", "draws.nc", "--tolerance", "0.1"], "a netCDF file is written at once"),
        (["watch", "draws.zarr", "--tolerance", "0"], "tolerance=0.0: give half the width"),
        (["watch", "nowhere", "--tolerance", "0.1"], "there is no file nowhere"),
    ],
)
def test_what_cannot_be_watched(words: list[str], message: str, here: Path, capsys) -> None:
    assert main(words) == 2
    assert message in capsys.readouterr().err
