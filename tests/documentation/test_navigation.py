"""The site stays small: few pages in its navigation, none of them long, and the others one link away."""

import re
from pathlib import Path, PurePosixPath

import pytest

DOCS = Path(__file__).parents[2] / "docs"
MOST_PAGES = 45
MOST_WORDS = 1_500
FRONT = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
TREE = re.compile(r"^(`{3,}|:{3,})\{toctree\}\n(.*?)^\1\s*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(
    r"\]\(([^)#\s:]+\.md)(?:#[^)]*)?\)|\{button-ref\} (\S+)|^:link: (\S+)$", re.MULTILINE
)
HIDDEN = re.compile(
    r"^```\{code-cell\}[^\n]*\n:tags: \[(?:remove-cell|hide-input)\]\n.*?^```$",
    re.MULTILINE | re.DOTALL,
)
# What is looked up, not read: any length.
REFERENCE = {"math", "support"}
TABLES = {"api", "benchmarks"}
# Parts of other pages.
INCLUDED = re.compile(r"benchmarks/(?:expect|everyday_|beyond_|scale_|speed_)|paper/|pictures/")


def _text(page: str) -> str:
    return (DOCS / f"{page}.md").read_text(encoding="utf-8")


def _there(page: str, target: str) -> str:
    """The page that a path means on another page."""
    parts: list[str] = []
    for part in (PurePosixPath(page).parent / target.removesuffix(".md")).parts:
        parts = parts[:-1] if part == ".." else [*parts, part]
    return "/".join(parts)


def _children(page: str) -> list[str]:
    """The pages of the toctrees of a page."""
    lines = [line.strip() for _, body in TREE.findall(_text(page)) for line in body.splitlines()]
    names = [line for line in lines if line and not line.startswith(":")]
    return [_there(page, re.sub(r".*<(.+)>", r"\1", name)) for name in names]


def _navigation() -> list[str]:
    found = ["index"]
    for page in found:
        found += [child for child in _children(page) if child not in found]
    return found


def _linked(page: str) -> set[str]:
    return {_there(page, next(filter(None, found))) for found in LINK.findall(_text(page))}


def _words(page: str) -> int:
    """The words of a page, the code that readers see included, without tables."""
    lines = HIDDEN.sub("", FRONT.sub("", _text(page))).splitlines()
    return len(" ".join(line for line in lines if not line.startswith("|")).split())


NAVIGATION = _navigation()
READ = [
    page for page in NAVIGATION if page not in REFERENCE and page.partition("/")[0] not in TABLES
]


def test_the_navigation_is_small() -> None:
    assert len(NAVIGATION) <= MOST_PAGES, NAVIGATION


@pytest.mark.parametrize("page", READ)
def test_no_page_is_long(page: str) -> None:
    assert _words(page) <= MOST_WORDS


def test_every_page_is_in_the_navigation_or_linked_from_it() -> None:
    """By one link, or by two for pages of a list that is itself linked."""
    near = set().union(*map(_linked, NAVIGATION))
    near |= set().union(*(_linked(page) for page in near if page.endswith("/index")))
    pages = {path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.rglob("*.md")}
    pages = {page for page in pages if not page.startswith("_build") and not INCLUDED.match(page)}
    assert pages - near - set(NAVIGATION) == set()


@pytest.mark.parametrize(
    ("page", "target", "there"),
    [
        ("index", "tour.md", "tour"),
        ("guides/audit", "../math.md", "math"),
        ("api/samples", "control_variates", "api/control_variates"),
    ],
)
def test_paths_are_those_of_pages(page: str, target: str, there: str) -> None:
    assert _there(page, target) == there
