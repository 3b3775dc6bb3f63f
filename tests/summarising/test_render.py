"""The table in a terminal: what is shown at which width, and that it fits."""

import numpy as np
import pandas as pd
import pytest

import steinax as sx
from steinax._show import shortened
from steinax.summarising import render, summary
from steinax.summarising._render import as_text
from summarising.models import banana

WIDE = [
    *("mean", "mcse_mean", "plain_mean", "plain_mcse_mean", "worth", "ess", "sd", "mcse_sd"),
    *("plain_sd", "plain_mcse_sd", "eti89_lb", "mcse_eti89_lb", "eti89_ub", "mcse_eti89_ub"),
    *("plain_eti89_lb", "plain_eti89_ub", "ess_bulk", "ess_tail", "r_hat"),
]
NARROW = [
    *("mean", "mcse_mean", "plain_mean", "plain_mcse_mean", "worth", "sd", "mcse_sd"),
    *("eti89_lb", "eti89_ub", "r_hat"),
]


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return summary(banana(0))


def _headings(columns: list[str]) -> list[str]:
    short = [c.replace("mcse_mean", "mcse").replace("mcse_sd", "mcse") for c in columns]
    return [c if c == "r_hat" else c.replace("_", "\n", 1) for c in short]


@pytest.mark.parametrize(("width", "columns"), [(80, NARROW), (160, WIDE), (45, NARROW[:5])])
def test_what_was_gained_comes_first(table: pd.DataFrame, width: int, columns: list[str]) -> None:
    made = render(table, width)
    assert [column.header for column in made.columns[1:]] == _headings(columns)
    hidden = [column for column in table.columns if column not in columns]
    assert (f"no room for {', '.join(hidden)}" in made.caption) == bool(hidden)
    assert max(map(len, as_text(table, width).splitlines())) <= width


def test_long_names_and_a_thousand_rows_fit(table: pd.DataFrame) -> None:
    names = [f"a_very_long_name_of_a_parameter_{i}[Alpha, Beta, Gamma, Delta]" for i in range(1000)]
    long = pd.DataFrame(table).iloc[np.arange(1000) % 3].set_index(pd.Index(names))
    for width in (40, 60, 80, 100, 120):
        lines = as_text(long, width).splitlines()
        assert max(map(len, lines)) <= width
        assert sum("…" in line for line in lines) == 1000
    few = as_text(long, 80, rows=60)
    assert sum("…" in line for line in few.splitlines()) == 60
    assert "1000 rows, of which 60 are shown" in few


def test_names_are_cut_in_their_middle() -> None:
    assert shortened("theta[Choate]", 20) == "theta[Choate]"
    assert shortened("theta[a very long school, 12]", 15) == "theta[a…ol, 12]"


def test_brackets_in_names_are_not_markup() -> None:
    x = np.random.default_rng(0).normal(size=(4, 50, 1))
    table = summary(sx.Sample(x, -x, ["theta[red]"]))
    assert "theta[red]" in as_text(table, 80)


def test_a_frame_prints_itself_and_its_slices(
    table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert repr(table) == as_text(table, 80, rows=60)
    assert repr(table.loc[["tau"]]).splitlines()[2].startswith("tau")
    assert "audit" not in repr(table[["mean"]])
    assert "plain_mcse_sd" in table._repr_html_()
    assert "no room" not in table.to_string()


def test_chains_that_disagree_are_red(table: pd.DataFrame) -> None:
    bad = table.copy()
    bad.loc["tau", "r_hat"] = 1.2
    cells = list(render(bad, 120).columns[-1].cells)
    assert [("red" in cell) for cell in cells] == [False, False, True]


def test_scores_by_hand_show_no_more_digits_than_plain_means() -> None:
    x = 1.5 + np.random.default_rng(0).normal(size=(4, 250, 1))
    plain, exact = (
        summary(sx.Sample(x, 1.5 - x, ["mu"], verified=verified)) for verified in (False, True)
    )
    assert len(plain._fmt_map["mean"]["mu"]) <= 4 and plain._fmt_map["sd"]["mu"] == "1"
    assert "Until then means and sds are shown" in as_text(plain, 120)
    assert "Until then" not in as_text(exact, 120)
    assert plain.loc["mu", "mcse_mean"] == exact.loc["mu", "mcse_mean"]
