"""Errors of what `weigh` gives: of means as `estimate` has them, of functions by the delta method."""

import numpy as np
import pytest

import steinax as sx
import targets
from steinax.chains import chain_statistics

FAMILY = sx.Polynomial(2)
FIELDS = ("value", "mcse", "ess", "rhat", "freedom", "plain_value", "plain_mcse")


@pytest.fixture(scope="module")
def sample() -> sx.Sample:
    return targets.banana(2).sample(0, chains=4, length=60)


@pytest.fixture(scope="module")
def weighted(sample: sx.Sample) -> sx.estimation.WeightedDraws:
    return sx.weigh(sample, FAMILY)


def _sine(sample: sx.Sample) -> np.ndarray:
    return np.sin(sample.draws[..., :1]) + sample.draws[..., 1:]


def test_means_are_those_of_the_estimate(
    sample: sx.Sample, weighted: sx.estimation.WeightedDraws
) -> None:
    f = _sine(sample)
    found, expected = weighted.mean(f), sx.estimate(f, sample, FAMILY)
    for field in FIELDS:
        left, right = getattr(found, field), getattr(expected, field)
        np.testing.assert_allclose(left, right, rtol=1e-8, err_msg=field)


def test_standard_deviations(sample: sx.Sample, weighted: sx.estimation.WeightedDraws) -> None:
    r"""To first order that of $(f - m)^2 / 2 \sigma$, whose error is known."""
    f = _sine(sample)
    found, mean = weighted.sd(f), weighted.mean(f)
    expected = sx.estimate((f - mean.value) ** 2 / (2 * found.value), sample, FAMILY)
    np.testing.assert_allclose(found.mcse, expected.mcse, rtol=1e-8)
    plain = chain_statistics((f - f.mean()) ** 2 / (2 * f.std()))
    np.testing.assert_allclose(found.plain_mcse, plain.mcse, rtol=1e-8)


def test_ratios(sample: sx.Sample, weighted: sx.estimation.WeightedDraws) -> None:
    r"""To first order that of $(f - \rho g) / m_g$."""
    f, g = _sine(sample), 2 + np.cos(sample.draws[..., :1])
    found, below = weighted.ratio(f, g), weighted.mean(g)
    expected = sx.estimate((f - found.value * g) / below.value, sample, FAMILY)
    np.testing.assert_allclose(found.mcse, expected.mcse, rtol=1e-8)
    plain = chain_statistics((f - f.mean() / g.mean() * g) / g.mean())
    np.testing.assert_allclose(found.plain_mcse, plain.mcse, rtol=1e-8)
