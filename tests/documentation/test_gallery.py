"""Every card of the gallery has a small picture that a command makes."""

import importlib.util
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
CARD = re.compile(r":::\{grid-item-card\}.*?\n:::", re.DOTALL)
CARDS = CARD.findall((DOCS / "examples" / "index.md").read_text(encoding="utf-8"))


def _option(card: str, name: str) -> Path:
    found = re.search(rf"^:{name}: (.+)$", card, re.MULTILINE)
    assert found, f"no {name}: {card}"
    return (DOCS / "examples" / found[1]).resolve().relative_to(DOCS.resolve())


@pytest.mark.parametrize("card", CARDS, ids=[_option(card, "link").name for card in CARDS])
def test_a_card_has_a_small_picture(card: str) -> None:
    page, picture = _option(card, "link"), _option(card, "img-top")
    assert (DOCS / f"{page}.md").is_file()
    assert picture == Path("pictures", f"{page.name}.png")
    assert (DOCS / picture).stat().st_size < 30_000
    assert re.search(r"^:img-alt: \S", card, re.MULTILINE)


def test_the_command_makes_the_pictures_of_all_cards() -> None:
    pytest.importorskip("matplotlib")
    spec = importlib.util.spec_from_file_location("thumbnails", DOCS / "thumbnails.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert set(module.SHOWN) == {_option(card, "link").as_posix() for card in CARDS}
