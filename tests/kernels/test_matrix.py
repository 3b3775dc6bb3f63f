"""The matrix of a Stein kernel is that of its one-point definition, in whatever order it is made."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steinax as sx
from steinax.kernels import _base
from steinax.kernels._structured import CoordinatePairs, Directional

KERNELS = [
    sx.kernels.SquaredExponential(2.0),
    sx.kernels.Matern52(2.0),
    sx.kernels.InverseMultiquadric(2.0),
    sx.kernels.ExponentialDotProduct(3.0),
    sx.kernels.DampedGaussian(0.1, 2.0),
    CoordinatePairs(1.5),
    Directional(np.array([0.6, 0.8, 0.0]), 1.0, 2.0),
    sx.kernels.SquaredExponential(2.0) + sx.kernels.Matern52(3.0),
    sx.kernels.SquaredExponential(2.0) * sx.kernels.InverseMultiquadric(3.0),
]


class Quartic(sx.kernels.AbstractKernel):
    """A kernel of one's own, without a closed form."""

    def __call__(self, x, y):
        return (1 + x @ y) ** 4


def points(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)), rng.normal(size=(n, 3))


def one_by_one(kernel: sx.kernels.AbstractKernel, left, right) -> np.ndarray:
    """A pair at a time, by automatic differentiation."""
    operator = sx.Langevin()
    if isinstance(kernel, CoordinatePairs):  # a kernel for each component: no autodiff of one
        pair = jax.jit(lambda *pair: kernel.stein(operator, *pair))
    else:
        pair = jax.jit(
            lambda x, s, y, t: operator(operator.representer(kernel, y, t), x, s)  # no closed form
        )
    return np.array(
        [
            [float(pair(x, s, y, t)) for y, t in zip(*right, strict=True)]
            for x, s in zip(*left, strict=True)
        ]
    )


# of a NumPy tile; of entries and of dimensions, from which on jax goes by tiles and by panels
ORDERS = {
    "tiles": {"NUMBERS": 1, "FEW": 0, "ROWS": 5},
    "at once": {"NUMBERS": 2**17, "FEW": 2**17},
    "panels": {"FEW": 0, "WIDE": 1},
}


@pytest.fixture(params=ORDERS)
def order(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ORDERS[request.param].items():
        monkeypatch.setattr(_base, name, value)


@pytest.mark.usefixtures("order")
@pytest.mark.parametrize("kernel", [*KERNELS, Quartic()], ids=lambda kernel: type(kernel).__name__)
def test_every_order_of_work_gives_the_same(kernel: sx.kernels.AbstractKernel) -> None:
    with jax.enable_x64(True):
        own, other = points(23), points(9, seed=1)
        for left, right in ((own, own), (own, other)):
            expected = one_by_one(kernel, left, right)
            made = kernel.stein_matrix(sx.Langevin(), *left, *right)
            assert isinstance(made, np.ndarray)
            # the same arrays twice, where the points are the same
            first = tuple(map(jnp.asarray, left))
            second = first if right is left else tuple(map(jnp.asarray, right))
            by_jax = kernel.stein_matrix(sx.Langevin(), *first, *second)
            size = np.abs(expected).max()
            np.testing.assert_allclose(made, expected, atol=1e-13 * size)
            np.testing.assert_allclose(by_jax, expected, atol=1e-13 * size)


def test_a_multiple_of_the_operator_is_its_square() -> None:
    own = points(5)
    kernel = sx.kernels.SquaredExponential(2.0)
    whole, half = (kernel.stein_matrix(a, *own, *own) for a in (sx.Langevin(), 0.5 * sx.Langevin()))
    np.testing.assert_allclose(half, 0.25 * whole)
