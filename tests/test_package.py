"""What is released: no second copy of the version, and a script for every extra."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]


def test_the_version_is_written_nowhere() -> None:
    assert "version" not in PROJECT and "version" in PROJECT["dynamic"]
    lines = (ROOT / "CITATION.cff").read_text(encoding="utf-8").splitlines()
    assert not [line for line in lines if line.startswith("version:")]


def test_every_extra_is_tried_alone() -> None:
    scripts = {path.stem for path in (ROOT / "tests" / "package").glob("with_*.py")}
    assert scripts == {f"with_{extra}" for extra in ("core", *PROJECT["optional-dependencies"])}


def test_messages_and_guides_name_extras_that_there_are() -> None:
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md")]
    text = "\n".join(one.read_text(encoding="utf-8") for one in files)
    required = re.findall(r'require\([^)]*extra="(\w+)"', text)
    installed = re.findall(r"pip install [\"']?(?:\.|steinax)\[([\w,]+)\]", text)
    named = {one for several in [*required, *installed] for one in several.split(",")}
    assert {"plots", "files", "nutpie", "checks"} <= named
    assert named <= set(PROJECT["optional-dependencies"])


def test_citation_names_the_paper_of_the_method() -> None:
    from steinax import citations

    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    authors, title, place = str(citations().references[1]).rstrip(".").rsplit(". ", 2)
    names = authors.removesuffix(" (2020)").replace(" and ", ", ").split(", ")
    assert title in text and place in text
    assert len(names) == 5 and all(name.split()[-1] in text for name in names)


def test_the_conda_recipe_requires_what_the_package_requires() -> None:
    yaml = pytest.importorskip("yaml", reason="of the dev group")
    recipe = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8"))
    wanted = [re.sub(r"\[.*\]", "", one).replace(">=", " >=") for one in PROJECT["dependencies"]]
    run = [*recipe["requirements"]["run"]]
    run.remove("python >=${{ python_min }}")
    run.remove("xarray-einstats")  # the extra xarray of arviz-stats
    assert sorted(run) == sorted(wanted)
    build = [one.replace(">=", " >=") for one in PYPROJECT["build-system"]["requires"]]
    assert {*build, "pip", "python ${{ python_min }}.*"} == {*recipe["requirements"]["host"]}
    scripts = [f"{name} = {target}" for name, target in PROJECT["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == scripts
    assert recipe["about"]["license"] == PROJECT["license"]
    assert recipe["about"]["summary"] == PROJECT["description"]
