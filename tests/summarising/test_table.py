"""The summary: ArviZ's columns under ArviZ's names, ours among and behind them."""

import warnings

import arviz_stats
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from rich.table import Table
from scipy.stats import gamma

import steinax as sx
from steinax.summarising import summary
from steinax.summarising._render import formatted
from steinax.summarising._summary import _check, as_sample
from summarising.models import banana, odd

ARVIZ = [
    *("mean", "sd", "eti89_lb", "eti89_ub", "ess_bulk", "ess_tail", "r_hat"),
    *("mcse_mean", "mcse_sd"),
]
PLAIN = ["mean", "sd", "mcse_mean", "mcse_sd"]
ENDS = ["eti89_lb", "eti89_ub"]
ERRORS = [f"mcse_{name}" for name in ENDS]
COLUMNS = [*ARVIZ, *ERRORS, "ess", "worth", *(f"plain_{name}" for name in (*PLAIN, *ENDS))]
OF_DRAWS = ["ess_bulk", "ess_tail", "r_hat"]


def _arviz(sample: sx.Sample, **options) -> pd.DataFrame:
    posterior = sample.variables.tree["posterior"].to_dataset().astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # 0 / 0 on constants
        return arviz_stats.summary(posterior, **{"round_to": "none", **options})


@pytest.fixture(scope="module")
def sample() -> sx.Sample:
    return banana(0)


@pytest.fixture(scope="module")
def table(sample: sx.Sample) -> pd.DataFrame:
    return summary(sample)


def test_columns_are_those_of_arviz_and_then_ours(table: pd.DataFrame) -> None:
    assert list(table.columns) == COLUMNS
    assert list(table.index) == ["a", "height", "tau"]


def test_plain_columns_equal_those_of_arviz_exactly(sample: sx.Sample, table: pd.DataFrame) -> None:
    theirs = _arviz(sample)
    assert (table[OF_DRAWS].to_numpy() == theirs[OF_DRAWS].to_numpy()).all()
    ours = table[[f"plain_{name}" for name in (*PLAIN, *ENDS)]]
    assert (ours.to_numpy() == theirs[[*PLAIN, *ENDS]].to_numpy()).all()


def test_worth_and_ess_follow_from_the_other_columns(table: pd.DataFrame) -> None:
    assert (table["worth"] > 10).all()
    np.testing.assert_allclose(table["worth"], (table["plain_mcse_mean"] / table["mcse_mean"]) ** 2)
    np.testing.assert_allclose(table["ess"], (table["sd"] / table["mcse_mean"]) ** 2)
    assert (table["mcse_sd"] <= table["plain_mcse_sd"]).all()


def test_ends_of_intervals_are_nearer_to_the_truth_and_their_errors_hold() -> None:
    """240 ends of log-gamma distributions: chi-squared over its degrees of freedom, and the gain.

    In 1 of 1,000 such trials of right errors it is above 1.31; those of kinks may be 1.4 times too long.
    """
    x = np.log(np.random.default_rng(0).gamma(4.0, size=(40, 4, 500, 3)))
    tables = [
        summary(sx.Sample(one, 4 - np.exp(one)), family=sx.Polynomial(2), audit="off") for one in x
    ]
    truth = np.log(gamma.ppf([0.055, 0.945], 4))
    ours, plain, error = (
        np.stack([one[[f"{before}{name}" for name in ENDS]].to_numpy() for one in tables])
        for before in ("", "plain_", "mcse_")
    )
    assert 0.5 < np.mean(((ours - truth) / error) ** 2) < 1.31
    assert np.mean((ours - truth) ** 2) < 1e-3 * np.mean((plain - truth) ** 2)


@pytest.mark.parametrize(
    ("kind", "columns"),
    [
        ("stats", [*COLUMNS[:4], "plain_mean", "plain_sd", *(f"plain_{name}" for name in ENDS)]),
        (
            "diagnostics",
            [*COLUMNS[4:9], *ERRORS, "ess", "worth", "plain_mcse_mean", "plain_mcse_sd"],
        ),
    ],
)
def test_kinds_select_columns(sample: sx.Sample, kind: str, columns: list[str]) -> None:
    assert list(summary(sample, kind=kind).columns) == columns


def test_interval_is_the_one_asked_for(sample: sx.Sample) -> None:
    table = summary(sample, kind="stats", ci_prob=0.5, ci_kind="hdi")
    theirs = _arviz(sample, ci_prob=0.5, ci_kind="hdi")
    assert (table["hdi50_lb"] == theirs["hdi50_lb"]).all()


def test_variables_are_selected_as_in_arviz(sample: sx.Sample) -> None:
    assert list(summary(sample, "tau").index) == ["tau"]
    assert list(summary(sample, ["~tau"]).index) == ["a", "height"]
    assert list(summary(sample, ["eig"], filter_vars="like").index) == ["height"]
    assert list(summary(sample, ["^t|^a"], filter_vars="regex").index) == ["a", "tau"]
    with pytest.raises(KeyError, match=r"nothing.*there are a, height, tau"):
        summary(sample, "nothing")


def test_numbers_stay_and_only_their_display_is_rounded(
    sample: sx.Sample, table: pd.DataFrame
) -> None:
    raw = summary(sample, round_to="none")
    assert (raw.to_numpy() == table.to_numpy()).all()
    assert type(raw) is pd.DataFrame
    assert summary(sample, round_to=2).loc["tau", "plain_mean"] == round(
        raw.loc["tau", "plain_mean"], 2
    )
    two = summary(sample, round_to="2g", fmt="xarray")["tau"].sel(summary="plain_sd").item()
    assert two == float(f"{raw.loc['tau', 'plain_sd']:.2g}")


def test_display_follows_the_rules_of_arviz(sample: sx.Sample) -> None:
    theirs = _arviz(sample, round_to="auto")
    ours = formatted(_arviz(sample))
    assert ours.keys() == theirs._fmt_map.keys()
    for (
        column,
        cells,
    ) in theirs._fmt_map.items():  # but for zeros at the end, which show what is known
        assert {name: float(cell) for name, cell in ours[column].items()} == {
            name: float(cell) for name, cell in cells.items()
        }
    assert ours["mean"]["height"] == "0.50"


def test_display_has_the_digits_that_were_gained() -> None:
    frame = pd.DataFrame(
        {
            "mean": [12.3456789012, -1e-17, 4321.0],
            "sd": [1.0, 1.0, 900.0],
            "mcse_mean": [2e-7, 3e-16, 60.0],
            "mcse_sd": [np.nan, 0.02, 50.0],
            "ess": [1234.9, 2e12, 3.2e6],
            "worth": [1.04, 3e15, 123.4],
        },
        index=["u", "v", "w"],
    )
    shown = formatted(frame)
    assert list(shown["mean"].values()) == ["12.3456789", "0", "4.32e+03"]
    assert list(shown["sd"].values()) == ["1", "1.00", "9.00e+02"]
    assert list(shown["mcse_mean"].values()) == ["2e-07", "3e-16", "60"]
    assert list(shown["ess"].values()) == ["1234", ">1e9", "3.2e6"]
    assert list(shown["worth"].values()) == ["1.04", ">1e9", "123"]


def test_constants_counts_and_what_is_no_number_are_shown_as_arviz_shows_them() -> None:
    sample = odd()
    table = summary(sample)
    theirs = _arviz(sample)
    assert list(table.index) == list(theirs.index)
    still = ["L[p, p]", "L[p, q]", "broken"]
    pd.testing.assert_frame_equal(
        pd.DataFrame(table.loc[still, ARVIZ]), theirs.loc[still, ARVIZ], check_exact=True
    )
    assert table.loc["L[q, p]", "worth"] > 10
    assert table.loc["theta[Choate]", "worth"] > 1e9
    assert table.loc["count", "mean"] == theirs.loc["count", "mean"]  # nothing to gain from scores
    assert table.loc["count", "sd"] == theirs.loc["count", "sd"]
    assert "3 rows of 9: constant or not finite" in table.attrs["steinax"]


def test_labels_are_selected_as_in_arviz() -> None:
    x = np.random.default_rng(0).normal(size=(4, 250, 3))
    sample = sx.from_arrays(
        x,
        -x,
        variables={"a": x[..., 0], "u": x},
        dims={"u": ["site"]},
        coords={"site": ["S1", "S2", "S3"]},
    )
    for labels in ("S2", ["S3", "S1"]):
        table = summary(sample, coords={"site": labels})
        theirs = arviz_stats.summary(
            sample.variables.tree, coords={"site": np.atleast_1d(labels).tolist()}
        )
        assert list(table.index) == list(theirs.index)
        assert table.loc["u[S1]" if labels != "S2" else "u[S2]", "mcse_mean"] < 1e-12
    with pytest.raises(ValueError, match=r"dimensions and their labels are .*S1, S2, S3"):
        summary(sample, coords={"site": "S4"})
    with pytest.raises(ValueError, match="dimensions and their labels"):
        summary(sample, coords={"school": "S1"})


def test_discrete_variables_keep_the_ends_of_arviz() -> None:
    x = np.random.default_rng(0).normal(size=(4, 250, 2))
    variables = {
        "win": (x[..., 0] > -1.5).astype(int),
        "share": np.round(2 * x[..., 0]) / 8,
        "a": x[..., 0],
    }
    sample = sx.from_arrays(x, -x, variables=variables)
    table, theirs = summary(sample), _arviz(sample)
    for end in ("eti89_lb", "eti89_ub"):
        for name in ("win", "share"):
            assert table.loc[name, end] == theirs.loc[name, end]
            assert np.isnan(table.loc[name, f"mcse_{end}"])
        assert table.loc["a", end] != theirs.loc["a", end]
    assert table.loc["win", "worth"] > 2


def test_rounding_is_no_variation() -> None:
    """The diagonal of a correlation matrix is 1 up to rounding."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4, 250, 2))
    one = 1 + rng.choice([-1e-16, 0, 2e-16], size=(4, 250))
    sample = sx.from_arrays(x, -x, variables={"one": one, "a": x[..., 0]})
    table = summary(sample)
    assert table.loc["one", "sd"] == 0 and np.isnan(table.loc["one", "worth"])
    row = repr(sx.estimate(["one", "a"], sample)).splitlines()[1]
    assert row.split()[:5] == ["one", "1", "0", "1", "0"]


def test_formats(sample: sx.Sample, table: pd.DataFrame) -> None:
    wanted = odd()
    labelled = summary(wanted, fmt="xarray")
    assert isinstance(labelled, xr.Dataset)
    assert labelled["theta"].dims == ("summary", "school")
    assert list(labelled["school"].values) == ["Choate", "Deerfield"]
    assert list(labelled["summary"].values) == COLUMNS
    wide = summary(wanted)
    one = labelled["L"].sel(row="q", column="p", summary="mcse_sd").item()
    assert one == wide.loc["L[q, p]", "mcse_sd"]
    long = summary(sample, fmt="long")
    assert list(long.index) == COLUMNS
    assert long.loc["worth", "tau"] == table.loc["tau", "worth"]
    assert isinstance(summary(sample, fmt="rich"), Table)
    for made in (labelled, wide, long):
        assert "as accurate as plain means from" in made.attrs["steinax"]


def test_a_sample_without_variables_shows_its_columns() -> None:
    x = np.random.default_rng(0).normal(size=(4, 100, 5))
    names = ["mu", "beta[0]", "beta[1]", "L[1, 0]", "L[2, 0]"]
    made = sx.Sample(x, -x, names)
    assert list(summary(made).index) == names
    assert summary(made, fmt="xarray")["beta"].shape == (len(COLUMNS), 2)


def test_the_error_of_a_standard_deviation_is_that_of_the_delta_method() -> None:
    """To first order that of (x - mean)^2 / 2 sd; the mean's own error is a small part of it."""
    x = np.random.default_rng(0).logistic(size=(4, 250, 2))
    sample = sx.Sample(x, -np.tanh(x / 2), names=["a", "b"])
    found = summary(sample, family=sx.Polynomial(2), round_to="none")
    mean, sd = (found[name].to_numpy() for name in ("mean", "sd"))
    expected = sx.estimate((x - mean) ** 2 / (2 * sd), sample, sx.Polynomial(2))
    assert (found["mcse_sd"] < found["plain_mcse_sd"] / 2).all()
    np.testing.assert_allclose(found["mcse_sd"], expected.mcse, rtol=0.02)


def test_exact_answers_are_no_surer_than_rounding_allows() -> None:
    """Of a Gaussian nothing is left; a mean of 1e6 is then known to 4 units of its last place."""
    x = 1e6 + np.random.default_rng(0).normal(size=(4, 500, 1))
    found = summary(sx.Sample(x, 1e6 - x, names=["a"]), round_to="none").loc["a"]
    least = 4 * np.finfo(np.float64).eps
    assert least * found["plain_mean"] <= found["mcse_mean"] < 1e-6
    assert least <= found["mcse_sd"] < 1e-6


def test_a_family_is_used_when_asked_for(sample: sx.Sample) -> None:
    chosen, linear = summary(sample), summary(sample, family=sx.Polynomial(1))
    assert linear.loc["tau", "worth"] < chosen.loc["tau", "worth"]
    assert (linear["mcse_mean"] <= linear["plain_mcse_mean"] * (1 + 1e-12)).all()


def test_kernels_are_tried_on_few_draws() -> None:
    few = banana(3, length=100)
    polynomials = summary(few, family=sx.Polynomial(3))
    assert summary(few).loc["tau", "worth"] > 10 * polynomials.loc["tau", "worth"]


def test_refusals_say_what_to_do(sample: sx.Sample) -> None:
    with pytest.raises(ValueError, match=r"medians.*arviz_stats.summary"):
        _check("all_median", "wide")
    with pytest.raises(ValueError, match="use one of 'wide'"):
        _check("all", "html")
    with pytest.raises(TypeError, match=r"give a Sample, .* a DataTree"):
        as_sample(np.zeros((4, 100)))
    wrong = sx.Sample(sample.draws, -np.asarray(sample.scores), variables=sample.variables)
    with pytest.raises(sx.AuditError, match="sign"):
        summary(wrong)
    assert "worth" in summary(wrong, audit="off")


def test_elements_of_variables_that_share_an_axis_keep_their_names() -> None:
    x = np.random.default_rng(0).normal(size=(4, 100, 8)) + np.arange(8)
    sample = sx.from_arrays(
        *(x, np.arange(8) - x),
        variables={"tau": x[..., :2], "u": x[..., 2:].reshape(4, 100, 3, 2)},
        dims={"tau": "effect", "u": ["area", "effect"]},
        coords={"effect": ["x", "y"], "area": ["a", "b", "c"]},
    )
    table = summary(sample)
    names = [f"u[{area}, {effect}]" for area in "abc" for effect in "xy"]
    assert table.index.tolist() == ["tau[x]", "tau[y]", *names]
    np.testing.assert_allclose(table["mean"], np.arange(8), atol=1e-10)
    np.testing.assert_allclose(table["plain_mean"], x.mean(axis=(0, 1)), rtol=1e-12)
    np.testing.assert_allclose(table["sd"], 1.0, atol=0.1)


def test_an_element_is_selected_by_its_label() -> None:
    x = np.random.default_rng(0).normal(size=(4, 100, 2))
    sample = sx.from_arrays(
        *(x, -x), variables={"u": x}, dims={"u": ["area"]}, coords={"area": ["a", "b"]}
    )
    one, both = summary(sample, "u[b]"), summary(sample)
    assert one.index.tolist() == ["u[b]"] and both.index.tolist() == ["u[a]", "u[b]"]
    assert one.loc["u[b]", "plain_mean"] == both.loc["u[b]", "plain_mean"]
