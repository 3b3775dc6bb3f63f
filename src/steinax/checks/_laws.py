"""The laws of operators, kernels and families, each as a check that raises AssertionError."""

from collections.abc import Callable, Iterable
from enum import Enum
from statistics import NormalDist

import jax
import jax.numpy as jnp
import numpy as np

from ..families import AbstractFamily, AbstractLinearFamily
from ..kernels import AbstractKernel, AbstractRadial, resolve
from ..kernels._base import autodiff_stein
from ..operators import AbstractOperator
from ._check import expect
from ._targets import Target


class Shape(Enum):
    """How smooth features are: what a quadrature rule can be asked for.

    >>> Shape.KINKED.value
    'continuous, with a derivative that jumps'
    """

    ANALYTIC = "analytic"
    KINKED = "continuous, with a derivative that jumps"
    BROKEN = "with jumps"


type ZeroMean = Callable[[jax.Array, jax.Array], jax.Array]  # of a point and its score: (m,)

POINTS = 6  # draws that a family is set up on; few, so that every law is cheap
# What |E g| may be, in units of the root mean square of g. A trapezoid rule is exact to rounding
# for analytic g; a kink costs the square of the spacing, a jump the spacing itself.
ON_GRID = {Shape.ANALYTIC: 1e-10, Shape.KINKED: 2e-5, Shape.BROKEN: 5e-3}
# The false-alarm rate of all z-tests together, and how many there may be (Bonferroni).
FALSE_ALARMS, TESTS = 1e-6, 5000
THRESHOLD = -NormalDist().inv_cdf(FALSE_ALARMS / TESTS / 2)
CLOSED_FORM = 1e-10


def functions_of(family: AbstractFamily, target: Target, seed: int = 0) -> ZeroMean:
    """Functions that should have mean zero: the features, or g with random parameters."""
    x, score = points(target, seed, POINTS)
    family = resolve(family, x)
    state = family.setup(x, score)
    if isinstance(family, AbstractLinearFamily):
        return lambda x, score: family.features(state, x, score)
    params = random_params(family, state, x, seed)
    return lambda x, score: family.evaluate(state, params, x, score)


def random_params(family: AbstractFamily, state, x, seed: int = 0):
    """Parameters of three integrands that are nowhere zero."""
    start = family.init(state, x, 3, jax.random.key(seed))
    leaves, tree = jax.tree.flatten(start)
    keys = jax.random.split(jax.random.key(seed + 1), len(leaves))
    noisy = [
        leaf + jax.random.normal(key, leaf.shape, leaf.dtype) / 2
        for leaf, key in zip(leaves, keys, strict=True)
    ]
    return jax.tree.unflatten(tree, noisy)


def points(target: Target, seed: int, n: int) -> tuple[jax.Array, jax.Array]:
    """A few draws and their scores."""
    x = target.draw(np.random.default_rng(seed), n)
    return jnp.asarray(x), jnp.asarray(target.score(x))


def check_mean_on_grid(
    g: ZeroMean, score, nodes: np.ndarray, weights: np.ndarray, tolerance: float
) -> None:
    """E g = 0 by quadrature."""
    many = jax.jit(jax.vmap(g))
    mean, square = 0.0, 0.0
    for start in range(0, len(nodes), 20_000):
        x, w = nodes[start : start + 20_000], weights[start : start + 20_000]
        values = np.asarray(many(jnp.asarray(x), jnp.asarray(score(x))))
        mean, square = mean + w @ values, square + w @ values**2
    worst = np.max(np.abs(mean) / np.sqrt(square))
    expect(worst <= tolerance, f"E g is {worst:.2g} root mean squares from zero by quadrature")


def check_mean_on_draws(g: ZeroMean, blocks: Iterable[tuple[np.ndarray, np.ndarray]]) -> None:
    """E g = 0 by a z-test on exact draws, with the false-alarm rate stated above."""
    many = jax.jit(jax.vmap(g))
    count, total, square = 0, 0.0, 0.0
    for x, score in blocks:
        values = np.asarray(many(jnp.asarray(x), jnp.asarray(score)))
        count, total, square = count + len(x), total + values.sum(0), square + (values**2).sum(0)
    mean = total / count
    worst = np.max(np.abs(mean / np.sqrt((square / count - mean**2) / count)))
    expect(worst <= THRESHOLD, f"E g is {worst:.1f} standard errors from 0")


def check_stein_kernel(kernel: AbstractKernel, operator: AbstractOperator, x, score) -> jax.Array:
    """The closed form of k_0 is its autodiff definition on all pairs, x = y among them."""
    found = pairs(kernel.stein, operator, x, score)
    assert_close(found, autodiff_pairs(kernel, operator, x, score))
    return found


def autodiff_pairs(kernel, operator, x, score, y=None, score_y=None) -> jax.Array:
    """The matrix of k_0 by automatic differentiation."""

    def stein(*arguments):
        return autodiff_stein(kernel, *arguments)

    return pairs(stein, operator, x, score, y, score_y)


def pairs(stein, operator, x, score, y=None, score_y=None) -> jax.Array:
    """A Stein kernel's matrix between two sets of points, or of one with itself."""
    y, score_y = (x, score) if y is None else (y, score_y)

    def row(a, score_a):
        return jax.vmap(lambda b, score_b: stein(operator, a, score_a, b, score_b))(y, score_y)

    return jax.jit(jax.vmap(row))(x, score)


def check_radial_derivatives(kernel: AbstractRadial, order: int, q: jax.Array) -> None:
    """Each derivative of the profile is the derivative of the one before it."""

    def profile(q):
        return kernel.derivatives(q, 0)[0]

    for n in range(order + 1):
        assert_close(kernel.derivatives(q, order)[n], jax.vmap(profile)(q))
        profile = jax.grad(profile)


def check_features(family: AbstractLinearFamily, state, x, score) -> None:
    """The features are the operator applied to the basis."""
    found = jax.jit(family.feature_matrix)(state, x, score)
    expected = jax.jit(lambda *points: default_features(family, state, *points))(x, score)
    assert_close(found, expected)


def default_features(family: AbstractLinearFamily, state, x, score) -> jax.Array:
    """The operator applied to the basis, term by term for a sum."""
    if len(family.terms) > 1:
        terms = zip(family.terms, state, strict=True)
        parts = [default_features(*one, x, score) for one in terms]  # type: ignore[arg-type]
        return jnp.concatenate(parts, axis=1)

    def one(x, score):
        return family.operator(lambda z: family.basis(state, z), x, score)

    return jax.vmap(one)(x, score)


def check_positive(gram: jax.Array) -> None:
    """A Gram matrix is symmetric and has no eigenvalue below zero, up to rounding."""
    matrix = np.asarray(gram)
    largest = np.abs(matrix).max()
    expect(np.abs(matrix - matrix.T).max() <= 1e-12 * largest, "not symmetric")
    lowest = np.linalg.eigvalsh(matrix)[0]
    expect(lowest >= -1e-11 * largest * len(matrix), f"an eigenvalue of {lowest:.2g}")


def assert_close(found, expected, tolerance: float = CLOSED_FORM) -> None:
    """Equal to the tolerance, relative to the larger of each entry and the array's typical one."""
    found, expected = np.asarray(found), np.asarray(expected)
    expect(found.shape == expected.shape, f"shapes {found.shape} and {expected.shape}")
    size = np.maximum(np.abs(expected), np.sqrt(np.mean(expected**2)))
    worst = np.max(np.abs(found - expected) / np.where(size > 0, size, 1.0), initial=0.0)
    expect(worst <= tolerance, f"off by {worst:.2g}")
