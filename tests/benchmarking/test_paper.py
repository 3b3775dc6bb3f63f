"""The paper's experiments: what they are made of, and the harness that runs them."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.paper import __main__ as command, genz
from benchmarks.paper._experiment import EXPERIMENTS, Claim, Row, experiment
from benchmarks.paper._gaussian_processes_problem import Mixture, covariance
from benchmarks.paper._genz_tables import Entry, best_of_paper, paper_tables
from benchmarks.paper._logistic_page import _ratio as ratio_of
from benchmarks.paper._logistic_truth import truth as logistic_truth
from benchmarks.paper._methods import LITERAL, PLAIN, polynomial
from benchmarks.paper._polynomials_problem import Problem
from benchmarks.paper._run import kept_rows, run
from benchmarks.paper._statistics import mae, where
from benchmarks.paper._tuning import Hyper, tuned_for_sgd, with_rate_for
from benchmarks.problems import GENZ
from scipy.integrate import nquad

import steinax as sx

CELL = {"integrand": "continuous", "d": 1, "a": 1.0, "method": PLAIN}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_experiments_have_cells_and_fewer_when_quick(name):
    which = experiment(name)
    quick, whole = which.cells(True), which.cells(False)
    assert 0 < len(quick) < len(whole)
    for cells in (quick, whole):
        assert all("method" in cell for cell in cells)
        assert len({json.dumps(cell, sort_keys=True) for cell in cells}) == len(cells)


@pytest.mark.parametrize("name", GENZ)
@pytest.mark.parametrize("dim", [1, 2])
def test_genz_integrals(name, dim):
    """By adaptive quadrature, split at the kinks."""
    a, w = np.array([1.0, 5.0])[:dim], np.array([0.5, 0.3])[:dim]
    h, mean = GENZ[name](a, w)
    found, _ = nquad(
        lambda *u: h(np.array(u)), [(0, 1)] * dim, opts=[{"points": [one]} for one in w]
    )
    assert found == pytest.approx(mean, rel=1e-7)


def test_the_paper_took_a_equal_to_one():
    """Its plain Monte Carlo column is that of a = 1: the error expected of 1,000 draws."""
    h, mean = GENZ["continuous"](np.array([1.0]), np.array([0.5]))
    hard, hard_mean = GENZ["continuous"](np.array([5.0]), np.array([0.5]))
    u = (np.arange(100_000) + 0.5)[:, None] / 100_000
    expected, other = (
        np.sqrt(2 / np.pi * np.mean((f(u) - m) ** 2) / 1000)
        for f, m in ((h, mean), (hard, hard_mean))
    )
    assert expected == pytest.approx(2.77e-3, rel=0.1)
    assert other > 2 * 2.77e-3


def test_results_are_kept_and_not_measured_twice(tmp_path):
    run({"genz": ([CELL], 2)}, tmp_path, 1, quick=True)
    path = tmp_path / "genz.jsonl"
    first = path.read_text()
    line = json.loads(first.splitlines()[0])
    assert {"cell", "repetition", "error", "seconds", "steinax", "cpu", "date"} <= set(line)
    path.write_text(first + first.splitlines()[0][:40])  # a run that was stopped in a line
    run({"genz": ([CELL], 2)}, tmp_path, 1, quick=True)
    rows = kept_rows("genz", [CELL], 20, tmp_path)
    assert [row.repetition for row in rows] == [0, 1]
    assert rows[0].error[0] == genz.measure(CELL, 0).error[0]


def test_a_rerun_with_another_source_refreshes_rows(tmp_path):
    path, row = tmp_path / "genz.jsonl", genz.measure(CELL, 0)
    line = {
        "cell": CELL,
        "repetition": 0,
        "error": [9.0],
        "seconds": 1.0,
        "tuning": 0.0,
        "extra": {},
    }
    path.write_text(json.dumps(line | {"source": "another"}) + "\n")
    run({"genz": ([CELL], 1)}, tmp_path, 1, quick=True)
    (found,) = kept_rows("genz", [CELL], 1, tmp_path)
    assert found.error[0] == row.error[0]
    assert len(path.read_text().splitlines()) == 2


def test_a_ratio_is_of_the_same_repetitions_and_may_lack_an_error():
    def rows(*errors: float, first: int = 0) -> list[Row]:
        return [Row(CELL, first + i, np.array([e]), 0.0, 0.0, {}) for i, e in enumerate(errors)]

    ratio, error = ratio_of(rows(1.0, 2.0, 3.0), rows(2.0, 4.0, first=1))
    assert (ratio, error) == (pytest.approx(5 / 6), pytest.approx(1 / 9))
    ratio, error = ratio_of(rows(1.0), rows(4.0, 100.0))
    assert ratio == 0.25 and np.isnan(error)


def test_sgd_is_shown_on_its_way():
    method = f"polynomial, {LITERAL}"
    cell = {"n": 1000, "d": 2, "method": method, "epochs": 10}
    path = [[1.0 / (1 + epoch)] for epoch in range(10)]
    row = Row(cell, 0, np.array(path[-1]), 5.5, 0.0, {"path": path, "averaging": 0.5})
    by_epochs = Problem("polynomial", 1000, 2, 0.5, [row]).stochastic("SGD")
    assert list(by_epochs) == [1, 2, 5, 10]
    assert by_epochs[5][0].error.tolist() == [0.2] and by_epochs[5][0].seconds == 3.0


def test_sgd_has_hyper_parameters_of_its_own():
    """From a penalty and a rate that are far too large."""
    x = np.random.default_rng(0).normal(size=(1, 500, 4))
    sample = sx.Sample(x, -x)
    wanted = sx.data.integrands({"sum": x.sum(axis=-1)}, sample)
    start = Hyper(strength=1.0, rate=1.0)
    found = tuned_for_sgd(polynomial, [(wanted, sample)], start, epochs=5)
    fresh = np.random.default_rng(1).normal(size=(1000, 4))

    def left(hyper: Hyper) -> float:
        solver = sx.Stochastic(epochs=5, precondition=False, rates=(hyper.rate,))
        penalty = sx.Ridge(hyper.strength)
        control = sx.fit(wanted, sample, polynomial(hyper), penalty=penalty, solver=solver)
        return float(np.var(fresh.sum(axis=-1) - control(fresh, -fresh)[:, 0]))

    for worse in (start, replace(found, rate=1.0), replace(found, strength=1.0)):
        assert left(found) < left(worse) / 2
    again = with_rate_for(polynomial, [(wanted, sample)], replace(found, rate=1.0), epochs=5)
    assert left(again) < left(replace(found, rate=1.0)) / 2


def test_a_table_without_results_says_what_to_do(tmp_path):
    with pytest.raises(SystemExit, match="--workers"):
        command.main(["genz", "--quick", "--workers", "0", "--results", str(tmp_path)])
    with pytest.raises(SystemExit):
        command.main(["nothing"])


def test_a_claim_that_must_hold_fails_the_command(tmp_path, monkeypatch):
    for holds, code in ((True, 0), (False, 1)):
        claim = Claim("a", holds, "b", at_any_size=True)
        report = command.Report("", (claim, Claim("c", False, "d")))
        monkeypatch.setattr(command, "reported", lambda *_, report=report: report)
        words = ["genz", "--quick", "--workers", "0", "--results", str(tmp_path)]
        assert command.main(words) == code


def test_every_cell_of_the_paper_is_measured():
    """Every entry of the four tables has a cell, with both stochastic solvers."""
    cells = [Row(cell, 0, np.zeros(1), 0.0, 0.0, {}) for cell in genz.cells(False)]
    for solver in ("SGD", "Point-SAGA"):
        entries = [e for t in paper_tables(solver) for row in t.rows.values() for e in row]
        assert len(entries) == 24 + 18 + 16 + 24
        assert all(len(where(cells, **entry.cell)) == 1 for entry in entries)


def test_an_entry_is_reached_within_the_error_of_both():
    def rows(error: float) -> list[Row]:
        return [Row(CELL, i, np.array([error]), 0.0, 0.0, {}) for i in range(20)]

    entry = Entry(1.0, CELL)
    assert entry.reached(rows(1.4))
    assert not entry.reached(rows(1.6))
    assert mae(rows(1.4)) == (pytest.approx(1.4), pytest.approx(0.0, abs=1e-12))
    assert best_of_paper("product peak", 1) == 2.52e-6


def test_pages_are_where_the_documentation_includes_them():
    text = (Path(__file__).parents[2] / "docs" / "paper.md").read_text(encoding="utf-8")
    for name in EXPERIMENTS:
        assert f"```{{include}} paper/{name}.md" in text


def test_the_mixture_and_its_gaussian_process():
    """Scores by finite differences, and integrated covariances by a million draws (5 errors: 1e-6)."""
    rng = np.random.default_rng(0)
    mixture = Mixture.random(2, rng).widened(0.1)
    x, step = mixture.draw(5, rng), 1e-5

    def log(points):
        return np.log(np.exp(mixture.log_components(points)).sum(axis=-1))

    shifts = step * np.eye(2)
    slopes = np.stack([(log(x + s) - log(x - s)) / (2 * step) for s in shifts], axis=-1)
    np.testing.assert_allclose(mixture.score(x), slopes, rtol=1e-5, atol=1e-6)
    many = mixture.draw(1_000_000, rng)
    each = covariance(x, many, 0.7)
    apart = each.mean(axis=1) - mixture.integral_of_covariance(x, 0.7)
    assert np.all(np.abs(apart) < 5 * each.std(axis=1) / 1000)
    pairs = np.exp(-((many[::2] - many[1::2]) ** 2).sum(axis=1) / (2 * 0.7**2))
    error = pairs.std() / np.sqrt(len(pairs))
    assert abs(pairs.mean() - mixture.variance_of_integral(0.7)) < 5 * error


def test_the_truth_of_a_regression_does_not_see_its_own_draws():
    """A covariance of all draws would bias it by 5% of a slope (bound: 4 errors, 2e-4)."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(8, 250, 100))
    points = rng.normal(size=(3, 100)) / 5
    values = 1 / (1 + np.exp(-x @ points.T - 1.0))
    found, error = logistic_truth(x, -x, values, points)
    z = np.linspace(-12, 12, 20_001)
    weight = np.exp(-(z**2) / 2) / np.exp(-(z**2) / 2).sum()
    for value, own, point in zip(found, error, points, strict=True):
        exact = weight @ (1 / (1 + np.exp(-np.linalg.norm(point) * z - 1.0)))
        assert abs(value - exact) < 4 * own
        assert own < 0.6 * values.std() / np.sqrt(2000)
