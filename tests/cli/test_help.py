"""What --help promises: examples that run, lines that fit, a script that a shell can read."""

import glob
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from steinax.cli import main
from steinax.cli._parser import SHELLS

COMMANDS = ("summary", "audit", "estimate", "convert", "completion")


def _help(capsys, monkeypatch, *words: str) -> str:
    monkeypatch.setenv("COLUMNS", "80")
    assert main([*words, "--help"]) == 0
    out, err = capsys.readouterr()
    assert not err
    return out


@pytest.mark.parametrize("words", [(), *((one,) for one in COMMANDS)], ids=str)
def test_help_fits_80_columns(words, capsys, monkeypatch) -> None:
    text = _help(capsys, monkeypatch, *words)
    assert max(map(len, text.splitlines())) < 80
    assert "examples:\n  steinax " in text


def test_help_lists_every_command_and_exit_code(capsys, monkeypatch) -> None:
    text = _help(capsys, monkeypatch)
    assert all(re.search(rf"^    {name} ", text, re.MULTILINE) for name in COMMANDS)
    assert all(re.search(rf"^  {code}  ", text, re.MULTILINE) for code in (0, 1, 2))


@pytest.mark.slow  # every example of every command
@pytest.mark.parametrize("command", COMMANDS)
def test_examples_run(command: str, output: Path, here: Path, capsys, monkeypatch) -> None:
    text = _help(capsys, monkeypatch, command)
    examples = re.findall(r"^  steinax (.*)$", text.partition("examples:")[2], re.MULTILINE)
    assert examples
    for example in examples:
        for line in re.split(r"&& steinax ", example):
            words = shlex.split(re.split(r"[|>]", line)[0])  # pipes are the shell's
            files = [one for word in words for one in sorted(glob.glob(word)) or [word]]
            assert main(files) == 0, example
            out, err = capsys.readouterr()
            assert out or "--output" in line or command == "convert", example
            assert "error" not in err


def test_version(capsys) -> None:
    from importlib.metadata import version

    assert main(["--version"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == f"steinax {version('steinax')}"
    assert f"jax {version('jax')}, numpy {version('numpy')}" in second


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_knows_commands_and_options(shell: str, capsys) -> None:
    pytest.importorskip("shtab")
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(name in script for name in COMMANDS)
    assert shell == "tcsh" or "--audit" in script  # there, shtab knows the commands alone


def test_completion_is_bash(tmp_path: Path, capsys) -> None:
    pytest.importorskip("shtab")
    assert main(["completion", "bash"]) == 0
    script = tmp_path / "steinax.bash"
    script.write_text(capsys.readouterr().out, encoding="utf-8")
    subprocess.run(["bash", "-n", str(script)], check=True)
    asked = f"source {script}; COMP_WORDS=(steinax su); COMP_CWORD=1; COMP_LINE='steinax su'; "
    asked += '_shtab_steinax; echo "${COMPREPLY[@]}"'
    answer = subprocess.run(["bash", "-c", asked], check=True, capture_output=True, text=True)
    assert answer.stdout.split() == ["summary"]
