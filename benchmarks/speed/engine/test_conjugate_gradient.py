"""An iteration of conjugate gradients, degree two, against the two products it is made of."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steinax as sx
from steinax.objectives import LeastSquares
from steinax.solvers import Problem

STEPS = 60


@pytest.mark.parametrize("n, dim", [(1000, 61), (10_000, 61), (1000, 500), (4000, 500)])
def test_conjugate_gradient(ratio, n: int, dim: int) -> None:
    """Sixty iterations, and the one that the beginning and the end cost."""
    with jax.enable_x64(True):
        x = jnp.asarray(np.random.default_rng(0).normal(size=(n, dim)))
        f = jnp.sin(x[:, :1] + x[:, 1:2])
        penalties = (sx.NativeNorm(3e-3),)
        problem = Problem(sx.Polynomial(2), penalties, LeastSquares(), x, -x, f)
        solver = sx.ConjugateGradient(tolerance=0.0, max_steps=STEPS, preconditioner=0)
        transposed, start = jnp.array(x.T), jnp.eye(dim)

        @jax.jit
        def bare(x: jax.Array, transposed: jax.Array, matrix: jax.Array) -> jax.Array:
            def both(_: int, matrix: jax.Array) -> jax.Array:
                return transposed @ (x @ matrix)

            return jax.lax.fori_loop(0, STEPS + 1, both, matrix)

        # one more than the steps: the right-hand side, and the values of g at the end
        ratio(
            lambda: jax.block_until_ready(solver.solve(problem, jax.random.key(0)).params),
            lambda: bare(x, transposed, start / n).block_until_ready(),
            at_most=1.3,
            rounds=5,
        )
