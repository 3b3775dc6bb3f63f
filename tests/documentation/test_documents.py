"""Every block that a reader can copy is run: here, or, on pages that are notebooks, by the build."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import documents
import pumps

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
PAGES = [page for page in PAGES if "_build" not in page.parts]
NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]
RUN = [name for name in NAMES if any(block.runs for block in documents.blocks(ROOT / name))]
NOTEBOOK = re.compile(r"\A---\n(.+\n)*?file_format: mystnb\n")
DIRECTIVE = r"\{(?!code|sourcecode|literalinclude|parsed-literal|prompt)"  # that shows no code
# The sampler's page runs five samplers, whose own warnings are not ours.
MARKS = {
    "README.md": (pytest.mark.slow,),
    "docs/guides/command_line.md": (pytest.mark.slow,),
    "docs/guides/from_your_sampler.md": (pytest.mark.slow, pytest.mark.filterwarnings("ignore")),
    "docs/proposals/nutpie_warmup.md": (pytest.mark.slow, pytest.mark.filterwarnings("ignore")),
}
# What a page finds in the folder where it is run: names of the folders of STEINAX_DATA.
FINDS = {
    "docs/guides/command_line.md": {"output": "cmdstan_eight_schools"},
    "docs/guides/from_your_sampler.md": {"output": "cmdstan_eight_schools"},
    "docs/proposals/arviz_scores.md": {"output": "cmdstan_eight_schools"},
}
# What nothing runs: the page, the block's first line, and the reason.
CONTRIBUTING = "it resolves every requirement anew, over the network"
HOURS = "it takes hours; CI runs `python -m benchmarks.paper --all --quick`"
INSTALLS = "it installs; .ci/run does that, in environments of their own"
MODEL = "it needs a model of yours; docs/guides/from_your_sampler.md runs the same lines on one"
SAMPLERS = "tests/stopping/test_samplers.py runs the same samplers"
NOT_RUN = {
    ("README.md", "with model:"): MODEL,
    ("README.md", "mcmc.warmup("): MODEL,
    ("README.md", "compiled = nutpie.compile_pymc_model("): MODEL,
    ("README.md", "fit = model.sample("): MODEL,
    ("docs/index.md", "import steinax as sx"): MODEL,
    ("docs/index.md", "$ pip install ."): INSTALLS,
    ("CONTRIBUTING.md", 'flags="--universal --python-version 3.12'): CONTRIBUTING,
    ("docs/guides/command_line.md", "fit <- model$sample("): "no Stan where the pages are tested",
    ("docs/proposals/posterior_273.md", 'source("steinax.R")'): "Rscript r/test.R runs it",
    (
        "docs/guides/from_your_sampler.md",
        "import bridgestan",
    ): "BridgeStan's sources are on no index",
    ("docs/guides/stopping.md", "# BlackJAX: 25 draws of each chain"): SAMPLERS,
    ("docs/guides/stopping.md", "./model sample"): SAMPLERS,
    ("docs/guides/molecules.md", "universe = MDAnalysis.Universe("): "its files are the reader's; "
    "tests/molecules reads such files",
    ("docs/paper.md", "python -m benchmarks.paper --all"): HOURS,
    ("docs/api/methods.md", "# Spark"): "Spark and Ray are not installed; the page says so",
}


def _listed(name: str, block: documents.Block) -> list[tuple[str, str]]:
    return [key for key in NOT_RUN if key[0] == name and block.code.startswith(key[1])]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=MARKS.get(name, ()), id=name) for name in RUN]
)
def test_blocks_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    for link, folder in FINDS.get(name, {}).items():
        (tmp_path / link).symlink_to(request.getfixturevalue("data_dir") / folder)
    documents.run(ROOT / name)


def test_readme_has_an_example() -> None:
    assert "README.md" in RUN


@pytest.mark.parametrize("name", NAMES)
def test_every_block_is_run_or_says_why_not(name: str) -> None:
    notebook = NOTEBOOK.match((ROOT / name).read_text(encoding="utf-8"))
    for block in documents.blocks(ROOT / name):
        where = f"{name}:{block.line}: ```{block.language}"
        if block.language.startswith("{code-cell}"):
            assert notebook, f"{where} is run by no one: begin the page with file_format: mystnb"
        elif not re.match(DIRECTIVE, block.language) and not block.runs:
            known = block.language == "text" or _listed(name, block)
            assert known, f"{where} is run by no one: make it python, bash or text, or list it"


EXTRAS = {
    **{name: name for name in ("blackjax", "numpyro", "nutpie", "pymc", "diffrax")},
    **{"matplotlib": "plots", "openmm": "physics", "pyerrors": "physics"},
}
FOLDERS = ("docs/tour.md", "docs/examples/", "docs/guides/", "docs/beyond/")
OWN_SAMPLER = "docs/guides/from_your_sampler.md"  # readers have theirs


@pytest.mark.parametrize(
    "name", [name for name in NAMES if name.startswith(FOLDERS) and name != OWN_SAMPLER]
)
def test_a_page_says_what_to_install(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    visible = re.sub(
        r"^```\{code-cell\}.*\n:tags: \[remove-cell\]\n(.*\n)*?```$", "", text, flags=re.M
    )
    used = set(re.findall(r"^(?:import|from) (\w+)", visible, re.M)) & set(EXTRAS)
    told = set(re.findall(r"\w+", " ".join(re.findall(r"pip install [^`]*", text))))
    assert {EXTRAS[package] for package in used} <= told


def test_what_is_listed_is_there() -> None:
    found = {
        key for name in NAMES for b in documents.blocks(ROOT / name) for key in _listed(name, b)
    }
    assert found == set(NOT_RUN)


@pytest.mark.parametrize(
    "page",
    [
        "```python\nassert False\n```",
        "```bash\nfalse | true\n```",
        "```text\n$ echo one\ntwo\n```",
        "```python\nprint('one', 1.0)\n```\n```text\none 1.1\n```",
        "```python\nprint('one')\n```\n```text\none more\n...\n```",
        "::::{tab-set}\n:::{tab-item} a\n```python\nraise ValueError\n```\n:::\n::::",
        "````{tab-set}\n```python\nraise ValueError\n```\n````",
    ],
)
def test_a_wrong_block_is_found(page: str, tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(page, encoding="utf-8")
    with pytest.raises((AssertionError, ValueError)):
        documents.run(path)


def test_output_that_is_shown_is_what_is_printed(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(
        "```python\nprint('one', 1.0)\nprint(2)\n```\n```text\none 1.01\n...\n```", encoding="utf-8"
    )
    documents.run(path)


@pytest.mark.slow
def test_the_example_of_the_readme_is_right() -> None:
    """The answers that it calls known, and the estimates, against quadrature."""
    page = ROOT / "README.md"
    code = [block.code for block in documents.blocks(page) if block.language == "python"]
    names: dict[str, Any] = {}
    exec("\n".join(code[:2]), names)
    b, weight = pumps.quadrature(names["failures"], names["hours"])
    shape, rate = 1.8 + names["failures"], b + names["hours"]
    truth = [weight @ (shape / rate)[:, 0], weight @ (shape / rate)[:, 9], weight @ b[:, 0]]
    shown = re.search(r"are known: ([\d.]+), ([\d.]+) and ([\d.]+)\.", page.read_text("utf-8"))
    assert shown
    np.testing.assert_allclose([float(one) for one in shown.groups()], truth, atol=6e-8)
    est = names["est"]
    assert np.all(np.abs(est.value - truth) < 3 * est.mcse)
    assert np.all(est.worth > 1e4)
