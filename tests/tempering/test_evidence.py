"""The log evidence: known answers, agreement of the methods, errors that add up, refusals."""

import numpy as np
import pytest
from benchmarks.beyond._regression import Regression

import steinax as sx
from steinax.tempering import SteppingStones, ThermodynamicIntegration, Trapezium

pytestmark = pytest.mark.slow

STEPS = np.linspace(0, 1, 9) ** 2
METHODS = (ThermodynamicIntegration(), Trapezium(), SteppingStones(1.0), SteppingStones())


def gaussian(count: int = 200, dim: int = 2, steps: np.ndarray = STEPS) -> sx.Tempered:
    """Prior and likelihood are standard normal: the power posterior has variance 1 / (1 + t)."""
    x = np.random.default_rng(0).normal(size=(len(steps), count, dim))
    x = x / np.sqrt(1 + steps)[:, None, None]
    value = -(x**2).sum(-1) / 2 - dim / 2 * np.log(2 * np.pi)
    return sx.Tempered(x, value, -x, -x, steps)


TRUTH = -np.log(4 * np.pi)  # of two dimensions


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_known_answer(method) -> None:
    """What is left is within 4 standard errors and the error of the quadrature."""
    found = sx.evidence(gaussian(), sx.Polynomial(4), method=method)
    reach = 4 * found.mcse + 1.5 * found.quadrature_error
    assert abs(found.value - TRUTH) < reach < 0.05
    assert found.worth > 50


def test_means_are_exact_and_quadrature_is_what_is_left() -> None:
    found = sx.evidence(gaussian(), sx.Polynomial(2), method=Trapezium())
    mu = -1 / (1 + STEPS) - np.log(2 * np.pi)
    np.testing.assert_allclose(found.log_likelihood.value, mu, rtol=1e-9)
    np.testing.assert_allclose(found.value, np.trapezoid(mu, STEPS), rtol=1e-9)
    left = abs(found.value - TRUTH)
    assert 0.7 < found.quadrature_error / left < 1.4


def test_second_order_is_the_corrected_trapezium() -> None:
    found = sx.evidence(gaussian(), sx.Polynomial(4), method=ThermodynamicIntegration())
    mu, variance = -1 / (1 + STEPS) - np.log(2 * np.pi), 1 / (1 + STEPS) ** 2
    step = np.diff(STEPS)
    exact = np.trapezoid(mu, STEPS) - np.sum(step**2 / 12 * np.diff(variance))
    np.testing.assert_allclose(found.value, exact, rtol=1e-9)
    assert 0.5 < found.quadrature_error / abs(exact - TRUTH) < 2


def test_plain_values_are_those_of_the_textbook() -> None:
    tempered = gaussian()
    values = np.stack([one[0] for one in tempered.log_likelihood])
    step, mean, variance = np.diff(STEPS), values.mean(1), values.var(1)
    trapezium = np.trapezoid(mean, STEPS)
    second = trapezium - np.sum(step**2 / 12 * np.diff(variance))
    stones = np.sum(np.log(np.mean(np.exp(step[:, None] * values[:-1]), axis=1)))
    for method, textbook in zip(METHODS, (second, trapezium, stones), strict=False):
        found = sx.evidence(tempered, sx.Polynomial(1), method=method)
        np.testing.assert_allclose(found.plain_value, textbook, rtol=1e-10)


def test_shares_add_up_and_errors_are_independent() -> None:
    found = sx.evidence(gaussian(), sx.Polynomial(1), method=SteppingStones())
    np.testing.assert_allclose(found.shares.value.sum(), found.value)
    np.testing.assert_allclose(np.sqrt((found.shares.mcse**2).sum()), found.mcse)
    assert found.interval()[0] < found.value < found.interval()[1]
    assert found.log_likelihood.names[0] == "t = 0"


def test_chains_that_hang_together_have_larger_errors() -> None:
    """The same normal numbers at all temperatures: errors add, not their squares."""
    x = np.random.default_rng(0).normal(size=(1, 400, 1)) / np.sqrt(1 + STEPS)[:, None, None]
    tempered = sx.Tempered(x, -(x[..., 0] ** 2) / 2, -x, -x, STEPS)
    apart = sx.evidence(tempered, sx.Polynomial(1), method=Trapezium())
    together = sx.evidence(tempered, sx.Polynomial(1), method=Trapezium(), exchanged=True)
    np.testing.assert_allclose(together.plain_mcse, together.shares.plain_mcse.sum(), rtol=0.02)
    assert together.plain_mcse > 2 * apart.plain_mcse


def test_neighbours_help_the_fit() -> None:
    """With 100 draws in six dimensions, a kernel fitted to three times as many leaves far less."""
    tempered = Regression().tempered(np.linspace(0, 1, 9) ** 4, 100, 0)
    family = sx.Polynomial(2) + sx.KernelTranslates()
    method = ThermodynamicIntegration()
    alone = sx.evidence(tempered, family, method=method)
    pooled = sx.evidence(tempered, family, method=method, neighbours=1)
    assert pooled.mcse < 0.7 * alone.mcse
    assert pooled.plain_value == alone.plain_value


def test_neighbours_of_other_lengths() -> None:
    tempered = gaussian(60)
    cut = [slice(0, 60 - 3 * (i % 2)) for i in range(len(STEPS))]
    fields = ("draws", "log_likelihood", "likelihood_scores", "prior_scores")
    parts = [
        [one[:, c] for one, c in zip(getattr(tempered, field), cut, strict=True)]
        for field in fields
    ]
    found = sx.evidence(
        sx.Tempered(*parts, STEPS), sx.Polynomial(2), method=Trapezium(), neighbours=1
    )
    mu = -1 / (1 + STEPS) - np.log(2 * np.pi)
    np.testing.assert_allclose(found.log_likelihood.value, mu, rtol=1e-9)


def test_digits_below_the_error_of_the_quadrature_are_not_printed() -> None:
    found = sx.evidence(gaussian(), sx.Polynomial(4), method=Trapezium())
    value = repr(found).splitlines()[1].split()[2]
    places = -int(np.floor(np.log10(found.quadrature_error)))
    assert found.mcse < 1e-9
    assert len(value.split(".")[1]) == places + 1


def test_it_prints() -> None:
    found = sx.evidence(gaussian(), sx.Polynomial(2))
    shown = repr(found)
    for word in ("log evidence", "worth", "SteppingStones()", "9 temperatures"):
        assert word in shown
    assert "<table" in found._repr_html_()


def test_a_stone_too_far_has_no_error() -> None:
    """From the prior to a sharp posterior in one step: a mean that one draw makes."""
    rng, steps, width = np.random.default_rng(0), np.array([0.0, 1.0]), 1e-2
    x = rng.normal(size=(2, 100, 3)) * np.array([1.0, width])[:, None, None]
    value, score = -(x**2).sum(-1) / (2 * width**2), -x / width**2
    tempered = sx.Tempered(x, value, score, -x, steps)
    found = sx.evidence(tempered, sx.Polynomial(1), method=SteppingStones(1.0), audit="off")
    assert np.isnan(found.mcse) and "temperatures" in found.reason
    assert "no standard error" in repr(found)


def test_refusals() -> None:
    tempered = gaussian(50)
    with pytest.raises(ValueError, match="goes with a family"):
        sx.evidence(tempered, neighbours=1)
    with pytest.raises(ValueError, match="fraction of a step"):
        SteppingStones(1.5)
    tempered = gaussian()
    wrong = sx.Tempered(
        tempered.draws,
        tempered.log_likelihood,
        tempered.likelihood_scores,
        [-one for one in tempered.prior_scores],
        STEPS,
    )
    with pytest.raises(sx.AuditError) as error:
        sx.evidence(wrong, sx.Polynomial(1))
    assert "inverse temperature 0" in error.value.__notes__[0]
