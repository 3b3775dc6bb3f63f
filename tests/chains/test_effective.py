"""The effective sample sizes of many series at once are those of arviz-stats, one by one."""

import numpy as np
import pytest
from arviz_stats.base.array import array_stats

from steinax.chains._statistics import correlations, effective_size

RNG = np.random.default_rng(0)


def _autoregressive(by: float, shape: tuple[int, ...]) -> np.ndarray:
    noise = RNG.normal(size=shape)
    for i in range(1, shape[-1]):
        noise[..., i] += by * noise[..., i - 1]
    return noise


def _kinds(shape: tuple[int, int, int]) -> dict[str, np.ndarray]:
    walk = np.cumsum(RNG.normal(size=shape), axis=-1)
    apart = RNG.normal(size=shape) + 5.0 * np.arange(shape[1])[:, None]
    mixed = _autoregressive(0.8, shape)
    mixed[::2] = 0.3
    return {
        "independent": RNG.normal(size=shape),
        "slow": _autoregressive(0.95, shape),
        "fast": _autoregressive(0.5, shape),
        "antithetic": _autoregressive(-0.7, shape),
        "alternating": _autoregressive(-0.999, shape),
        "heavy": RNG.standard_cauchy(size=shape),
        "walk": walk / np.ptp(walk, axis=(1, 2))[:, None, None],
        "apart": apart,
        "some constant": mixed,
        "constant": np.full(shape, 0.3),
        "trend": np.broadcast_to(np.linspace(0, 1, shape[2]), shape).copy(),
        "two values": RNG.integers(0, 2, size=shape).astype(float),
    }


@pytest.mark.parametrize(
    ("chains", "length"),
    [
        (4, 250),
        (4, 251),
        (1, 400),
        (2, 4),
        (2, 5),
        (3, 9),
        (4, 8),
        (4, 10),
        (2, 12),
        (7, 33),
    ],
)
def test_equals_arviz(chains: int, length: int) -> None:
    for kind, rows in _kinds((40, chains, length)).items():
        with np.errstate(all="ignore"):
            expected = [array_stats.ess(one, 0, 1, method="mean") for one in rows]
        np.testing.assert_allclose(
            effective_size(correlations(rows)), expected, rtol=1e-9, err_msg=kind
        )
