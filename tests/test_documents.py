"""Every Python block that a reader can copy is run."""

from pathlib import Path

import pytest

import documents

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = [p for p in (ROOT / "docs").rglob("*.md") if not {"api", "_build"} & set(p.parts)]
DOCUMENTS = [p for p in [README, *sorted(PAGES)] if documents.has_blocks(p)]


def test_readme_has_an_example() -> None:
    assert README in DOCUMENTS


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_python_blocks_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    documents.run(path)
