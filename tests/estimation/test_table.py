"""An estimate as it is printed."""

import arviz_base
import numpy as np

import steinax as sx


def test_labels_in_brackets_are_printed_and_not_taken_for_styles():
    x = np.random.default_rng(0).normal(size=(4, 50, 2))
    sample = sx.Sample(x, -x, names=["start[hare]", "start[bold]"])
    printed = repr(sx.estimate(["start[hare]", "start[bold]"], sample, sx.Polynomial(1)))
    assert "start[hare]" in printed
    assert "start[bold]" in printed


def _cells(estimate: sx.Estimate) -> list[str]:
    return next(line for line in repr(estimate).splitlines() if line.startswith("mu")).split()


def test_scores_by_hand_show_no_more_digits_than_a_plain_average_until_they_are_verified() -> None:
    x = 1.5 + np.random.default_rng(0).normal(size=(4, 250, 1))
    by_hand = sx.Sample(x, 1.5 - x, ["mu"])
    before = sx.estimate("mu", by_hand)
    _, value, _, plain, *_ = _cells(before)
    assert value == "1.500" and len(plain) == 5
    assert "check them with sx.audit(sample, log_density=...)" in " ".join(repr(before).split())
    assert sx.audit(by_hand, log_density=lambda x: -0.5 * (x[0] - 1.5) ** 2).verified
    after = sx.estimate("mu", by_hand)
    assert len(_cells(after)[1]) >= 10 and "check them" not in repr(after)
    assert after.value[0] == before.value[0] and after.mcse[0] == before.mcse[0]
    assert len(_cells(sx.estimate("mu", sx.Sample(x, 1.5 - x, ["mu"], verified=True)))[1]) >= 10


def test_simulated_data_are_referred_to_predictive() -> None:
    x = np.random.default_rng(0).normal(size=(4, 250, 2))
    groups = {name: {"y": x[..., 1:]} for name in ("posterior", "posterior_predictive")}
    sample = sx.Sample(x, -x, variables=arviz_base.from_dict(groups))
    shown = repr(sx.estimate("posterior_predictive/y", sample, sx.Polynomial(1)))
    assert "conditional distribution to sx.predictive" in " ".join(shown.split())
    assert "sx.predictive" not in repr(sx.estimate("y", sample, sx.Polynomial(1)))


def test_chains_that_differ_are_named() -> None:
    """Where their draws do not fail the audit: R-hat of the first integrand is above 1.05."""
    x = np.random.default_rng(0).normal(size=(4, 250, 2))
    good = sx.Sample(x, -x)
    x = x + 0.35 * np.array([[-1, 0], [1, 0], [1, 0], [-1, 0]])[:, None]
    bad = sx.estimate("x", sx.Sample(x, -x), sx.Polynomial(1), audit="off")
    assert bad.plain_rhat[0] > 1.05 > bad.plain_rhat[1]
    shown = " ".join(repr(bad).split())
    assert f"(plain_rhat up to {bad.plain_rhat[0]:.2f}) on x[0]: run them longer" in shown
    assert "chains differ" not in repr(sx.estimate("x", good, sx.Polynomial(1)))


def test_constants_in_float32_have_no_error_and_no_gain() -> None:
    """Their plain error is that of rounding, and so is what scores in float32 could shift."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4, 100, 1)).astype(np.float32)
    corr = (1 + 1e-7 * np.round(rng.normal(size=(4, 100)))).astype(np.float32)
    variables = {"two": np.full((4, 100), 2.5, np.float32), "corr": corr}
    sample = sx.from_arrays(x, -x, variables=variables)
    found = sx.estimate(["two", "corr"], sample)
    np.testing.assert_allclose(found.mcse, 0, atol=1e-14)
    np.testing.assert_allclose(found.worth, 1)
    table = sx.summary(sample)
    assert (table["mcse_mean"] == 0).all() and (table["sd"] == 0).all()
    assert [line.split()[1] for line in str(table).splitlines()[2:4]] == ["2.5", "1"]


def test_the_error_is_not_below_what_scores_in_float32_can_shift() -> None:
    """A Gaussian, whose mean is exact; its scores are those of float32 and off by a constant 1e-6."""
    x = np.random.default_rng(0).normal(size=(4, 250, 1)).astype(np.float32)
    score = (1e-6 - x.astype(np.float64)).astype(np.float32)
    single = sx.estimate("x", sx.Sample(x, score))
    assert 1e-6 < single.mcse[0] < 4e-6
    assert abs(single.value[0]) < 3 * single.mcse[0]
    assert np.isclose(single.worth[0], (single.plain_mcse[0] / single.mcse[0]) ** 2)
    assert sx.estimate("x", sx.Sample(x, -x.astype(float) * (1 + 1e-15))).mcse[0] < 1e-10
