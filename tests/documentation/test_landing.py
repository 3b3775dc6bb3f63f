"""The table of the site's first page is the one that the measurements give."""

from pathlib import Path

import pytest
from benchmarks.posteriors._landing import landing
from benchmarks.posteriors._rows import read_rows
from benchmarks.posteriors._summary import at, ours
from benchmarks.posteriors._text import shown

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "benchmarks"
ROWS = read_rows(FOLDER / "posteriors.json")


def test_the_table_is_up_to_date() -> None:
    stored = (FOLDER / "landing.md").read_text(encoding="utf-8")
    assert stored == landing(ROWS), "run `python -m benchmarks.posteriors.landing`"


def test_every_posterior_has_a_row_and_the_best_is_first() -> None:
    rows = [line for line in landing(ROWS).splitlines() if line.startswith("| ")][2:]
    assert {row.split(" | ")[0].removeprefix("| ") for row in rows} == {
        row["posterior"] for row in ROWS
    }
    least = min(row["n"] for row in ROWS)
    best = max((row for row in ROWS if row["n"] == least), key=lambda row: row["gain"]["means"])
    assert rows[0].startswith(f"| {best['posterior']} |")


@pytest.mark.parametrize("name", ["README.md", "paper/paper.md"])
def test_the_text_has_the_figures_that_were_measured(name: str) -> None:
    line = ours(at(ROWS, 100))
    text = " ".join((ROOT / name).read_text(encoding="utf-8").split())
    assert f"a median of {shown(line.median.means)} times as many" in text
    assert f"and {shown(line.median.squares)} for their squares" in text
    assert f"{line.coverage:.1%} of the 95% intervals contained the truth" in text
