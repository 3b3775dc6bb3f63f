"""Every Python block that a reader can copy is run."""

from pathlib import Path

import pytest

import documents

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = [p for p in (ROOT / "docs").rglob("*.md") if not {"api", "_build"} & set(p.parts)]
DOCUMENTS = [p for p in [README, *sorted(PAGES)] if documents.has_blocks(p)]
SAMPLERS = ROOT / "docs" / "guides" / "from_your_sampler.md"
# It runs five samplers, whose own warnings are not ours.
MARKS = {SAMPLERS: (pytest.mark.slow, pytest.mark.filterwarnings("ignore"))}


def test_readme_has_an_example() -> None:
    assert README in DOCUMENTS


@pytest.mark.parametrize(
    "path",
    [pytest.param(p, marks=MARKS.get(p, ()), id=p.relative_to(ROOT).as_posix()) for p in DOCUMENTS],
)
def test_python_blocks_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    documents.run(path)
