"""The matrix of a Stein kernel is that of its one-point definition, in whatever order it is made."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steinax as sx
from steinax.kernels import _matrix

KERNELS = [
    sx.kernels.SquaredExponential(2.0),
    sx.kernels.Matern52(2.0),
    sx.kernels.InverseMultiquadric(2.0),
    sx.kernels.DampedGaussian(0.1, 2.0),
    sx.kernels.SquaredExponential(2.0) + sx.kernels.Matern52(3.0),
]


def points(n: int, dim: int, seed: int = 0) -> tuple[jax.Array, jax.Array]:
    rng = np.random.default_rng(seed)
    return jnp.asarray(rng.normal(size=(n, dim))), jnp.asarray(rng.normal(size=(n, dim)))


def one_by_one(kernel: sx.kernels.AbstractKernel, left, right) -> np.ndarray:
    """A pair at a time, with no product of matrices."""
    n, m = len(left[0]), len(right[0])
    i, j = np.divmod(np.arange(n * m), m)
    pairs = (left[0][i], left[1][i], right[0][j], right[1][j])
    found = jax.lax.map(lambda pair: kernel.stein(sx.Langevin(), *pair), pairs)
    return np.asarray(found).reshape(n, m)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles of a few rows, so that small matrices have many of them."""
    monkeypatch.setattr(_matrix, "FEW", 0)
    monkeypatch.setattr(_matrix, "ROWS", 6)
    monkeypatch.setattr(_matrix, "WIDE", 6)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)
@pytest.mark.parametrize("n, dim", [(23, 3), (23, 7)])  # tiles with a rest, and panels
def test_every_order_of_work_gives_the_same(
    kernel: sx.kernels.AbstractKernel, n: int, dim: int
) -> None:
    with jax.enable_x64(True):
        own, other = points(n, dim), points(9, dim, seed=1)
        matrix = jax.jit(
            lambda left, right: sx.KernelTranslates(kernel).cross_gram(None, *left, *right)
        )
        square = jax.jit(lambda own: sx.KernelTranslates(kernel).cross_gram(None, *own, *own))
        np.testing.assert_allclose(square(own), one_by_one(kernel, own, own), atol=1e-12)
        np.testing.assert_allclose(matrix(own, other), one_by_one(kernel, own, other), atol=1e-12)


@pytest.mark.parametrize("n, rows", [(2000, 50), (1024, 32), (1009, 50)])
def test_tiles_are_equal_where_they_can_be(n: int, rows: int) -> None:
    assert _matrix._rows(n) == rows
