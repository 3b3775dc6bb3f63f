"""What the pictures of an estimate draw: the data of their artists, not their pixels."""

from dataclasses import replace
from functools import partial
from inspect import unwrap
from itertools import combinations

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray

import steinax as sx
from steinax import plots
from steinax.estimation._printed import cells_of
from steinax.plots._estimate import _chosen

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 250, 3))
SAMPLE = sx.Sample(X, -X, names=["mu", "beta[0]", "beta[1]"])
F = {"mu": lambda x: 1e4 + 1e3 * x[0], "wave": lambda x: 1e-3 * np.exp(1) ** (x[1] / 2)}


@pytest.fixture(scope="module")
def estimate() -> sx.Estimate:
    return sx.estimate(F, SAMPLE, sx.Polynomial(2))


@pytest.fixture(scope="module")
def runs() -> dict[str, sx.Estimate]:
    draws = (np.random.default_rng(seed).normal(size=(4, 200, 3)) for seed in (1, 2))
    f = {"c": lambda x: x**2 + x, "wave": lambda x: 1 + 0.1 * x[0] ** 3}
    return {
        label: sx.estimate(f, sx.Sample(x, -x), sx.Polynomial(1))
        for label, x in zip(("old", "new"), draws, strict=True)
    }


def _many(k: int, name: str = "y[{}]") -> sx.Estimate:
    """An estimate of many integrands of scales from 1e-3 to 1e3."""
    values = RNG.normal(size=(4, 100, k)) * np.geomspace(1e-3, 1e3, k)
    x = RNG.normal(size=(4, 100, 1))
    f = {name.format(i): values[..., i] for i in range(k)}
    return sx.estimate(f, sx.Sample(x, -x), sx.Polynomial(1))


def _texts(ax) -> list[str]:
    return [text.get_text() for text in ax.texts]


def _labels(ax) -> list[str]:
    return [label.get_text() for label in ax.get_yticklabels()]


def _segments(ax) -> list[np.ndarray]:
    """The ends (row, 2) of each collection of horizontal lines, the plain intervals first."""
    return [
        np.array([segment[:, 0] for segment in lines.get_segments()]) for lines in ax.collections
    ]


def _inside(ax) -> None:
    """All text that is printed lies in the figure."""
    figure = ax.figure
    figure.canvas.draw()
    box = figure.bbox
    for text in [*ax.texts, *ax.get_yticklabels(), ax.xaxis.label]:
        found = text.get_window_extent()
        assert found.x0 >= box.x0 - 1 and found.x1 <= box.x1 + 1, text.get_text()


class TestColours:
    def test_told_apart_in_grey(self) -> None:
        plain, controlled = (
            np.dot(mpl.colors.to_rgb(colour), [0.299, 0.587, 0.114])
            for colour in (plots.PLAIN, plots.CONTROLLED)
        )
        assert plain - controlled > 0.25


class TestEstimate:
    def test_distances_from_the_plain_average(self, estimate) -> None:
        ax = plots.plot_estimate(estimate)
        plain, controlled = _segments(ax)
        centre, unit = estimate.plain_value[:, None], estimate.plain_mcse[:, None]
        np.testing.assert_allclose(plain, (estimate.plain_interval() - centre) / unit)
        np.testing.assert_allclose(controlled, (estimate.interval() - centre) / unit)
        circles, ticks = (
            ax.lines[0],
            ax.lines[1],
        )
        np.testing.assert_array_equal(circles.get_xdata(), 0.0)
        expected = (estimate.value - estimate.plain_value) / estimate.plain_mcse
        np.testing.assert_allclose(ticks.get_xdata(), expected)
        assert (circles.get_color(), ticks.get_color()) == (plots.PLAIN, plots.CONTROLLED)
        assert _labels(ax) == ["mu", "wave"]
        low, high = ax.get_xlim()
        assert low < plain.min() and high > plain.max()

    def test_values_themselves(self, estimate) -> None:
        ax = plots.plot_estimate(estimate, standardise=False, level=0.5, names=["wave"])
        plain, controlled = _segments(ax)
        np.testing.assert_allclose(plain, estimate.plain_interval(0.5)[1:])
        np.testing.assert_allclose(controlled, estimate.interval(0.5)[1:])
        assert "50% intervals" in ax.get_xlabel()

    def test_numbers_are_printed(self, estimate) -> None:
        texts = _texts(plots.plot_estimate(estimate))
        assert {"controlled", "plain", "worth"} <= set(texts)
        assert any(text.endswith("x") for text in texts)
        assert _texts(plots.plot_estimate(estimate, numbers=False)) == []

    def test_axes_in_axes_out(self, estimate) -> None:
        _, axes = plt.subplots(1, 2)
        before = plt.get_fignums()
        assert plots.plot_estimate(estimate, ax=axes[0]) is axes[0]
        assert plots.plot_worth(estimate, ax=axes[1]) is axes[1]
        assert plt.get_fignums() == before
        with pytest.raises(TypeError, match="give one Axes"):
            plots.plot_estimate(estimate, ax=axes)

    def test_one_integrand(self, estimate) -> None:
        ax = plots.plot_estimate(estimate["wave"])
        assert _labels(ax) == ["wave"]
        _inside(ax)

    @pytest.mark.parametrize(
        "name", ["y[{}]", "log_likelihood/y[a school of a very long name, {}]"]
    )
    def test_sixty_integrands(self, name) -> None:
        ax = plots.plot_estimate(_many(60, name))
        labels = _labels(ax)
        assert len(set(labels)) == 60 and max(map(len, labels)) <= 36
        _inside(ax)
        height = ax.get_window_extent().height / 60
        assert ax.get_yticklabels()[0].get_window_extent().height < height, "no names overlap"

    def test_more_than_sixty_say_so(self) -> None:
        many = _many(70)
        ax = plots.plot_estimate(many)
        assert len(_labels(ax)) == 60
        assert "\n10 more integrands are not drawn" in ax.get_xlabel()
        chosen = plots.plot_estimate(many, names=["y[69]", "y[3]"])
        assert _labels(chosen) == ["y[69]", "y[3]"]
        with pytest.raises(ValueError, match=r"no integrand is called 'z'.*choose among"):
            plots.plot_estimate(many, names=["z"])

    def test_no_standard_error(self) -> None:
        est = sx.estimate(F, SAMPLE, sx.Polynomial(2), split=sx.InSample())
        assert np.all(np.isnan(est.mcse))
        ax = plots.plot_estimate(est)
        assert np.all(np.isfinite(ax.lines[1].get_xdata())), "the values are drawn"
        assert sum("± ?" in text for text in _texts(ax)) == 2
        assert np.all(np.isfinite(ax.get_xlim()))

    def test_no_plain_error_either(self, estimate) -> None:
        nan = np.full(2, np.nan)
        ax = plots.plot_estimate(replace(estimate, mcse=nan, plain_mcse=nan, worth=nan))
        assert sum("± ?" in text for text in _texts(ax)) == 4
        assert np.all(np.isfinite(ax.get_xlim()))

    def test_dollars_are_no_mathematics(self, estimate) -> None:
        ax = plots.plot_estimate(replace(estimate, names=("$ of $", "a_$x")))
        ax.figure.canvas.draw()
        assert _labels(ax)[0] == r"\$ of \$"


class TestWorth:
    def test_stems_and_numbers(self, estimate) -> None:
        estimate = replace(estimate, worth=np.array([7.3e8, 97.3]))
        ax = plots.plot_worth(estimate)
        (stems,) = _segments(ax)
        np.testing.assert_array_equal(stems[:, 0], 1.0)
        np.testing.assert_allclose(stems[:, 1], estimate.worth)
        np.testing.assert_allclose(ax.lines[0].get_xdata(), estimate.worth)
        assert ax.get_xscale() == "log"
        line = next(one for one in ax.lines if one.get_color() == plots.PLAIN)
        np.testing.assert_array_equal(line.get_xdata(), 1.0)
        low, high = ax.get_xlim()
        assert low < 1 and high > estimate.worth.max()

    @pytest.mark.parametrize("perfect", [7.7e24, np.inf])
    def test_an_exact_integrand_is_an_arrow_and_leaves_room_for_others(
        self, estimate, perfect
    ) -> None:
        ax = plots.plot_worth(replace(estimate, worth=np.array([perfect, 97.3])))
        high = ax.get_xlim()[1]
        assert 1e9 < high < 1e12
        dots, arrows = ax.lines[0], ax.lines[1]
        assert dots.get_xdata().tolist() == [97.3] and arrows.get_marker() == ">"
        assert arrows.get_xdata().tolist() == [high]

    def test_what_it_means_stands_above(self, estimate) -> None:
        ax = plots.plot_worth(replace(estimate, worth=np.array([0.5, 2e3])))
        (above,) = ax.child_axes
        ax.figure.canvas.draw()
        meaning = {
            float(tick): label.get_text()
            for tick, label in zip(above.get_xticks(), above.get_xticklabels(), strict=True)
        }
        assert meaning[1.0] == "1" and meaning[10.0] == "1/3.2" and meaning[100.0] == "1/10"

    def test_the_numbers_are_those_of_tables(self, estimate) -> None:
        exact = replace(estimate, worth=np.array([440.7, 2093.4]))
        shown = _texts(plots.plot_worth(exact))
        assert shown == ["440x", "2,093x"]
        assert [text.replace(",", "") for text in shown] == [
            row[4] + "x" for row in cells_of(exact)
        ]

    def test_numbers_and_ticks_have_the_same_form(self, estimate) -> None:
        ax = plots.plot_worth(replace(estimate, worth=np.array([1e5, 1e4])))
        ticks = {label.get_text() for label in ax.get_xticklabels()}
        assert _texts(ax) == ["100,000x", "10,000x"] and set(_texts(ax)) <= ticks

    def test_sorted(self, estimate) -> None:
        est = replace(estimate, worth=np.array([np.nan, 5.0]))
        assert _labels(plots.plot_worth(est, sort=True)) == ["wave", "mu"]
        assert _labels(plots.plot_worth(est)) == ["mu", "wave"]

    def test_infinite_and_unknown(self, estimate) -> None:
        ax = plots.plot_worth(replace(estimate, worth=np.array([np.inf, np.nan])))
        assert _texts(ax) == ["∞", "no standard error"]
        assert np.all(np.isfinite(ax.get_xlim()))
        arrow = next(line for line in ax.lines if line.get_marker() == ">")
        assert arrow.get_xdata().tolist() == [ax.get_xlim()[1]]

    def test_many_are_a_curve(self) -> None:
        many = _many(70)
        ax = plots.plot_worth(many)
        curve = ax.lines[0]
        np.testing.assert_allclose(curve.get_xdata(), np.sort(many.worth)[::-1])
        np.testing.assert_array_equal(curve.get_ydata(), np.arange(1, 71))
        assert "of 70 integrands" in ax.get_ylabel()


class TestSeveral:
    """Two runs side by side, with the error of their difference."""

    @pytest.mark.parametrize("standardise", [True, False])
    def test_intervals_of_both(self, runs, standardise: bool) -> None:
        ax = plots.plot_estimate(runs, standardise=standardise)
        old, new = runs.values()
        assert _labels(ax) == ["c[0]", "c[1]", "c[2]", "wave"]
        for found, run in zip(_segments(ax), (old, new), strict=True):
            expected = run.interval()
            if standardise:
                expected = (expected - old.plain_value[:, None]) / old.plain_mcse[:, None]
            np.testing.assert_allclose(found, expected)
        shown = [text.get_text() for text in ax.get_legend().get_texts()]
        assert shown == ["old", "new"]
        assert ("average of old" in ax.get_xlabel()) == standardise
        _inside(ax)

    def test_differences_are_printed_with_their_errors(self, runs) -> None:
        texts = _texts(plots.plot_estimate(runs, names=["c"]))
        apart = runs["new"] - runs["old"]
        assert [texts[i] for i in (0, 4, 8)] == ["old", "new", "new - old"]
        value, error = (float(part) for part in texts[9].split(" ± "))
        assert value == pytest.approx(apart["c[0]"].value, abs=0.1 * apart["c[0]"].mcse)
        assert error == pytest.approx(apart["c[0]"].mcse, rel=0.06)

    def test_the_same_draws_have_no_independent_difference(self, runs) -> None:
        old = runs["old"]
        texts = _texts(plots.plot_estimate({"one": old, "two": replace(old, note="again")}))
        assert "two - one" not in texts and "two" in texts

    def test_a_difference_is_drawn_as_any_estimate(self, runs) -> None:
        ax = plots.plot_estimate(runs["new"] - runs["old"])
        assert _labels(ax) == ["c[0]", "c[1]", "c[2]", "wave"]

    def test_mistakes(self, runs) -> None:
        with pytest.raises(
            ValueError, match=r"different integrands: .* Choose those that both have"
        ):
            plots.plot_estimate({"old": runs["old"], "new": runs["new"]["c"]})
        with pytest.raises(ValueError, match=r"0 estimates .* give one to 6 in a dict"):
            plots.plot_estimate({})
        with pytest.raises(
            TypeError, match=r'2 estimates in a list: .* \{"first": estimate, "second"'
        ):
            unwrap(_chosen)([*runs.values()], names=None)

    @pytest.mark.parametrize("numbers", [True, False])
    @pytest.mark.parametrize("count", [2, 6])
    def test_nothing_overlaps_or_is_cut(self, runs, count: int, numbers: bool) -> None:
        labels = [f"run {i} with Polynomial(1), of the second model" for i in range(count)]
        several = {label: runs["new" if i else "old"] for i, label in enumerate(labels)}
        ax = plots.plot_estimate(several, numbers=numbers)
        _inside(ax)
        assert ax.get_window_extent().width >= 3.0 * ax.figure.get_dpi()
        entries = ax.get_legend().get_texts()
        assert len({entry.get_text() for entry in entries}) == count
        assert all(len(entry.get_text()) <= 24 for entry in entries)
        legend = ax.get_legend().get_window_extent()
        assert legend.x1 <= ax.figure.bbox.x1
        for text in [*ax.texts, *ax.get_yticklabels()]:
            assert not legend.overlaps(text.get_window_extent()), text.get_text()
        boxes = [text.get_window_extent() for text in ax.texts]
        assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))

    def test_on_narrow_axes_the_legend_is_above_the_headings(self, runs) -> None:
        figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
        several = {f"{label} run with Polynomial(1)": run for label, run in runs.items()}
        ax = plots.plot_estimate(several, ax=axes[0])
        figure.canvas.draw()
        legend = ax.get_legend().get_window_extent()
        assert not any(legend.overlaps(text.get_window_extent()) for text in ax.texts)

    def test_a_forest_of_both(self, runs) -> None:
        pytest.importorskip("arviz_plots")
        made = plots.plot_forest(runs, backend="matplotlib", standardise=False)
        line = made.viz["twig"]["mean"].sel(model="new", integrand="wave").item()
        np.testing.assert_allclose(np.ravel(line.get_xdata()), runs["new"]["wave"].interval())


class TestForest:
    def test_long_names_are_shortened(self, estimate) -> None:
        pytest.importorskip("arviz_plots")
        names = ("rate of visits in clinic A minus that of clinic B, per year", "$ of $")
        made = plots.plot_forest(replace(estimate, names=names), backend="matplotlib")
        rows = [row.get_text() for row in made.viz["integrand_label"]["mean"].values]
        assert rows == ["rate of visits in …linic B, per year", r"\$ of \$"]
        assert made.viz["twig"]["mean"].sel(integrand=names[0], model="plain").item()

    def test_lines_are_visible_and_the_legend_is_of_estimates(self, estimate) -> None:
        pytest.importorskip("arviz_plots")
        made = plots.plot_forest(estimate, backend="matplotlib")
        assert all(line.get_linewidth() == 2.5 for line in made.viz["twig"]["mean"].values.ravel())
        (legend,) = made.viz["figure"].item().legends
        assert legend.get_title().get_text() == "estimate"
        assert [text.get_text() for text in legend.get_texts()] == ["plain", "controlled"]
        thin = plots.plot_forest(estimate, backend="matplotlib", visuals={"twig": {"width": 1}})
        assert thin.viz["twig"]["mean"].values[0, 0].get_linewidth() == 1

    def test_axes_and_rows_are_labelled(self) -> None:
        pytest.importorskip("arviz_plots")
        array = xarray.DataArray(
            X**2, dims=("chain", "draw", "county"), coords={"county": ["C00", "C01", "C02"]}
        )
        est = sx.estimate({"c": array}, SAMPLE, sx.Polynomial(1))
        assert _labels(plots.plot_estimate(est)) == ["c[C00]", "c[C01]", "c[C02]"]
        made = plots.plot_forest(est, backend="matplotlib")
        rows = made.viz["integrand_label"]["mean"].values
        assert [row.get_text() for row in rows] == ["c[C00]", "c[C01]", "c[C02]"]
        assert not made.get_target("mean", {"column": "labels"}).axison
        axis = made.get_target("mean", {"column": "forest"})
        assert axis.get_xlabel() == (
            "distance from the plain average, in its standard errors (95% intervals)"
        )

    def test_intervals_reach_arviz_plots(self, estimate) -> None:
        pytest.importorskip("arviz_plots")
        made = plots.plot_forest(estimate, backend="matplotlib", standardise=False)
        twigs = made.viz["twig"]["mean"]
        for model, ends in (
            ("plain", estimate.plain_interval()),
            ("controlled", estimate.interval()),
        ):
            for integrand, pair in zip(estimate.names, ends, strict=True):
                line = twigs.sel(model=model, integrand=integrand).item()
                np.testing.assert_allclose(np.ravel(line.get_xdata()), pair)

    def test_no_backend(self, estimate) -> None:
        pytest.importorskip("arviz_plots")
        assert plots.plot_forest(estimate, names=["mu"], backend="none").backend == "none"


def test_what_is_no_estimate_is_refused() -> None:
    """Without the check of types, which a user does not have."""
    for check in (unwrap(plots.plot_worth), partial(unwrap(_chosen), names=None)):
        with pytest.raises(TypeError, match=r"was given a Sample: give the result of steinax\."):
            check(SAMPLE)
