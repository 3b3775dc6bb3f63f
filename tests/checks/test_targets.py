"""The known answers are right: what other tests are measured against is measured first."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import targets
from targets import Target

DRAWS = 200_000
# About 60 statistics at this many standard errors: false alarms in fewer than 1e-6 of runs.
THRESHOLD = 6.0


@pytest.mark.parametrize("dim", [2, 5])
@pytest.mark.parametrize("make", targets.MAKERS, ids=lambda make: make.__name__)
class TestTarget:
    def test_score_is_the_gradient_of_the_log_density(self, make, dim: int) -> None:
        target: Target = make(dim)
        x = target.draw(np.random.default_rng(0), 20)
        with jax.enable_x64(True):
            gradient = jax.vmap(jax.grad(target.log_density))(jnp.asarray(x))
        np.testing.assert_allclose(target.score(x), gradient, rtol=1e-12, atol=1e-12)

    def test_draws_have_the_stated_expectations(self, make, dim: int) -> None:
        target: Target = make(dim)
        x = target.draw(np.random.default_rng(1), DRAWS)
        with jax.enable_x64(True):
            for f, exact in target.integrands.values():
                values = np.asarray(jax.vmap(f)(jnp.asarray(x)))
                z = (values.mean() - exact) / (values.std() / np.sqrt(DRAWS))
                assert abs(z) < THRESHOLD

    def test_score_belongs_to_the_draws(self, make, dim: int) -> None:
        """E[x s'] = -I: the identity that tells a wrong score from a right one."""
        target: Target = make(dim)
        x = target.draw(np.random.default_rng(2), DRAWS)
        products = x[:, :, None] * target.score(x)[:, None, :]
        error = products.std(axis=0) / np.sqrt(DRAWS)
        assert np.all(np.abs(products.mean(axis=0) + np.eye(dim)) < THRESHOLD * error)


@pytest.mark.parametrize("make", [targets.skewed, targets.mixture], ids=lambda make: make.__name__)
def test_quadrature_has_the_stated_expectations(make) -> None:
    target: Target = make(1)
    nodes, weights = targets.grid(target, -16.0, 12.0, 4001)
    with jax.enable_x64(True):
        for f, exact in target.integrands.values():
            values = np.asarray(jax.vmap(f)(jnp.asarray(nodes)))
            assert abs(weights @ values - exact) < 1e-12
