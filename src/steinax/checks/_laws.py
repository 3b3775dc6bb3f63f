"""Targets with known expectations, and numerical checks of operators, kernels and families on them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from statistics import NormalDist

import jax
import jax.numpy as jnp
import numpy as np

from .._numerics import precision
from ..data import Sample
from ..families import AbstractFamily, AbstractLinearFamily
from ..kernels import AbstractKernel, AbstractRadial, autodiff_stein, resolve
from ..operators import AbstractOperator
from ._check import expect

type Draws = np.ndarray
type Function = Callable  # of one draw (dim,), as passed to `steinax.estimate`


@dataclass(frozen=True)
class Target:
    """A density with known scores, exact draws and exact expectations.

    Attributes:
        draw: a function that returns n exact, independent draws, (n, dim).
        score: the gradient of the log density at (n, dim) points.
        log_density: of one point, up to a constant, written in jax.
        integrands: functions of one draw with their exact expectations, by name.
    """

    name: str
    dim: int
    draw: Callable[[np.random.Generator, int], Draws]
    score: Callable[[Draws], Draws]
    log_density: Function
    integrands: dict[str, tuple[Function, float]] = field(default_factory=dict)

    def sample(self, seed: int, chains: int = 4, length: int = 100, **options) -> Sample:
        """Return a sample of independent draws, arranged as `chains` chains."""
        x = self.draw(np.random.default_rng(seed), chains * length)
        shape = (chains, length, self.dim)
        return Sample(x.reshape(shape), self.score(x).reshape(shape), **options)

    @property
    def functions(self) -> dict[str, Function]:
        """Return the integrands without their expectations, as passed to `steinax.estimate`."""
        return {name: f for name, (f, _) in self.integrands.items()}

    @property
    def expectations(self) -> np.ndarray:
        """Return the exact expectations, in the order of `functions`."""
        return np.array([exact for _, exact in self.integrands.values()])


def skewed(dim: int, shape: float = 3.0) -> Target:
    """Return the target of independent log-gamma variables, with an exponential tail to the left only."""
    from scipy.special import digamma, polygamma

    mean, variance = float(digamma(shape)), float(polygamma(1, shape))
    return Target(
        "skewed",
        dim,
        lambda rng, n: np.log(rng.gamma(shape, size=(n, dim))),
        lambda x: shape - np.exp(x),
        lambda x: jnp.sum(shape * x - jnp.exp(x)),
        {
            "first": (lambda x: x[0], mean),
            "square": (lambda x: x[0] ** 2, variance + mean**2),
            "exponential": (lambda x: jnp.exp(x[-1]), shape),
        },
    )


def mixture(dim: int, distance: float = 1.2, weight: float = 0.3) -> Target:
    """Return a mixture of two standard Gaussians centred at -distance and +distance on the first axis."""

    def draw(rng, n):
        x = rng.normal(size=(n, dim))
        x[:, 0] += np.where(rng.random(n) < weight, -distance, distance)
        return x

    def score(x):
        odds = np.log((1 - weight) / weight) / 2
        result = -x.copy()
        result[:, 0] += distance * np.tanh(distance * x[:, 0] + odds)
        return result

    def log_density(x):
        left = jnp.log(weight) - distance * x[0]
        right = jnp.log(1 - weight) + distance * x[0]
        return -jnp.sum(x**2) / 2 + jnp.logaddexp(left, right)

    functions = {
        "first": (lambda x: x[0], (1 - 2 * weight) * distance),
        "square": (lambda x: x[0] ** 2, 1 + distance**2),
        "cosine": (lambda x: jnp.cos(x[0]), float(np.cos(distance) * np.exp(-0.5))),
    }
    return Target("mixture", dim, draw, score, log_density, functions)


def blocks(target: Target, seed: int, total: int, size: int) -> Iterator[tuple[Draws, Draws]]:
    """Yield `total` exact draws and their scores in blocks of `size`, to limit memory."""
    rng = np.random.default_rng(seed)
    for start in range(0, total, size):
        x = target.draw(rng, min(size, total - start))
        yield x, target.score(x)


def grid(target: Target, low: float, high: float, points: int) -> tuple[Draws, np.ndarray]:
    """Return a trapezoid rule for expectations: nodes (m, dim) and weights (m,) that sum to one."""
    axis = np.linspace(low, high, points)
    nodes = np.stack(np.meshgrid(*[axis] * target.dim, indexing="ij"), -1).reshape(-1, target.dim)
    with precision(np.float64):
        logs = np.asarray(jax.vmap(target.log_density)(jnp.asarray(nodes)))
    weights = np.exp(logs - logs.max())
    return nodes, weights / weights.sum()


def quadrature(dim: int, fine: bool) -> tuple[Target, Draws, np.ndarray]:
    """Return a non-Gaussian target and a trapezoid rule for it, with a fine grid for kinks if asked."""
    if dim == 1:
        target = skewed(1)
        return target, *grid(target, -17.0, 5.5, 20_001 if fine else 2_001)
    target = mixture(2)
    return target, *grid(target, -9.5, 9.5, 401 if fine else 151)


class Shape(Enum):
    """How smooth features are, which decides the accuracy expected of quadrature.

    >>> Shape.KINKED.value
    'continuous, with a derivative that jumps'
    """

    ANALYTIC = "analytic"
    KINKED = "continuous, with a derivative that jumps"
    BROKEN = "with jumps"


type ZeroMean = Callable[[jax.Array, jax.Array], jax.Array]  # of a point and its score: (m,)

POINTS = 6  # draws that a family is set up on; few, so that every law is cheap
# The largest |E g|, in units of the root mean square of g. A trapezoid rule is exact to rounding
# for analytic g; a kink costs the square of the spacing, a jump the spacing itself.
ON_GRID = {Shape.ANALYTIC: 1e-10, Shape.KINKED: 2e-5, Shape.BROKEN: 5e-3}
# The false-alarm rate of all z-tests together, and how many there may be (Bonferroni).
FALSE_ALARMS, TESTS = 1e-6, 5000
THRESHOLD = -NormalDist().inv_cdf(FALSE_ALARMS / TESTS / 2)
CLOSED_FORM = 1e-10


def functions_of(family: AbstractFamily, target: Target, seed: int = 0) -> ZeroMean:
    """Return functions that should have mean zero: the features, or g with random parameters."""
    x, score = points(target, seed, POINTS)
    family = resolve(family, x)
    state = family.setup(x, score)
    if isinstance(family, AbstractLinearFamily):
        return lambda x, score: family.features(state, x, score)
    params = random_params(family, state, x, seed)
    return lambda x, score: family.evaluate(state, params, x, score)


def random_params(family: AbstractFamily, state, x, seed: int = 0):
    """Draw random nonzero parameters for three integrands."""
    start = family.init(state, x, 3, jax.random.key(seed))
    leaves, tree = jax.tree.flatten(start)
    keys = jax.random.split(jax.random.key(seed + 1), len(leaves))
    moved = [
        leaf + jax.random.normal(key, leaf.shape, leaf.dtype) / 2
        for leaf, key in zip(leaves, keys, strict=True)
    ]
    return jax.tree.unflatten(tree, moved)


def points(target: Target, seed: int, n: int) -> tuple[jax.Array, jax.Array]:
    """Return n draws of the target and their scores."""
    x = target.draw(np.random.default_rng(seed), n)
    return jnp.asarray(x), jnp.asarray(target.score(x))


def check_mean_on_grid(
    g: ZeroMean, score, nodes: np.ndarray, weights: np.ndarray, tolerance: float
) -> None:
    """Check E g = 0 by quadrature."""
    evaluate = jax.jit(jax.vmap(g))
    mean, square = 0.0, 0.0
    for start in range(0, len(nodes), 20_000):
        x, w = nodes[start : start + 20_000], weights[start : start + 20_000]
        values = np.asarray(evaluate(jnp.asarray(x), jnp.asarray(score(x))))
        mean, square = mean + w @ values, square + w @ values**2
    worst = np.max(np.abs(mean) / np.sqrt(np.where(square > 0, square, 1.0)))
    expect(worst <= tolerance, f"E g is {worst:.2g} root mean squares from zero by quadrature")


def check_mean_on_draws(g: ZeroMean, blocks: Iterable[tuple[np.ndarray, np.ndarray]]) -> None:
    """Check E g = 0 by a z-test on exact draws, at the false-alarm rate `FALSE_ALARMS`."""
    evaluate = jax.jit(jax.vmap(g))
    count, total, square = 0, 0.0, 0.0
    for x, score in blocks:
        values = np.asarray(evaluate(jnp.asarray(x), jnp.asarray(score)))
        count, total, square = count + len(x), total + values.sum(0), square + (values**2).sum(0)
    mean = total / count
    variance = square / count - mean**2
    variance = np.where(square > 0, variance, 1.0)  # a feature may be 0 everywhere
    worst = np.max(np.abs(mean / np.sqrt(variance / count)))
    expect(worst <= THRESHOLD, f"E g is {worst:.1f} standard errors from 0")


def check_stein_kernel(kernel: AbstractKernel, operator: AbstractOperator, x, score) -> jax.Array:
    """Check the closed form of k_0 against automatic differentiation on all pairs, including x = y."""
    gram = pairs(kernel.stein, operator, x, score)
    assert_close(gram, autodiff_pairs(kernel, operator, x, score))
    return gram


def autodiff_pairs(kernel, operator, x, score, y=None, score_y=None) -> jax.Array:
    """Compute the matrix of k_0 by automatic differentiation."""

    def stein(*arguments):
        return autodiff_stein(kernel, *arguments)

    return pairs(stein, operator, x, score, y, score_y)


def pairs(stein, operator, x, score, y=None, score_y=None) -> jax.Array:
    """Compute a Stein kernel's matrix between two sets of points, or of one set with itself."""
    y, score_y = (x, score) if y is None else (y, score_y)

    def row(a, score_a):
        return jax.vmap(lambda b, score_b: stein(operator, a, score_a, b, score_b))(y, score_y)

    return jax.jit(jax.vmap(row))(x, score)


def check_radial_derivatives(kernel: AbstractRadial, order: int, q: jax.Array) -> None:
    """Check that each derivative of the profile is the derivative of the one before."""

    def profile(q):
        return kernel.derivatives(q, 0)[0]

    for n in range(order + 1):
        assert_close(kernel.derivatives(q, order)[n], jax.vmap(profile)(q))
        profile = jax.grad(profile)


def check_features(family: AbstractLinearFamily, state, x, score) -> None:
    """Check that the features are the operator applied to the basis."""
    features = jax.jit(family.feature_matrix)(state, x, score)
    expected = jax.jit(lambda *points: default_features(family, state, *points))(x, score)
    assert_close(features, expected)


def default_features(family: AbstractLinearFamily, state, x, score) -> jax.Array:
    """Apply the operator to the basis, term by term for a sum of families."""
    if len(family.terms) > 1:
        terms = zip(family.terms, state, strict=True)
        columns = [default_features(*term, x, score) for term in terms]  # type: ignore[arg-type]
        return jnp.concatenate(columns, axis=1)

    def features(x, score):
        return family.operator(lambda z: family.basis(state, z), x, score)

    return jax.vmap(features)(x, score)


def check_positive(gram: jax.Array) -> None:
    """Check that a Gram matrix is symmetric and has no negative eigenvalue, up to rounding."""
    matrix = np.asarray(gram)
    largest = np.abs(matrix).max()
    expect(np.abs(matrix - matrix.T).max() <= 1e-12 * largest, "not symmetric")
    lowest = np.linalg.eigvalsh(matrix)[0]
    expect(lowest >= -1e-11 * largest * len(matrix), f"an eigenvalue of {lowest:.2g}")


def assert_close(actual, expected, tolerance: float = CLOSED_FORM) -> None:
    """Check equality, relative to the larger of each entry and the array's root mean square."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    expect(actual.shape == expected.shape, f"shapes {actual.shape} and {expected.shape}")
    size = np.maximum(np.abs(expected), np.sqrt(np.mean(expected**2)))
    worst = np.max(np.abs(actual - expected) / np.where(size > 0, size, 1.0), initial=0.0)
    expect(worst <= tolerance, f"off by {worst:.2g}")
