"""The house's old words stay out of pages, messages and docstrings, and pages are easy to read."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "docs" / "words.py"


@pytest.fixture(scope="module")
def words() -> ModuleType:
    spec = importlib.util.spec_from_file_location("words", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_page_message_or_docstring_has_an_old_word(words: ModuleType) -> None:
    assert not words.to_rewrite()


def test_no_page_for_users_is_harder_to_read_than_the_first_page_of_arviz(
    words: ModuleType,
) -> None:
    assert not words.hard_to_read(words.rated())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Mend the function", [(0, "'Mend': write fix")]),
        (
            "A tree\nis no\n  model, and dear",
            [(1, "'is no model': write is not a, are not"), (2, "'dear': write expensive")],
        ),
        ("`beside`: $x = dear$, and there is no fee", []),
        ("an amended, dearly loved arena", [(0, "'arena': write candidates, choice")]),
        ("it is no longer so, and the others rest", []),
    ],
)
def test_old_words_are_found_with_what_to_write(
    words: ModuleType, text: str, found: list[tuple[int, str]]
) -> None:
    assert sorted(words.old_words(text)) == found


def test_messages_in_pieces_are_read(words: ModuleType, tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text('raise ValueError(\n    f"{1} is "\n    "dear " "and no more"\n)\n')
    texts = [text for _, text in words.strings(module)]
    assert [found for text in texts for found in words.old_words(text)]


def test_reading_ease_is_flesch_s(words: ModuleType, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("---\na: b\n---\n# Heading\n\nThe cat sat on the mat. Banana `code` bread.\n")
    assert list(words.sentences(words.markdown(page))) == [
        ["The", "cat", "sat", "on", "the", "mat"],
        ["Banana", "bread"],
    ]
    assert words.reading_ease(words.markdown(page)) == pytest.approx(
        206.835 - 1.015 * 8 / 2 - 84.6 * 10 / 8
    )
    page.write_text(
        "Incomprehensibilities characteristically overcomplicate communicational undertakings."
    )
    assert words.hard_to_read([page])
