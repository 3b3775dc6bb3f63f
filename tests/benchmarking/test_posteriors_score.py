"""The scores and the page of `benchmarks.posteriors`, on trials whose answers are known."""

import numpy as np
import pytest
from benchmarks.posteriors import _data, _page, _rows, _score, _summary
from benchmarks.posteriors._peers import PEERS

from provenance import ABOUT


def _trials(blocks=4000, plain=10.0, better=0.5, told=0.5, reference=0.0) -> _score.Trials:
    """Gaussian errors of known size round 3, and error bars of size `told`; two integrands."""
    rng = np.random.default_rng(1)
    shape = (blocks, 2)
    return _score.Trials(
        value=3 + better * rng.normal(size=shape),
        mcse=np.full(shape, told),
        plain=3 + plain * rng.normal(size=shape),
        reference=3 + reference * rng.normal(size=shape),
        reference_mcse=np.full(shape, reference),
    )


def _score_of(trials: _score.Trials) -> _score.Score:
    return _score.score(trials, ["a", "b"], {"means": [0], "squares": [1]})


def test_gain_is_the_ratio_of_mean_squared_errors() -> None:
    np.testing.assert_allclose(_score.gains(_trials()), 400, rtol=0.1)


def test_the_error_of_the_reference_lowers_the_gain() -> None:
    expected = (100 + 0.25) / (0.25 + 0.25)
    np.testing.assert_allclose(_score.gains(_trials(reference=0.5)), expected, rtol=0.1)


@pytest.mark.parametrize(("told", "expected"), [(0.5, 1.0), (0.25, 2.0), (1.0, 0.5)])
def test_calibration_is_the_true_error_over_the_told_one(told, expected) -> None:
    assert _score_of(_trials(told=told)).calibration == pytest.approx(expected, rel=0.03)


def test_calibration_counts_the_error_of_the_reference() -> None:
    assert _score_of(_trials(reference=2.0)).calibration == pytest.approx(1.0, rel=0.03)


@pytest.mark.parametrize(("told", "expected"), [(0.5, 0.95), (0.25, 0.6729), (1.0, 0.99991)])
def test_coverage_is_that_of_normal_intervals(told, expected) -> None:
    assert _score_of(_trials(told=told)).coverage == pytest.approx(expected, abs=0.015)


def test_worst_integrand_and_groups() -> None:
    trials = _score.Trials(
        value=np.array([[1.0, 2.0, 0.1], [-1.0, -2.0, 0.1]]),
        mcse=np.ones((2, 3)),
        plain=np.array([[10.0, 1.0, 1.0], [-10.0, 1.0, -1.0]]),
        reference=np.zeros((2, 3)),
        reference_mcse=np.zeros((2, 3)),
    )
    found = _score.score(trials, ["a", "b", "c"], {"means": [0, 1], "squares": [2]})
    assert found.gains == pytest.approx({"a": 100.0, "b": 0.25, "c": 100.0})
    assert found.gain == pytest.approx({"means": 5.0, "squares": 100.0})
    assert (found.worst, found.worst_gain) == ("b", 0.25)
    assert found.count == 6
    assert found.coverage == pytest.approx(4 / 6)


def test_a_constant_has_no_gain_and_no_calibration() -> None:
    same = np.full((5, 2), 7.0)
    found = _score_of(_score.Trials(same, 0 * same, same, same, 0 * same))
    assert np.isnan([*found.gains.values(), *found.gain.values(), found.worst_gain]).all()
    assert np.isnan([found.calibration, found.coverage]).all()
    assert (found.worst, found.count) == ("", 0)


def test_an_exact_estimate_gains_what_rounding_allows() -> None:
    same, zero = np.full((5, 1), 7.0), np.zeros((5, 1))
    gain = _score.gains(_score.Trials(same, zero, same + 1, same, zero))
    assert np.isfinite(gain).all() and gain > 1e28


def test_an_error_bar_of_zero_is_not_forgiven() -> None:
    same, zero = np.full((5, 1), 7.0), np.zeros((5, 1))
    z = _score.standardised(_score.Trials(same + 1, zero, same, same, zero))
    assert np.isinf(z).all()
    assert _score.calibration(z) == np.inf and _score.coverage(z) == 0


def test_missing_error_bars_are_counted() -> None:
    trials = _trials(blocks=10)
    trials.mcse[:3, 0] = np.nan
    found = _score_of(trials)
    assert (found.no_error, found.count) == (3, 17)


def test_estimates_that_are_not_finite_are_refused() -> None:
    one = np.ones((2, 1))
    with pytest.raises(ValueError, match="`value` holds"):
        _score.Trials(np.nan * one, one, one, one, one)
    with pytest.raises(ValueError, match="one shape"):
        _score.Trials(one, one, one, one, one[0])


def test_pooling_is_as_if_all_were_one_set() -> None:
    rng = np.random.default_rng(0)
    sets = [rng.normal(size=50), 2 * rng.normal(size=10)]
    each = [_score.calibration(z) for z in sets]
    assert _score.pooled([*each, np.nan], [50, 10, 0]) == pytest.approx(
        _score.calibration(np.concatenate(sets))
    )
    assert np.isnan(_score.pooled([np.nan], [0]))


def test_blocks_are_disjoint_and_references_share_no_draw() -> None:
    for n, blocks in ((100, 20), (200, 20), (300, 33), (1000, 20)):
        start = _data.starts(n, blocks)
        assert len(start) == (10 if n == 1000 else blocks)
        assert np.all(np.diff(start) >= n) and start[-1] + n <= _data.TOTAL
    assert _data.apart(1500, 200).tolist() == [i != 1 for i in range(10)]
    assert _data.apart(1900, 200).tolist() == [i not in (1, 2) for i in range(10)]
    with pytest.raises(ValueError, match="at most 50"):
        _data.starts(200, 51)


def _saved(n: int, blocks: int, error: float, told: float) -> _rows.Saved:
    """Estimates of two parameters and their squares, as `_measure` saves them."""
    rng, shape = np.random.default_rng(n), (blocks, 4)
    about = {
        "dim": 2,
        "seconds": 0.5,
        "first_seconds": 5.0,
        "chosen": [["Polynomial(2)"]] * blocks,
        "names": ["a", "b", "square of a", "square of b"],
        "provenance": {"source": "abc", "cpu": "a processor"},
    }
    plain = 1 / np.sqrt(n)
    return _rows.Saved(
        about,
        _data.starts(n, blocks),
        error * rng.normal(size=shape),
        np.full(shape, told),
        plain * rng.normal(size=shape),
        np.full(shape, plain),
    )


def _row(posterior: str = "arK-arK", n: int = 100, blocks: int = 100) -> _rows.Row:
    references = _saved(1000, 10, 1e-4, 1e-4)
    return _rows.make_row(posterior, n, _saved(n, blocks, 1e-2, 1e-2), references)


def test_row_from_saved_estimates() -> None:
    row = _row()
    assert row["gain"] == pytest.approx({"means": 100, "squares": 100}, rel=0.5)
    assert row["calibration"] == pytest.approx(1, rel=0.15)
    assert (row["blocks"], row["count"], row["no_error"]) == (100, 400, 0)
    assert 0.2 < row["reference_shift"] < 2


def test_reference_is_the_average_of_the_other_nine() -> None:
    found = _saved(1000, 10, 1e-2, 0.3)
    value, error = _rows._reference(found.start, 1000, found)
    np.testing.assert_allclose(value[4], np.delete(found.value, 4, axis=0).mean(axis=0))
    np.testing.assert_allclose(error, 0.3 / 3)


def test_new_rows_replace_old_ones_and_survive_a_file(tmp_path) -> None:
    old = [_row("arK-arK", 100), _row("sblri-blr", 100)]
    new = _row("arK-arK", 100)
    new["seconds"] = 99.0
    _rows.write_rows(tmp_path / "new" / "posteriors.json", _rows.merge(old, [new]), ABOUT)
    kept = _rows.read_rows(tmp_path / "new" / "posteriors.json")
    assert [(row["posterior"], row["seconds"]) for row in kept] == [
        ("arK-arK", 99.0),
        ("sblri-blr", 0.5),
    ]
    assert _rows.read_rows(tmp_path / "none.json") == []


def test_page_shows_losses_and_what_is_missing() -> None:
    rows = [_row("arK-arK", 1000, 10), _row("arK-arK", 100)]
    rows[0]["gain"] = {"means": 5.0, "squares": 500.0}
    rows[1] |= {"worst_gain": 0.25, "worst": "b", "calibration": 1.7}
    rows[1]["gains"]["b"] = 0.25
    text = _page.page(rows, ABOUT | {"failed": ["sblri-blr"]})
    assert (
        "ZVCV's best of three gains more, means, 1,000 draws** (1): arK-arK (24,000 to our 5)"
        in text
    )
    assert "ZVCV's best of three gains more, squares, 1,000 draws** (0): none" in text
    assert "100 draws** (1): arK-arK (1 of 4; the least is 0.25, of the b)" in text
    assert "outside 0.8 to 1.25, 100 draws** (1): arK-arK (1.70)" in text
    assert "Not run: arma-arma11," in text and "Failed in this run: sblri-blr" in text
    assert "another source" not in text
    assert "another source" in _page.page(rows, ABOUT | {"source": "xyz"})


def test_tables_of_the_page_are_whole() -> None:
    rows = [_row(name, n, 10) for name in PEERS for n in (100, 1000)]
    tables = [part for part in _page.page(rows, ABOUT).split("\n\n") if part.startswith("|")]
    assert [len(one.splitlines()) - 2 for one in tables] == [5, 22, 22]
    for one in tables:
        assert len({line.count("|") for line in one.splitlines()}) == 1


def test_peers_are_those_of_the_survey() -> None:
    assert len(PEERS) == 22
    row = [_row(name, 1000, 10) for name in PEERS]
    prototype, zvcv = _summary.theirs(row)
    assert prototype.zvcv_better == (3, 1)
    assert prototype.quartile == pytest.approx((2979, 365), rel=0.05)
    assert prototype.median == pytest.approx((4.3e6, 1.8e4), rel=0.05)
    assert zvcv.median == pytest.approx((15_652, 197), rel=0.03)


@pytest.mark.parametrize(
    ("value", "text"), [(0.1234, "0.123"), (99.96, "100"), (1234.5, "1,234"), (123456.0, "1.2e5")]
)
def test_gains_are_shown_in_three_digits(value, text) -> None:
    assert _page.shown(value) == text
