"""What a notebook shows: a table of its own for an estimate, and the whole text where it is printed."""

import re

import nbclient
import nbformat
import numpy as np
import pytest

import steinax as sx

CELLS = (
    "import numpy as np; import steinax as sx",
    "x = np.random.default_rng(0).normal(size=(4, 50, 2))",
    "est = sx.estimate({'a < b': lambda x: x[0]}, sx.Sample(x, -x), sx.Polynomial(1)); est",
    "print(est)",
)


@pytest.mark.slow
def test_a_notebook_shows_the_table_and_prints_the_text() -> None:
    notebook = nbformat.v4.new_notebook(cells=list(map(nbformat.v4.new_code_cell, CELLS)))
    cells = nbclient.NotebookClient(notebook, timeout=120).execute().cells
    shown, printed = cells[2].outputs, cells[3].outputs
    assert ">a &lt; b</th>" in shown[0].data["text/html"]
    assert "Polynomial(1)" in shown[0].data["text/html"]
    assert [output.output_type for output in printed] == ["stream"]
    assert printed[0].text.splitlines()[1].startswith("a < b")


def test_candidates_as_a_table() -> None:
    left, mixture = np.array([[1.0], [0.01]]), np.array([[0], [1]])
    shown = sx.estimation.Candidates(left, mixture, ("plain", "Polynomial(1)"))._repr_html_()
    words = [word for word in re.sub("<[^>]*>", "|", shown).split("|") if word]
    assert words[3:] == ["Polynomial(1)", "0.01", "100%", "plain", "1", "0%"]
