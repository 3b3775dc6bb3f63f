"""A training step of a network's control variate against one of the network itself."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steinax as sx


@pytest.mark.parametrize("depth", [1, 2])
def test_network(ratio, depth: int) -> None:
    """The Laplacian of a potential, its loss and gradient, against loss and gradient of the values."""
    with jax.enable_x64(True):
        rng = np.random.default_rng(0)
        x = jnp.asarray(rng.normal(size=(256, 500)))
        f = jnp.cos(x[:, :1])
        family = sx.Network(20, depth, operator=sx.ScalarLangevin())
        hidden, weight, bias = family.init(None, x, 1, jax.random.key(0))
        params = (hidden, weight + 0.1, bias)

        def loss(params, x, score, f):
            values = jax.vmap(family.evaluate, in_axes=(None, None, 0, 0))(None, params, x, score)
            return jnp.mean((f - values) ** 2)

        def plain_loss(params, x, score, f):
            values = jax.vmap(family.potential, in_axes=(None, 0))(params, x)
            return jnp.mean((f - values) ** 2)

        ours, bare = jax.jit(jax.value_and_grad(loss)), jax.jit(jax.value_and_grad(plain_loss))
        ratio(
            lambda: jax.block_until_ready(ours(params, x, -x, f)),
            lambda: jax.block_until_ready(bare(params, x, -x, f)),
            at_most=12,
            rounds=50,
        )
