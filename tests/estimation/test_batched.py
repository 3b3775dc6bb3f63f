"""A thousand small posteriors in one compiled call are what a loop over them gives."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steinax as sx
from steinax._numerics import precision
from steinax.solvers import Problem

POSTERIORS, N, DIM = 1000, 24, 2
FOLDS = sx.CrossFit(4).boundaries(chains=4, length=N // 4)


@pytest.fixture(autouse=True)
def double_precision():
    with precision(np.float64):
        yield


def _arrays() -> tuple[jax.Array, jax.Array, jax.Array]:
    """Draws, scores and two functions of Gaussians with random scales: (posterior, n, ...)."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(POSTERIORS, N, DIM))
    scale = rng.uniform(0.5, 2.0, size=(POSTERIORS, 1, DIM))
    f = np.stack([np.sin(z[..., 0]), np.exp(z[..., 1] / 2)], axis=-1)
    return jnp.asarray(z * scale), jnp.asarray(-z / scale), jnp.asarray(f)


def _held_out(problem: Problem, dual: bool) -> jax.Array:
    return sx.Exact(dual=dual).crossfit(problem, FOLDS).residual


@pytest.mark.slow
@pytest.mark.parametrize("dual", [False, True], ids=["primal", "dual"])
@pytest.mark.parametrize(
    ("family", "penalty"),
    [
        (sx.Polynomial(2), sx.NoPenalty()),
        (sx.KernelTranslates(sx.kernels.SquaredExponential(1.5)), sx.NativeNorm(1e-3)),
    ],
    ids=["polynomial", "kernel"],
)
def test_equals_the_loop(family, penalty, dual: bool) -> None:
    def problem(x, score, f) -> Problem:
        return Problem(family, (penalty,), sx.LeastSquares(), x, score, f)

    arrays = _arrays()
    batched = jax.jit(jax.vmap(lambda *one: _held_out(problem(*one), dual)))
    together = np.asarray(batched(*arrays))
    assert together.shape == (POSTERIORS, N, 2)
    for i in range(0, POSTERIORS, 20):
        one = problem(*(array[i] for array in arrays))
        alone = sx.Exact(dual=dual).crossfit(one, FOLDS, jax.random.key(0)).residual
        np.testing.assert_allclose(together[i], alone, rtol=1e-8, atol=1e-8)


def test_a_grid_of_penalties_is_one_call() -> None:
    """Hyper-parameters are traced numbers, so one compilation serves every value of them."""
    arrays = (array[0] for array in _arrays())
    one = Problem(sx.Polynomial(2), (sx.NativeNorm(1.0),), sx.LeastSquares(), *arrays)
    strengths = jnp.array([1e-6, 1e-3, 1.0])

    def at(strength):
        changed = eqx.tree_at(lambda p: p.penalties[0].strength, one, strength)
        return _held_out(changed, True)

    together = jax.vmap(at)(strengths)
    for strength, found in zip(strengths, together, strict=True):
        np.testing.assert_allclose(found, at(strength), rtol=1e-10, atol=1e-10)
