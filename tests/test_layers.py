"""The drawing of the layers shows the imports as they are."""

import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


def test_the_drawing_is_of_these_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("grimp", reason="comes with import-linter, of the dev group")
    monkeypatch.syspath_prepend(DOCS)
    import layers

    monkeypatch.delitem(sys.modules, "layers")
    drawing = layers.DRAWING.read_text(encoding="utf-8")
    assert layers.drawn(drawing) == layers.reduced(layers.imports()), "run python docs/layers.py"


def test_an_import_that_another_implies_is_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("grimp")
    monkeypatch.syspath_prepend(DOCS)
    import layers

    monkeypatch.delitem(sys.modules, "layers")
    edges = {"a": {"b", "c"}, "b": {"c"}, "c": set()}
    assert layers.reduced(edges) == {"a": {"b"}, "b": {"c"}, "c": set()}
