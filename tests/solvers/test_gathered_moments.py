"""Moments that are added up tile by tile, about 0 or about a shift."""

import numpy as np
import pytest

from steinax.solvers._moments import gathered_moments


@pytest.mark.parametrize("mean", [0.0, 3.0, 1e6], ids=str)
def test_no_digits_are_lost_far_from_zero(mean: float) -> None:
    rng = np.random.default_rng(0)
    a, f = rng.normal(size=(4096, 5)), rng.normal(size=(4096, 2))
    columns, values = a + mean, f - mean
    found = gathered_moments(
        (columns[i : i + 512], values[i : i + 512]) for i in range(0, 4096, 512)
    )
    centred, centred_f = (x - x.mean(axis=0) for x in (columns, values))
    np.testing.assert_allclose(found.mean, columns.mean(axis=0), rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(found.mean_f, values.mean(axis=0), rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(found.gram, centred.T @ centred, rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(found.cross, centred.T @ centred_f, rtol=1e-12, atol=1e-10)
