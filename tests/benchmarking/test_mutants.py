"""The table of mutants fits the source and the tests, and the command tells the dead from the living."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.mutants._running import CRASHED, KILLED, ROOT, SURVIVED, Outcome, judged
from benchmarks.mutants._table import MUTANTS, Mutant

PACKAGE = ROOT / "src" / "steinax"
TEST = "tests/chains/test_statistics.py::test_no_warning_escapes"


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: one.name)
def test_the_code_is_there_once_and_the_mutant_is_another(mutant: Mutant) -> None:
    text = mutant.changed(PACKAGE)
    assert text != (PACKAGE / mutant.path).read_text(encoding="utf-8")
    ast.parse(text)


@pytest.mark.parametrize("count", [0, 2])
def test_code_that_is_not_there_once_is_an_error(count: int, tmp_path: Path) -> None:
    (tmp_path / "some.py").write_text("a = 1\n" * count, encoding="utf-8")
    with pytest.raises(
        ValueError, match=f"holds {count} times: give it code that stands there once"
    ):
        Mutant("some", "some.py", "a = 1", "a = 2", (TEST,)).changed(tmp_path)


def test_names_are_different() -> None:
    assert len({one.name for one in MUTANTS}) == len(MUTANTS) >= 15


@pytest.mark.parametrize("test", sorted({test for one in MUTANTS for test in one.tests}))
def test_the_tests_are_there_and_fast(test: str) -> None:
    path, *names = test.partition("[")[0].split("::")
    node = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    marks = [ast.unparse(one.value) for one in node.body if "pytestmark" in ast.unparse(one)]
    for name in names:
        inner = [one for one in node.body if getattr(one, "name", None) == name]
        assert len(inner) == 1, f"{path} has no {name}"
        node = inner[0]
        marks += [
            ast.unparse(one) for one in node.decorator_list if "parametrize" not in ast.unparse(one)
        ]
    assert not any("slow" in mark for mark in marks)


class TestVerdict:
    """A mutant is killed where an assertion of each test failed, and nothing else did."""

    BOTH = ("tests/a.py::test_one", "tests/a.py::test_two")

    def test_killed(self) -> None:
        failed = ["tests/a.py::test_one", "tests/a.py::test_two[3]"]
        assert Outcome(self.BOTH, failed).verdict == KILLED

    def test_a_test_that_does_not_notice(self) -> None:
        assert Outcome(self.BOTH, ["tests/a.py::test_one"]).verdict == SURVIVED
        assert Outcome(self.BOTH, passed=2).verdict == SURVIVED

    def test_a_crash_is_no_kill(self) -> None:
        assert Outcome(self.BOTH, [*self.BOTH], ["tests/a.py::test_one"]).verdict == CRASHED


@pytest.mark.slow
def test_the_command_kills_some() -> None:
    command = [
        sys.executable,
        "-m",
        "benchmarks.mutants",
        "batches of a chain",
        "audit has no cosine",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 of 2 mutants were killed" in done.stdout


@pytest.mark.slow
def test_what_survives_and_what_crashes_is_told() -> None:
    """A comment changes nothing, and a file that cannot be imported fails no assertion."""
    path, code = "chains/_statistics.py", "FLOOR = 4.0"
    harmless = Mutant("harmless", path, code, "FLOOR = 4.0  # of rounding", (TEST,))
    broken = Mutant("broken", path, code, "FLOOR = 4.0 +", (TEST,))
    found = [outcome.verdict for _, outcome in judged([harmless, broken])]
    assert found == [SURVIVED, CRASHED]


@pytest.mark.slow
def test_tests_that_fail_without_a_mutant_are_an_error() -> None:
    missing = Mutant(
        "some", "chains/_statistics.py", "FLOOR = 4.0", "FLOOR = 5.0", (f"{TEST}_there",)
    )
    with pytest.raises(SystemExit, match="the tests must pass without a mutant"):
        list(judged([missing]))
