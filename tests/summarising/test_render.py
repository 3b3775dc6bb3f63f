"""The table in a terminal: what is shown at which width, and that it fits."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

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


@pytest.mark.parametrize(
    ("width", "columns"),
    [(80, NARROW), (160, WIDE), (45, ["mean", "mcse_mean", "worth", "sd", "r_hat"])],
)
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
    assert len(plain._fmt_map["mean"]["mu"]) <= 4 and plain._fmt_map["sd"]["mu"] == "1.00"
    assert "Until the scores are checked" in as_text(plain, 120)
    assert "Until the scores" not in as_text(exact, 120)
    assert plain.loc["mu", "mcse_mean"] == exact.loc["mu", "mcse_mean"]


def test_the_note_is_shown_in_a_notebook_too(table: pd.DataFrame) -> None:
    assert "times as many draws" in table._repr_html_()
    assert "times as many draws" not in table[["mean"]]._repr_html_()


def test_a_transposed_table_prints(table: pd.DataFrame) -> None:
    assert "plain_mcse_mean" in repr(table.T)


def test_means_have_as_many_digits_without_their_errors(table: pd.DataFrame) -> None:
    few = summary(banana(0), kind="stats")
    assert list(few.columns) == [name for name in table.columns if name in few.columns]
    assert all(few._fmt_map[name] == table._fmt_map[name] for name in few.columns)


@pytest.mark.parametrize("width", range(60, 140, 4))
def test_no_interval_is_shown_without_its_upper_end(width: int, table: pd.DataFrame) -> None:
    head = as_text(table, width).split("alpha")[0]
    assert head.count("lb") == head.count("ub")


def test_notes_name_rows_by_their_labels_and_tell_divergences_and_single_chains() -> None:
    x = np.random.default_rng(1).normal(size=(4, 60, 3))
    x[0, :, 1] += 0.35
    sites = xr.Dataset({"a": (("chain", "draw", "site"), x)}, {"site": ["near", "far", "away"]})
    sample = sx.Sample(
        x, -x, variables=sites, verified=True, diverging=np.arange(240).reshape(4, 60) == 7
    )
    note = summary(sample, family=sx.Polynomial(1)).attrs["steinax"]
    assert "R-hat is above 1.01 for a[far]" in note and "ended in a divergence" in note
    alone = sx.Sample(x[:1], -x[:1], verified=True)
    assert "R-hat needs several chains" in summary(alone, family=sx.Polynomial(1)).attrs["steinax"]


def test_rounding_errors_do_not_make_a_constant_vary() -> None:
    x = np.random.default_rng(1).normal(size=(4, 250, 1))
    one = 1.0 + np.sign(x[..., 0]) * 2.0**-53
    sample = sx.from_arrays(x, -x, variables={"x": x[..., 0], "one": one})
    note = summary(sample).attrs["steinax"]
    assert "one" not in note.split() and "1 row of 2: constant" in note
