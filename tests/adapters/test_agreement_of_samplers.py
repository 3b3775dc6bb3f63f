"""One model in four languages: what every sampler says of it, and that they say the same.

`STEINAX_FULL=1 pytest -s tests/adapters/test_agreement_of_samplers.py` prints the table of the guide;
CI leaves it at the contract of each adapter, and at the page that runs all samplers.
"""

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest

import steinax as sx
from adapters import model_blackjax, model_numpyro, model_pymc, model_stan
from adapters.shared_model import DIMENSIONS, NAMES
from full import only_full

pytestmark = [pytest.mark.slow, only_full]

SAMPLERS: dict[str, Callable[[], sx.Sample]] = {
    "nutpie": model_pymc.nutpie_sample,
    "pymc": model_pymc.pymc_sample,
    "numpyro": model_numpyro.numpyro_sample,
    "blackjax": model_blackjax.blackjax_sample,
    "pystan": model_stan.pystan_sample,
}
# 10 pairs of samplers, 13 quantities: 5 standard errors are exceeded once in 10,000 runs if all is right
AGREE = 5.0
WORTH = 10.0


def _estimate(sample: sx.Sample) -> sx.Estimate:
    """Of every element of every parameter that is not a constant."""
    every = sx.data.integrands(NAMES, sample)
    moving = np.ptp(every.values, axis=(0, 1)) > 1e-12
    names = tuple(str(name) for name in np.array(every.names)[moving])
    return sx.estimate(sx.data.Integrands(every.values[..., moving], names), sample)


def test_all_agree_within_their_error_bars_and_gain_more_than_tenfold() -> None:
    found = {sampler: _estimate(sample()) for sampler, sample in SAMPLERS.items()}
    for sampler, one in found.items():
        assert one.audit is not None and one.audit.passed, sampler
        assert one.audit.limit.shape == (DIMENSIONS,), sampler
        assert len(one) == 3 + 1 + 4 + 5, one.names
        worth = dict(zip(one.names, one.worth.round(1).tolist(), strict=True))
        assert min(worth.values()) > WORTH, (sampler, worth)
        least = min(worth, key=lambda name: worth[name])
        middle = np.median([*worth.values()])
        print(f"| {sampler} | {worth[least]:,.0f} ({least}) | {middle:,.0f} |")
    furthest = 0.0
    for pair in combinations(found, 2):
        one, other = (found[sampler] for sampler in pair)
        assert one.names == other.names, pair
        apart = (one.value - other.value) / np.hypot(one.mcse, other.mcse)
        assert np.abs(apart).max() < AGREE, (pair, dict(zip(one.names, apart, strict=True)))
        furthest = max(furthest, float(np.abs(apart).max()))
    print(f"furthest apart: {furthest:.2f} standard errors")
