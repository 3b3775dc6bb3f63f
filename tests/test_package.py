"""What is released: no second copy of the version, and a script for every extra."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_version_is_written_nowhere() -> None:
    assert "version" not in PROJECT and "version" in PROJECT["dynamic"]
    lines = (ROOT / "CITATION.cff").read_text(encoding="utf-8").splitlines()
    assert not [line for line in lines if line.startswith("version:")]


def test_every_extra_is_tried_alone() -> None:
    scripts = {path.stem for path in (ROOT / "tests" / "package").glob("with_*.py")}
    assert scripts == {f"with_{extra}" for extra in ("core", *PROJECT["optional-dependencies"])}


def test_citation_names_the_paper_of_the_method() -> None:
    from steinax.citing import _references

    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert dict(_references.METHOD.source)["eprint"] in text
    assert all(name.split()[-1] in text for name in _references.METHOD.authors)
