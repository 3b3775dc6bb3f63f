"""The exact fit against a bare kernel matrix and a bare Cholesky factorisation, and what comes on top."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import get_lapack_funcs

import steinax as sx
from steinax.objectives import LeastSquares
from steinax.solvers import Problem

N, DIM = 2000, 10
FOLDS = tuple((start, start + N // 10) for start in range(0, N, N // 10))
KERNEL = sx.KernelTranslates(sx.kernels.SquaredExponential(float(np.sqrt(DIM))))
FAMILIES = {"kernel": KERNEL, "polynomial-kernel": sx.Polynomial(2) + KERNEL}


def problem(name: str, k: int) -> Problem:
    """A smooth function along each of k directions, on draws as a sample has them: NumPy's arrays."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, DIM))
    f = np.cos(x @ rng.normal(size=(DIM, k)) / np.sqrt(DIM))
    penalties = tuple(
        sx.NativeNorm(1e-3) if term.centres_on_draws else sx.NoPenalty()
        for term in FAMILIES[name].terms
    )
    return Problem(FAMILIES[name], penalties, LeastSquares(), x, -x, f)


def fitting(one: Problem) -> Callable[[], object]:
    """A call of the exact fit."""
    solver, key = sx.Exact(), jax.random.key(0)
    return lambda: jax.block_until_ready(solver.solve(one, key).params)


@pytest.mark.parametrize("name", FAMILIES)
def test_exact(ratio, name: str) -> None:
    """LAPACK is called by SciPy, on a matrix that lies as it wants it: the fastest way there is."""
    with jax.enable_x64(True):
        one = problem(name, 1)
        gram = jax.jit(lambda x, s: jnp.exp(x @ x.T / DIM) + x @ s.T + s @ s.T)
        matrix = KERNEL.cross_gram(None, one.x, one.score, one.x, one.score) + np.eye(N)
        positive = np.asfortranarray(matrix)
        (factorise,) = get_lapack_funcs(("potrf",), (positive,))

        def bare() -> None:
            gram(one.x, one.score).block_until_ready()
            factorise(positive, lower=1, clean=0, overwrite_a=0)

        ratio(fitting(one), bare, at_most=1.4)


@pytest.mark.parametrize("name", FAMILIES)
def test_crossfit(ratio, name: str) -> None:
    """Ten folds against one fit."""
    with jax.enable_x64(True):
        one, solver, key = problem(name, 1), sx.Exact(), jax.random.key(0)
        ours = lambda: jax.block_until_ready(solver.crossfit(one, FOLDS, key).residual)  # noqa: E731
        ratio(ours, fitting(one), at_most=2.5)


@pytest.mark.parametrize("k, at_most", [(100, 1.3), (1000, 2.5), (10_000, 20.0)])
def test_integrands(ratio, k: int, at_most: float) -> None:
    """Many integrands against one."""
    with jax.enable_x64(True):
        rounds = 3 if k > 1000 else 10
        ratio(fitting(problem("kernel", k)), fitting(problem("kernel", 1)), at_most, rounds)
