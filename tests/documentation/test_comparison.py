"""The comparison with other packages: every cell of steinax is filled and leads to a page that there is."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "peers.md").read_text(encoding="utf-8")
TABLE = PAGE.partition("## Features")[2].partition("## Accuracy")[0]
HEAD, _, *ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in TABLE.splitlines()
    if line.startswith("|")
]
UNLINKED = {"last change"}
EMPTY = {"", "-", "no"}


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_every_cell_of_steinax_leads_to_its_page(row: list[str]) -> None:
    assert len(row) == len(HEAD)
    assert HEAD[1] == "steinax"
    assert row[1] not in EMPTY
    if row[0] not in UNLINKED:
        page, _, _ = re.findall(r"\]\(([^)]+)\)", row[1])[0].partition("#")
        assert (DOCS / page).exists(), page


def test_some_rows_are_those_of_no_peer() -> None:
    alone = [row[0] for row in ROWS if set(row[2:]) <= EMPTY]
    assert len(alone) >= 5, alone


def test_every_page_past_the_paper_has_a_row() -> None:
    pages = {path.stem for path in (DOCS / "beyond").glob("*.md")} - {"index"}
    assert pages <= set(re.findall(r"beyond/(\w+)\.md", TABLE))
