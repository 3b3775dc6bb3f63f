"""The table of what users can expect, and the text, have the figures that were measured."""

from pathlib import Path

from benchmarks.expect import expect
from benchmarks.posteriors._rows import read_rows
from benchmarks.posteriors._summary import at, ours
from benchmarks.posteriors._text import shown

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "benchmarks"


def test_the_table_is_up_to_date() -> None:
    stored = (FOLDER / "expect.md").read_text(encoding="utf-8")
    assert stored == expect(FOLDER), "run `python -m benchmarks.expect`"


def test_the_readme_has_rows_of_the_table() -> None:
    """All its columns are columns of the whole table."""
    head, _, *rows = _cells(ROOT / "README.md", "| model | d |")
    whole, _, *measured = _cells(FOLDER / "expect.md", "| model | d |")
    columns = [whole.index(name) for name in head]
    assert len(rows) >= 5
    assert all(row in [[one[i] for i in columns] for one in measured] for row in rows)


def _cells(path: Path, head: str) -> list[list[str]]:
    """The table of a page that begins so."""
    _, found, after = path.read_text(encoding="utf-8").partition(head)
    lines = (found + after).partition("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_paper_has_the_figures_that_were_measured() -> None:
    line = ours(at(read_rows(FOLDER / "posteriors.json"), 100))
    text = " ".join((ROOT / "paper" / "paper.md").read_text(encoding="utf-8").split())
    assert f"a median of {shown(line.median.means)} times as many" in text
    assert f"and {shown(line.median.squares)} for their squares" in text
    assert f"{line.coverage:.1%} of the 95% intervals contained the truth" in text
