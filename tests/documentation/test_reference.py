"""Every public name is in the reference once, and each of its pages opens with the names that it has."""

import re
from collections import Counter
from pathlib import Path

import steinax

PAGES = sorted(Path(__file__).parents[2].glob("docs/api/*.md"))
TABLE = re.compile(
    r"^\.\. currentmodule:: steinax\.?(\S*)\n\.\. autosummary::\n +:nosignatures:\n\n((?: +\S+\n)+)",
    re.MULTILINE,
)


def _listed() -> Counter[str]:
    tables = [found for page in PAGES for found in TABLE.findall(page.read_text("utf-8"))]
    return Counter(f"{module}.{name}" for module, names in tables for name in names.split())


def test_every_public_name_is_in_the_reference_once() -> None:
    listed = _listed()
    public = {f"{home}.{name}" for name, home in steinax._HOME.items()}
    assert {name: listed[name] for name in public} == dict.fromkeys(public, 1)
