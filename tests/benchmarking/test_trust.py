"""The tools of `benchmarks.trust`: known answers, small versions of each table, and the mutants."""

import numpy as np
import pytest
from benchmarks import problems
from benchmarks.problems import _logistic
from benchmarks.trust import _figures, _ratios, _runner, catalogue, coverage, stopping, unadjusted
from benchmarks.trust._catalogue_replicate import MUTANT, replicate as catalogued
from benchmarks.trust._coverage_replicate import replicate as covered
from benchmarks.trust._samplers import SAMPLERS
from benchmarks.trust._stopping_replicate import TOLERANCES, replicate as stopped
from benchmarks.trust._unadjusted_replicate import replicate as biased

from full import FULL, only_full
from provenance import ABOUT

EXACT = (
    problems.gaussian(),
    problems.banana(),
    problems.funnel(),
    problems.mixture(1.2),
    problems.mixture(4.0),
    problems.student(2.5),
    problems.student(5.0),
    problems.student(30.0),
    problems.genz(),
    problems.indicators(),
)


@pytest.mark.parametrize("problem", EXACT, ids=lambda problem: problem.name)
def test_expectations_and_scores_are_right(problem) -> None:
    """Within 5 standard errors of 200,000 draws: a false alarm in a million for each figure."""
    x = problem.draw(np.random.default_rng(7), 200_000)
    score = problem.score(x)
    checks = [one.f(x) - one.mean for one in problem.integrands]
    checks += list(score.T)
    checks += [
        np.tanh(x[:, i]) * score[:, i] + 1 - np.tanh(x[:, i]) ** 2 for i in range(problem.dim)
    ]
    for values in checks:
        assert abs(values.mean()) <= 5 * values.std() / np.sqrt(len(values))


def test_the_grid_of_the_regression_has_converged() -> None:
    problem, target = problems.logistic()
    nodes, weights = _logistic.grid(
        target.design, target.response, target.mean, target.covariance, nodes=75
    )
    found = [weights @ one.f(nodes) for one in problem.integrands]
    np.testing.assert_allclose(found, problem.means, atol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["HMC", "MALA"])
def test_samplers_are_in_their_stationary_law_and_give_exact_scores(name) -> None:
    """Within 4.5 standard errors of 100 replicates: a false alarm in 15,000 for each integrand."""
    problem, sample = SAMPLERS[name][0](), SAMPLERS[name][1]
    found = sample(np.arange(100), 4, 50)
    np.testing.assert_allclose(found.scores, problem.score(found.draws), atol=1e-12)
    means = np.stack(list(problem.values(found.draws).values())).mean(axis=(2, 3))
    off = (means.mean(axis=1) - problem.means) / (means.std(axis=1, ddof=1) / 10)
    assert np.abs(off).max() < 4.5


def _replicates(count: int = 4000, told: float = 1.0, shift: float = 0.0) -> dict:
    """Normal errors of size 1 beside plain ones of size 10, with error bars of size `told`."""
    rng = np.random.default_rng(3)
    value, plain = shift + rng.normal(size=(count, 2)), 10 * rng.normal(size=(count, 2))
    one = np.ones((count, 2))
    return {
        "truth": 0 * one,
        "value": value,
        "plain_value": plain,
        "mcse": told * one,
        "low": value - 1.96 * told,
        "high": value + 1.96 * told,
        "plain_low": plain - 19.6,
        "plain_high": plain + 19.6,
        "worth": 100 * one,
        "seconds": np.ones(count),
        "insample_value": value,
        "insample_reach": 1.0 * one,
        "independent_reach": 3.0 * one,
    }


def test_coverage_figures_of_errors_of_known_size() -> None:
    found = _figures.cell_figures(_replicates())
    assert found["coverage"] == pytest.approx(0.95, abs=0.01)
    assert found["plain"] == pytest.approx(0.95, abs=0.01)
    assert found["difference_error"] == pytest.approx(np.sqrt(0.95 * 0.05 / 4000), rel=0.1)
    assert found["gain"] == pytest.approx(100, rel=0.1)
    assert found["z"] == pytest.approx(1.0, rel=0.05)
    assert found["passes"]
    assert not found["insample"]["passes"]
    assert not found["independent"]["passes"]


@pytest.mark.parametrize("wrong", [{"told": 0.85}, {"told": 1.3}, {"shift": 0.6}])
def test_the_band_is_two_sided(wrong) -> None:
    assert not _figures.cell_figures(_replicates(**wrong))["passes"]


def test_ratios_of_errors_of_known_size() -> None:
    rng = np.random.default_rng(5)
    ours, plain = 1.2 * rng.normal(size=(4000, 1)), rng.normal(size=(4000, 1))
    ratio, error = _ratios.ratio_of(ours**2, plain**2)
    assert ratio[0] == pytest.approx(1.2, abs=0.05)
    assert error[0] == pytest.approx(1.2 / np.sqrt(4000), rel=0.15)  # sqrt(2 (1/2n + 1/2n)) / ...
    assert not _ratios.passes({"ratio": ratio[0], "ratio_error": error[0]})
    assert _ratios.passes({"ratio": 1.05, "ratio_error": 0.0})


def test_a_stopped_run_goes_on_and_a_longer_one_keeps_what_there_is(tmp_path) -> None:
    cell = "AR(1) 0 | degree 2 | 4 x 50"
    settings = {"kind": "coverage", "cells": [cell], "folder": str(tmp_path)}
    settings |= {"worker": 0, "workers": 1}
    _runner.measure(replicates=2, **settings)
    two = _runner.kept(tmp_path, cell, 2)
    _runner.measure(replicates=3, **settings)
    three = _runner.kept(tmp_path, cell, 3)
    assert three["value"].shape == (3, 4)
    np.testing.assert_array_equal(three["value"][:2], two["value"])
    np.testing.assert_array_equal(three["seconds"][:2], two["seconds"])  # not measured again
    np.testing.assert_array_equal(three["value"], covered(cell, np.arange(3))["value"])
    row = {"cell": cell} | _figures.cell_figures(three)
    assert "| AR(1) 0 | degree 2 | 4 x 50 | 3 |" in coverage.page([row], ABOUT)


def test_without_workers_only_what_is_kept_is_written(tmp_path) -> None:
    assert _runner.collect("coverage", list(coverage.CELLS), 100, tmp_path, 0) == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cell", "few"),
    [
        ("AR(1) 0.9 | degree 2 | 4 x 250", 60),
        ("AR(1) -0.5 | degree 2 + kernel | 4 x 50", 60),
        ("MALA | degree 2 | 4 x 250", 60),
        ("HMC | automatic | 4 x 50", 25),
    ],
)
def test_intervals_cover_as_plain_ones_do(cell, few) -> None:
    """100 replicates: within 2 points give or take 3.5 of its standard errors.

    A cell that is off by just 2 points fails once in 4,000; on CI, with few replicates, once in 1,000.
    """
    found = _figures.difference(covered(cell, np.arange(100 if FULL else few)))
    assert abs(found["difference"]) <= 0.02 + 3.5 * found["difference_error"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mutant", "cell"),
    [
        ("independent_", "AR(1) 0.9 | degree 2 | 4 x 250"),
        ("insample_", "AR(1) 0 | degree 2 + kernel | 4 x 50"),
    ],
)
def test_wrong_error_bars_do_not(mutant, cell) -> None:
    found = _figures.difference(covered(cell, np.arange(60)), mutant)
    assert abs(found["difference"]) > 0.02 + 3.5 * found["difference_error"]


@pytest.mark.slow
def test_pure_noise_is_left_alone() -> None:
    """40 replicates of three integrands, on CI 12; the ratio is 1 wherever plain Monte Carlo is kept."""
    numbers = np.arange(40 if FULL else 12)
    rows = _ratios.integrand_rows("pure noise | 100", catalogued("pure noise | 100", numbers))
    assert max(row["ratio"] for row in rows) <= 1.05
    assert "| pure noise | 100 | normal |" in catalogue.page(rows, ABOUT)


@pytest.mark.slow
@pytest.mark.parametrize(
    "target", ["banana", "t(3)", "Genz", "permuted f"] if FULL else ["t(3)", "permuted f"]
)
def test_the_estimate_is_not_worse_than_plain(target) -> None:
    """30 replicates: at most 1.05, give or take three bootstrap errors (a false alarm in 700).

    CI takes 15 of the two that tempt most: tails, and an integrand that is no function of the draws.
    With so few the errors are less sure of themselves: a false alarm in 200.
    """
    cell = f"{target} | 100"
    for row in _ratios.integrand_rows(cell, catalogued(cell, np.arange(30 if FULL else 15))):
        assert row["ratio"] <= 1.05 + 3 * row["ratio_error"], row


@pytest.mark.slow
def test_a_gate_on_the_reported_error_is_worse() -> None:
    cell = f"{MUTANT} | 1000"
    rows = _ratios.integrand_rows(cell, catalogued(cell, np.arange(40)))
    assert any(row["ratio"] > 1.05 + 3 * row["ratio_error"] for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize(
    "cell",
    ["Gaussian | Langevin | 0.2", pytest.param("logistic | Langevin | 0.05", marks=only_full)],
)
def test_degree_two_removes_the_bias_of_unadjusted_langevin(cell) -> None:
    """4 replicates, on CI 2: the plain bias is seen (at least 5%), and nine tenths of it are removed."""
    row = {"cell": cell} | unadjusted.figures(biased(cell, np.arange(4 if FULL else 2)))
    assert row["plain"][0] > 0.05
    assert row["degree 2 removed"][0] >= 0.9
    assert f"| {cell} |" in unadjusted.page([row], ABOUT)


@pytest.mark.slow
def test_a_run_that_stops_by_itself_covers_as_one_of_fixed_length() -> None:
    """100 replicates of a heavy tail: the rule covers as fixed numbers of draws do, and the mutant does not.

    The rule fails by chance once in 44 if its true difference is two points. The mutant's difference, about
    -4.5 points, has to be two standard errors below zero.
    """
    found = stopped("t(5), AR(1) 0.3 | degree 2", np.arange(100))
    row = stopping.cell_figures(found)
    rule, first = row["rule"], row["first"]
    assert rule["stopped"] > 0.95 and rule["looks"] > 3
    assert _figures.passes(rule["difference"], rule["error"])
    assert first["difference"] < -2 * first["error"] and first["draws"] < rule["draws"]


def test_coverage_at_the_stop_is_compared_with_that_of_the_same_numbers_of_draws() -> None:
    """Two looks: intervals of the first hold in half of the replicates, those of the second always."""
    low = np.zeros((4, 2, 1))
    low[:2, 0] = 2.0  # above the truth
    made = {
        "value": np.ones((4, 2, 1)),
        "draws": np.tile([40, 80], (4, 1)),
        "low": low,
        "high": low + 3.0,
        "truth": np.ones((4, 1)),
    }
    first = np.tile([0, 0, 1, 1], (len(TOLERANCES), 1)).T
    rule = np.ones((4, len(TOLERANCES)), int)
    ends = {
        f"rule_{end}": np.full((4, len(TOLERANCES), 1), at)
        for end, at in zip(("low", "high"), (0, 2), strict=True)
    }
    row = stopping.cell_figures(made | ends | {"rule": rule, "first": first})
    assert row["rule"]["fixed"] == row["rule"]["coverage"] == 1 and row["rule"]["passes"]
    # stops at the first look in the two replicates where it does not hold
    assert row["first"]["fixed"] == 0.75 and row["first"]["coverage"] == 0.5
    assert row["first"]["difference"] == pytest.approx(-0.25)
