"""Kernels along one direction, for integrands in many dimensions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steinax as sx
from steinax.kernels._base import autodiff_stein
from steinax.kernels._directional import Directional


def test_the_closed_form_is_the_autodiff_one() -> None:
    with jax.enable_x64(True):
        rng = np.random.default_rng(0)
        x, s, y, t = (jnp.asarray(row) for row in rng.normal(size=(4, 5)))
        direction = jnp.asarray(rng.normal(size=5))
        kernel = Directional(direction / jnp.linalg.norm(direction), 0.7, 2.0)
        for other, score in ((y, t), (x, s)):
            closed = kernel.stein(sx.Langevin(), x, s, other, score)
            slow = autodiff_stein(kernel, sx.Langevin(), x, s, other, score)
            np.testing.assert_allclose(closed, slow, rtol=1e-10)


@pytest.mark.slow
def test_helps_where_an_integrand_varies_along_one_direction() -> None:
    """Forty dimensions, a bump along one combination of them: a tenth of the variance is left."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4, 125, 40))
    a = np.ones(40) / np.sqrt(40)
    found = sx.estimate({"f": lambda x: jax.nn.sigmoid(2 * (a @ x) - 1)}, sx.Sample(x, -x))
    assert "Directional" in found.chosen[0]
    own = found.candidates.left[["Directional" in name for name in found.candidates.names]]
    others = found.candidates.left[["Directional" not in name for name in found.candidates.names]]
    assert own.min() < others.min() / 3
