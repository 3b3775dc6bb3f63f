"""A fit on landmarks against the product of its columns with their own transpose.

The bare product is NumPy's general one, of `n M^2` multiplications and additions. The fit forms only
half of a symmetric matrix (`syrk`), and spends what that saves on the columns themselves.
"""

import jax
import jax.numpy as jnp
import numpy as np

import steinax as sx
from steinax.objectives import LeastSquares
from steinax.solvers import Problem

N, COUNT, DIM = 100_000, 800, 10


def test_landmarks(ratio) -> None:
    """The whole fit: landmarks, columns, moments and the solution."""
    with jax.enable_x64(True):
        generator = np.random.default_rng(0)
        x = jnp.asarray(generator.normal(size=(N, DIM)))
        family = sx.KernelTranslates(sx.kernels.SquaredExponential(float(np.sqrt(DIM))))
        f = jnp.sin(x[:, :1] + x[:, 1:2])
        problem = Problem(family, (sx.NativeNorm(1e-5),), LeastSquares(), x, -x, f)
        solver = sx.Nystrom(COUNT)
        columns = generator.normal(size=(N, COUNT))
        transposed = np.array(columns.T)  # another array, or NumPy would notice the symmetry
        ratio(
            lambda: jax.block_until_ready(solver.solve(problem, jax.random.key(0)).params),
            lambda: transposed @ columns,
            at_most=1.35,
            rounds=2,
        )
