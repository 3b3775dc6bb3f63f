"""Wrong usage and files that cannot be read: exit code 2, one message that says what to do, no traceback."""

from pathlib import Path

import pytest

from steinax.cli import main

MISTAKES = {
    "summary nothing.nc": "check the path",
    "summary nowhere/*.csv": "no file matches nowhere/*.csv: check",
    "summary README.md": "no output of CmdStan in README.md: give",
    "summary packed/draws.csv.gz": "unpack it first (gunzip packed/draws.csv.gz)",
    "summary packed": "the files in packed are compressed: unpack them",
    "summary text.nc": "give the file that the sampler wrote",
    "summary empty.csv": "is empty",
    "audit arrays.npz": "seems to be an npz file of arrays, such as a saved control variate, and not a",
    "audit other.zip": "seems to be a zip file, and not a sample: give the netCDF file, the zarr store",
    "summary draws.nc draws.zarr": "name one netCDF file",
    "summary draws.nc --var nope": "there are mu, tau, beta",
    "summary .": "not a zarr store",
    "estimate draws.nc": "nothing to estimate",
    "estimate draws.nc --var nope": "Use one of these",
    "estimate draws.nc --fn share": "functions:share",
    "estimate draws.nc --fn functions:nope": "has total, share, both",
    "estimate draws.nc --fn functions:number": "is not a function",
    "estimate draws.nc --fn nowhere:share": "there is no module 'nowhere'",
    "estimate draws.nc --fn nowhere.py:share": "check the path after --fn",
    "estimate draws.nc --fn functions:unknown": "has no nothing",
    "estimate draws.nc --fn functions:broken": "came from the integrand 'broken'",
}
USAGE = {
    "": "usage: steinax",
    "summary": "required: FILE",
    "sumary draws.nc": "invalid choice",
    "summary draws.nc --jso": "unrecognized arguments",
    "summary draws.nc --json --csv": "not allowed with",
    "summary draws.nc --quick": "unrecognized arguments",
    "summary draws.nc --ci-prob 95": "--ci-prob: 95 is not between 0 and 1: give 0.95",
    "summary draws.nc --ci-prob 0": "--ci-prob: 0 is not between 0 and 1: give a number",
    "summary draws.nc --ci-prob 95%": "--ci-prob: 95% is not a number: give one such as 0.95",
    "summary draws.nc --audit maybe": "invalid choice",
    "convert draws.nc": "required: OUT",
    "completion fish": "invalid choice",
}


@pytest.mark.parametrize("line", MISTAKES)
def test_mistake_is_told_in_one_message(line: str, here: Path, capsys) -> None:
    assert main(line.split()) == 2
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith("steinax: error: ") and MISTAKES[line] in err
    assert "Traceback" not in err and len(err.splitlines()) <= 3


@pytest.mark.parametrize("line", USAGE)
def test_wrong_usage(line: str, here: Path, capsys) -> None:
    assert main(line.split()) == 2
    out, err = capsys.readouterr()
    assert not out and err.startswith("usage: steinax") and USAGE[line] in err


def test_debug_raises(here: Path) -> None:
    with pytest.raises(FileNotFoundError):
        main(["summary", "nothing.nc", "--debug"])


def test_missing_package_is_named(here: Path, capsys, monkeypatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "shtab", None)
    assert main(["completion", "bash"]) == 2
    assert "pip install 'steinax[completion]'" in capsys.readouterr().err
