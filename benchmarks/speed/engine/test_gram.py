"""The Stein kernel matrix against three products and one pass of an exponential."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steinax as sx


@pytest.mark.parametrize("dim", [10, 61, 500])
@pytest.mark.parametrize("n", [2000, 4000])
def test_gram(ratio, n: int, dim: int) -> None:
    """The bare operations write one matrix too, in one compiled pass over the products."""
    with jax.enable_x64(True):
        x = jnp.asarray(np.random.default_rng(0).normal(size=(n, dim)))
        family = sx.KernelTranslates(sx.kernels.SquaredExponential(float(np.sqrt(dim))))
        state = family.setup(x, -x)
        ours = jax.jit(lambda x, s: family.cross_gram(state, x, s, x, s))
        bare = jax.jit(lambda x, s: jnp.exp(x @ x.T) + x @ s.T + s @ s.T)
        score = -x / 2
        ratio(
            lambda: ours(x, score).block_until_ready(),
            lambda: bare(x / dim, score).block_until_ready(),
            at_most=1.15,
        )
