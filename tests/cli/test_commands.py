"""Each command, its numbers and its exit code, run inside this process."""

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest

import steinax as sx
from steinax.cli import main
from steinax.summarising import summary

CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")  # all but the end of a line


def _same(read: object, number: float) -> bool:
    """To the last bit; JSON has null for what is no number."""
    return read is None if not np.isfinite(number) else read == float(number)


@pytest.mark.parametrize("name", ["draws.nc", "draws.zarr"])
def test_summary_as_json_has_the_numbers_of_the_library(name: str, here: Path, capsys) -> None:
    assert main(["summary", name, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    table = summary(sx.from_arviz(name))
    assert (answer["chains"], answer["draws"], answer["files"]) == (4, 400, [name])
    rows = {row.pop("name"): row for row in answer["parameters"]}
    assert list(rows) == list(table.index)
    for label, row in rows.items():
        assert list(row) == list(table.columns)
        assert all(_same(row[key], table.at[label, key]) for key in row)
    assert "as accurate as plain means from" in answer["note"]


def test_summary_as_csv_has_all_digits(here: Path, capsys) -> None:
    words = ["summary", "draws.nc", "--var", "tau", "--var", "beta"]
    assert main([*words, "--csv"]) == 0
    text = capsys.readouterr().out
    rows = list(csv.DictReader(io.StringIO(text)))
    table = summary(sx.from_arviz("draws.nc"), ["tau", "beta"])
    assert [row["name"] for row in rows] == ["tau", "beta[0]", "beta[1]"]
    assert all(float(row["mean"]) == table.loc[row["name"], "mean"] for row in rows)
    assert main([*words, "--output", "table.csv"]) == 0
    assert capsys.readouterr().out == ""
    assert (here / "table.csv").read_text(encoding="utf-8") == text


@pytest.mark.parametrize("command", ["summary", "audit"])
def test_output_of_another_kind_is_refused_before_the_files_are_read(
    command: str, tmp_path: Path, capsys
) -> None:
    assert main([command, "no such file.nc", "--output", str(tmp_path / "table.xlsx")]) == 2
    assert "table.xlsx would be a text file: let its name end in .txt" in capsys.readouterr().err
    assert main([command, "no such file.nc", "--output", str(tmp_path / "new" / "table.txt")]) == 2
    assert "new: create it first" in capsys.readouterr().err


def test_two_formats_are_refused_before_the_files_are_read(tmp_path: Path, capsys) -> None:
    to_csv = ["--output", str(tmp_path / "table.csv")]
    assert main(["summary", "no such file.nc", *to_csv, "--json"]) == 2
    assert "table.csv ask for two formats" in capsys.readouterr().err
    assert main(["summary", "no such file.nc", *to_csv, "--csv"]) == 2
    assert "there is no file" in capsys.readouterr().err


@pytest.mark.parametrize("width", [60, 80, 120])
def test_summary_fits_the_width(width: int, here: Path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert main(["summary", "draws.nc"]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert max(map(len, lines)) <= width
    assert not CONTROL.search(out) and not err
    assert [line for line in lines if line.startswith("tau ")]


def test_estimate_of_functions_and_variables(here: Path, capsys) -> None:
    words = ["estimate", "draws.nc", "--fn", "functions:share", "--fn", "functions:both"]
    assert main([*words, "--var", "tau", "--var", "log_likelihood", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    found = {row["name"]: row for row in answer["estimates"]}
    names = ["tau", "log_likelihood/y[0]", "log_likelihood/y[1]", "share", "both[0]", "both[1]"]
    assert list(found) == names
    sample = sx.from_arviz("draws.nc")
    functions = {
        "share": lambda mu, tau: tau**2 / (mu**2 + tau**2),
        "both": lambda mu, beta: beta - mu,
    }
    by_name = {"tau": "tau", "log_likelihood": "log_likelihood"}
    plain = sx.chains.chain_statistics(sx.data.integrands({**by_name, **functions}, sample).values)
    for i, row in enumerate(answer["estimates"]):
        assert _same(row["plain_value"], plain.mean[i])
        assert _same(row["plain_mcse"], plain.mcse[i])
    row = found["tau"]
    assert abs(row["value"] - np.exp(0.3**2 / 2)) < 5 * row["mcse"] < 5 * row["plain_mcse"]
    assert row["lower"] < row["value"] < row["upper"]
    assert answer["audit"]["passed"] and answer["audit"]["divergences"] == 0


@pytest.mark.slow
def test_estimate_as_json_has_the_numbers_of_the_library(here: Path, capsys) -> None:
    assert main(["estimate", "draws.nc", "--fn", "functions.py:first", "--json"]) == 0
    row = json.loads(capsys.readouterr().out)["estimates"][0]
    found = sx.estimate({"first": lambda x: x[0]}, sx.from_arviz("draws.nc"))
    for key in ("value", "mcse", "plain_value", "plain_mcse", "worth", "ess", "rhat", "freedom"):
        assert _same(row[key], getattr(found, key)[0]), key
    assert row["chosen"] == found.chosen[0]


@pytest.mark.parametrize("width", [40, 80, 120])
def test_estimate_fits_the_width(width: int, here: Path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    words = ["estimate", "draws.nc", "--fn", "functions:share", "--var", "beta"]
    assert main(words) == 0
    out, err = capsys.readouterr()
    assert max(map(len, out.splitlines())) <= width
    assert not CONTROL.search(out) and not err
    assert ("no room for" in out) == (width == 40)
    assert all(name in out for name in ("share", "beta[0]", "beta[1]", "audit passed"))


def test_two_functions_of_one_name_are_told_apart(here: Path, capsys) -> None:
    words = ["--fn", "functions:first", "--fn", "functions.py:first", "--csv"]
    assert main(["estimate", "draws.nc", *words]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["name"] for row in rows] == ["functions:first", "functions.py:first"]


def test_audit_passes_and_fails(here: Path, capsys) -> None:
    assert main(["audit", "draws.nc"]) == 0
    assert capsys.readouterr().out.startswith("audit passed")
    assert main(["audit", "wrong.nc"]) == 1
    assert "sign" in capsys.readouterr().out
    assert main(["audit", "wrong.nc", "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert not answer["passed"] and answer["problems"][0]["kind"] == "sign"
    assert list(answer["limit"]) == ["mu", "tau_log__", "beta[1]"]


@pytest.mark.parametrize("words", [["summary"], ["estimate", "--var", "tau"]])
def test_wrong_scores_stop_everything_unless_told_otherwise(words, here: Path, capsys) -> None:
    assert main([*words, "wrong.nc"]) == 1
    out, err = capsys.readouterr()
    assert not out and err.startswith("audit failed")
    assert main([*words, "wrong.nc", "--audit", "warn"]) == 0
    out, err = capsys.readouterr()
    assert "tau" in out and err.startswith("steinax: warning: audit failed")


@pytest.mark.parametrize("name", ["out.nc", "out.zarr"])
def test_convert_keeps_everything(name: str, here: Path, capsys) -> None:
    assert main(["convert", "draws.nc", name]) == 0
    assert "4 chains x 400 draws" in capsys.readouterr().err
    first, second = (sx.from_arviz(one) for one in ("draws.nc", name))
    np.testing.assert_array_equal(first.draws, second.draws)
    np.testing.assert_array_equal(first.scores, second.scores)
    assert first.names == second.names
    assert first.variables.names == second.variables.names
    np.testing.assert_array_equal(first.variables["tau"], second.variables["tau"])
    assert main(["convert", "draws.zarr", name]) == 2
    assert "--force" in capsys.readouterr().err
    assert main(["convert", "draws.zarr", name, "--force"]) == 0
    assert not list(here.glob(".steinax-*"))


def test_convert_refuses_what_would_lose_data(here: Path, capsys) -> None:
    folder = here / "mine.zarr"
    folder.mkdir()
    (folder / "thesis.tex").touch()
    assert main(["convert", "draws.nc", "mine.zarr", "--force"]) == 2
    assert main(["convert", "draws.nc", "./draws.nc", "--force"]) == 2
    assert main(["convert", "draws.nc", "out.txt"]) == 2
    assert main(["convert", "draws.nc", "nowhere/out.nc"]) == 2
    assert (folder / "thesis.tex").exists()
    assert capsys.readouterr().err.count("steinax: error:") == 4


def test_files_of_cmdstan(output: Path, here: Path, capsys) -> None:
    files = sorted(str(path.relative_to(here)) for path in output.glob("*.csv"))
    assert main(["audit", "output"]) == 0
    folder = capsys.readouterr().out
    assert main(["audit", *files]) == 0
    assert capsys.readouterr().out == folder
    assert main(["audit", "output/*.csv"]) == 0  # a shell that expands nothing
    assert capsys.readouterr().out == folder
    assert main(["convert", *files, "eight.nc", "--force"]) == 0
    assert main(["audit", "eight.nc"]) == 0
    assert capsys.readouterr().out == folder


def test_a_run_that_has_not_ended_can_be_watched(output: Path, tmp_path: Path, capsys) -> None:
    text = (output / "eight_1.csv").read_text(encoding="utf-8")
    (tmp_path / "eight_1.csv").write_text(text[: int(len(text) * 0.9)], encoding="utf-8")
    assert main(["audit", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert "the others; steinax watch reads a run that is going on." in told
    assert "partial=True" not in told


@pytest.mark.parametrize("command", ["summary", "estimate"])
def test_positions_count_from_0_unlike_those_of_stan(
    command: str, output: Path, here: Path, capsys
) -> None:
    words = [command, "output", "--json", "--var", "theta[1]"]
    assert main(words) == 0
    out, err = capsys.readouterr()
    note = "steinax: note: positions count from 0: theta[1] is Stan's theta.2.\n"
    assert err == note and '"theta[1]"' in out
    assert main([*words, "--var", "theta[0]"]) == 0  # whoever asks for 0 knows
    assert main(["estimate", "draws.nc", "--var", "beta[1]"]) == 0
    assert not capsys.readouterr().err


def test_files_as_cmdstanr_names_them(output: Path, here: Path, tmp_path: Path, capsys) -> None:
    for i in range(1, 5):
        stem = f"-202401011200-{i}-5f3a2b.csv"
        (tmp_path / f"eight{stem}").symlink_to((output / f"eight_{i}.csv").resolve())
        diagnostics = (output / f"eight-diagnostic_{i}.csv").resolve()
        (tmp_path / f"eight-diagnostic{stem}").symlink_to(diagnostics)
    assert main(["audit", "output"]) == 0
    expected = capsys.readouterr().out
    assert main(["audit", *map(str, sorted(tmp_path.glob("*.csv")))]) == 0
    assert capsys.readouterr().out == expected
