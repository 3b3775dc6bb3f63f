"""The check of the built site reports what is broken, on sites of two pages; no browser."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("bs4")
SCRIPT = Path(__file__).parents[2] / "docs" / "check.py"


@pytest.fixture(scope="module")
def check() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_check", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _site(folder: Path, body: str) -> Path:
    (folder / "guides").mkdir()
    (folder / "index.html").write_text(f"<html><body id='top'>{body}</body></html>")
    (folder / "guides" / "one.html").write_text(
        "<h1 id='here'>One</h1><a href='../index.html'>up</a>"
    )
    (folder / "mark.svg").write_text("<svg/>")
    return folder


def _wrong(check: ModuleType, folder: Path) -> list[str]:
    return check.broken_links(folder, check.read(folder))


@pytest.mark.parametrize(
    "link",
    ["guides/one.html", "guides/one.html#here", "#top", "mark.svg", "https://elsewhere.invalid/x"],
)
def test_a_whole_site_passes(check: ModuleType, tmp_path: Path, link: str) -> None:
    assert _wrong(check, _site(tmp_path, f"<a href='{link}'>x</a>")) == []


@pytest.mark.parametrize(
    "body",
    [
        "<a href='guides/two.html'>x</a>",
        "<a href='guides/one.html#there'>x</a>",
        "<a href='#bottom'>x</a>",
        "<img src='missing.png'>",
        "<a href='guides'>a folder</a>",
        "<a href='../outside.html'>x</a>",
    ],
)
def test_what_is_missing_is_reported(check: ModuleType, tmp_path: Path, body: str) -> None:
    found = _wrong(check, _site(tmp_path, body))
    assert len(found) == 1
    assert found[0].startswith("index.html: ")


def test_links_to_other_hosts_are_listed(check: ModuleType, tmp_path: Path) -> None:
    site = _site(tmp_path, "<a href='https://b.invalid/'>x</a><a href='mark.svg'>y</a>")
    assert check.external_links(check.read(site)) == ["https://b.invalid/"]
