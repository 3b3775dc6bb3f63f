"""The kernel matrix of all polynomials of degree two against the three products it is made of."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steinax as sx


@pytest.mark.parametrize("n, dim", [(1000, 61), (1000, 500), (4000, 500)])
def test_polynomial_gram(ratio, n: int, dim: int) -> None:
    """The dual form of degree two."""
    with jax.enable_x64(True):
        x = jnp.asarray(np.random.default_rng(0).normal(size=(n, dim)))
        family, score = sx.Polynomial(2), -x / 2
        ours = jax.jit(lambda x, s: family.cross_gram(None, x, s, x, s))
        bare = jax.jit(lambda x, s: (x @ x.T, x @ s.T, s @ s.T))
        ratio(
            lambda: ours(x, score).block_until_ready(),
            lambda: jax.block_until_ready(bare(x, score)),
            at_most=1.25,
            rounds=5,
        )
