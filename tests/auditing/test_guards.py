"""What each guard of the audit sees and no other does: errors that pass without it."""

import numpy as np
import pytest

import steinax as sx
from steinax.auditing._energies import Misfit, misfit_of, suspect
from steinax.auditing._identities import BIAS_ALARM, FALSE_ALARM, false_alarms

X = np.random.default_rng(0).normal(size=(8, 250, 2))
WIDE = np.random.default_rng(0).normal(size=(4, 250, 10))
SHORT = X[:4, :100]


def _density(x: np.ndarray) -> np.ndarray:
    return -0.5 * (x**2).sum(axis=-1)


def _kinds(x: np.ndarray, scores: np.ndarray, **more) -> list[str]:
    return [problem.kind for problem in sx.audit(sx.Sample(x, scores, **more)).problems]


def _only(report: sx.auditing.AuditReport) -> sx.auditing.Finding:
    assert len(report.problems) == 1, report
    return report.problems[0]


class TestEnergies:
    """Scores against the log densities that came with the draws."""

    def test_see_a_constant_that_the_identities_do_not(self) -> None:
        wrong = -SHORT + [0.0, 0.15]
        assert _kinds(SHORT, wrong) == []
        assert _kinds(SHORT, -SHORT, log_density=_density(SHORT)) == []
        finding = _only(sx.audit(sx.Sample(SHORT, wrong, log_density=_density(SHORT))))
        assert (finding.kind, finding.columns) == ("term", ("x[1]",))

    def test_pass_what_is_smaller_than_the_error_of_a_plain_average(self) -> None:
        assert _kinds(SHORT, -SHORT + 0.04, log_density=_density(SHORT)) == []

    def test_see_a_chain_that_is_wrong_alone(self) -> None:
        """By 0.3 in one chain of eight, which is too little for the identities of that chain."""
        wrong = -X.copy()
        wrong[5] += 0.3
        assert _kinds(X, wrong) == []
        finding = _only(sx.audit(sx.Sample(X, wrong, log_density=_density(X))))
        assert finding.message.startswith("chain 5 alone fails")

    def test_of_a_quartic_log_density_are_exact(self) -> None:
        """The error of the trapezoidal rule is that of a potential of fourth order, and is removed."""
        x = X.reshape(-1, 2)
        density, score = -0.25 * (x**4).sum(axis=1) + x.prod(axis=1), -(x**3) + x[:, ::-1]
        assert misfit_of(x, score, density).share < 1e-4


@pytest.mark.parametrize("error", ["third order", "constant"])
def test_an_error_that_vanishes_with_the_distance_is_that_of_the_rule(error: str) -> None:
    """All pairs are 0.35 apart or so, so its cube looks like a constant error of the scores."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=(400, 1))
    first, second = np.nonzero(np.abs(y - y.T - 0.35) < 0.05)
    step, middle = (y[first] - y[second])[:, 0], 0.5 * (y[first] + y[second])[:, 0]
    left = step**3 if error == "third order" else 0.12 * step
    work = -middle * step
    misfit = Misfit(y, -y, -y, np.eye(1), y, first, second, step**2, work + left, work, left)
    found = suspect(misfit, 0.075)
    assert (None if found is None else found.kind) == {"constant": "constant"}.get(error)


class TestIdentities:
    def test_see_a_chain_that_is_wrong_alone(self) -> None:
        wrong = -X.copy()
        wrong[5] += 0.5
        finding = _only(sx.audit(sx.Sample(X, wrong)))
        assert finding.message.startswith("chain 5 alone fails")

    def test_of_all_dimensions_together_see_a_temperature_that_none_of_them_does(self) -> None:
        assert _kinds(WIDE, -WIDE) == []
        assert _kinds(WIDE, -0.9 * WIDE) == ["tempered"]

    def test_that_bound_a_bias_have_most_of_the_false_alarms(self) -> None:
        rates = false_alarms(10, 10)
        assert rates.shape == (40 + 10 + 100 + 1,)
        np.testing.assert_allclose(rates[:20].sum() + rates[-1], BIAS_ALARM)
        assert rates[20:-1].sum() < FALSE_ALARM < BIAS_ALARM
        assert rates[:20].min() > 10 * rates[20:-1].max()


class TestCopies:
    @pytest.mark.parametrize("shift", [1, 7, -3])
    def test_of_a_chain_that_are_shifted_are_refused(self, shift: int) -> None:
        x = X.copy()
        kept = slice(max(shift, 0), min(250 + shift, 250))
        x[3, kept] = x[1, max(-shift, 0) :][: kept.stop - kept.start]
        finding = _only(sx.audit(sx.Sample(x, -x)))
        assert finding.kind == "duplicate"
        assert finding.message.startswith("chains 1 and 3 share")

    def test_of_a_few_draws_pass(self) -> None:
        x = X.copy()
        x[3, :20] = x[1, 100:120]
        assert _kinds(x, -x) == []


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("centre", [0.0, 100.0, 1e6])
def test_draws_far_from_zero_are_near_each_other_and_not_copies(centre: float, dtype) -> None:
    """In one dimension, where thousands of draws are near each other by chance."""
    x = np.random.default_rng(0).normal(size=(4, 5000, 1))
    far = (centre + x).astype(dtype)
    assert "duplicate" not in _kinds(far, -x, dtype=dtype)
    if centre * np.finfo(dtype).eps < 1e-6:  # else too few digits are left to tell
        far[3, 1:] = far[1, :-1]
        assert "duplicate" in _kinds(far, -x, dtype=dtype)


def test_finite_differences_see_what_the_identities_do_not() -> None:
    wrong = -WIDE * np.where(np.arange(10) == 4, 1.02, 1.0)
    sample = sx.Sample(WIDE, wrong)
    assert sx.audit(sample).passed
    assert sx.audit(sx.Sample(WIDE, -WIDE), log_density=_density).passed
    finding = _only(sx.audit(sample, log_density=_density))
    assert (finding.kind, finding.columns) == ("term", ("x[4]",))


def test_finite_differences_far_from_zero_know_the_step_as_it_was_rounded() -> None:
    """At 1e10 numbers are 2e-6 apart, a fiftieth of the step."""
    x = 1e10 + np.random.default_rng(0).normal(size=(5, 2))
    slopes, _ = sx.auditing.central_differences(lambda z: _density(z - 1e10), x, np.eye(2))
    assert np.allclose(slopes, 1e10 - x, rtol=1e-6)
