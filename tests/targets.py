"""Targets whose answers are known: exact draws, analytic scores, exact expectations.

Every target is made for any dimension (the banana for two or more), so that the same one serves
quadrature in one or two dimensions and exact draws in many.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import jax.numpy as jnp
import numpy as np
from scipy.special import digamma, polygamma

import steinax as sx

type Draws = np.ndarray
type Function = Callable  # of one draw (dim,), as `steinax.estimate` takes it


@dataclass(frozen=True)
class Target:
    """A density that is known in every way.

    Attributes:
        draw: n exact, independent draws, (n, dim).
        score: the gradient of the log density of (n, dim) points.
        log_density: of one point, up to a constant, made of jax.
        integrands: by name, a function of one draw and its exact expectation.
    """

    name: str
    dim: int
    draw: Callable[[np.random.Generator, int], Draws]
    score: Callable[[Draws], Draws]
    log_density: Function
    integrands: dict[str, tuple[Function, float]] = field(default_factory=dict)

    def sample(self, seed: int, chains: int = 4, length: int = 100, **options) -> sx.Sample:
        """Independent draws, as if from `chains` chains."""
        x = self.draw(np.random.default_rng(seed), chains * length)
        shape = (chains, length, self.dim)
        return sx.Sample(x.reshape(shape), self.score(x).reshape(shape), **options)

    @property
    def functions(self) -> dict[str, Function]:
        """The integrands alone, as `steinax.estimate` takes them."""
        return {name: f for name, (f, _) in self.integrands.items()}

    @property
    def expectations(self) -> np.ndarray:
        """The exact answers, in the order of `functions`."""
        return np.array([exact for _, exact in self.integrands.values()])


def standard_gaussian(dim: int) -> Target:
    """N(0, 1) in every coordinate."""
    return Target(
        "standard Gaussian",
        dim,
        lambda rng, n: rng.normal(size=(n, dim)),
        lambda x: -x,
        lambda x: -jnp.sum(x**2) / 2,
        {
            "first": (lambda x: x[0], 0.0),
            "square": (lambda x: x[0] ** 2, 1.0),
            "norm": (lambda x: jnp.sum(x**2), float(dim)),
            "cosine": (lambda x: jnp.cos(x[0]), np.exp(-0.5)),
        },
    )


def gaussian(mean: np.ndarray, root: np.ndarray, name: str = "Gaussian") -> Target:
    """The Gaussian of x = mean + root z with z standard normal.

    Draws and scores come straight from z, so that both are accurate to rounding however badly
    conditioned the root is. For that, `score` solves with the root and not with the covariance.
    """
    covariance = root @ root.T
    inverse = np.linalg.inv(root)

    def log_density(x):
        return -jnp.sum((inverse @ (x - mean)) ** 2) / 2

    return Target(
        name,
        len(mean),
        lambda rng, n: mean + rng.normal(size=(n, len(mean))) @ root.T,
        lambda x: -((x - mean) @ inverse.T) @ inverse,
        log_density,
        {
            "first": (lambda x: x[0], float(mean[0])),
            "square": (lambda x: x[-1] ** 2, float(covariance[-1, -1] + mean[-1] ** 2)),
            "product": (lambda x: x[0] * x[-1], float(covariance[0, -1] + mean[0] * mean[-1])),
        },
    )


def correlated_gaussian(dim: int, correlation: float = 0.7) -> Target:
    """Correlations that fall off along the coordinates, which have different scales and means."""
    places = np.arange(dim)
    scale = 1.0 + places / dim
    decay = correlation ** np.abs(places[:, None] - places)
    covariance = decay * np.outer(scale, scale)
    return gaussian(1.0 - places / dim, np.linalg.cholesky(covariance), "correlated Gaussian")


def banana(dim: int, bend: float = 0.5) -> Target:
    """A standard Gaussian whose second coordinate is moved by bend (x_1^2 - 1)."""
    if dim < 2:
        raise ValueError("a banana needs two dimensions")

    def straight(x):
        return x[..., 1] - bend * (x[..., 0] ** 2 - 1)

    def draw(rng, n):
        x = rng.normal(size=(n, dim))
        x[:, 1] += bend * (x[:, 0] ** 2 - 1)
        return x

    def score(x):
        result = -x.copy()
        result[:, 0] += 2 * bend * x[:, 0] * straight(x)
        result[:, 1] = -straight(x)
        return result

    def log_density(x):
        return -(jnp.sum(x**2) - x[1] ** 2 + straight(x) ** 2) / 2

    functions = {
        "first": (lambda x: x[0], 0.0),
        "second": (lambda x: x[1], 0.0),
        "square": (lambda x: x[1] ** 2, 1 + 2 * bend**2),
        "bend": (lambda x: x[0] ** 2 * x[1], 2 * bend),
        "cosine": (lambda x: jnp.cos(x[0]), np.exp(-0.5)),
    }
    return Target("banana", dim, draw, score, log_density, functions)


def skewed(dim: int, shape: float = 3.0) -> Target:
    """Independent logarithms of gamma variables: exponential tails to the left, none to the right."""
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
    """Two standard Gaussians, at -distance and +distance along the first axis, near enough to mix."""

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


MAKERS = (standard_gaussian, correlated_gaussian, banana, skewed, mixture)


def blocks(target: Target, seed: int, total: int, size: int) -> Iterator[tuple[Draws, Draws]]:
    """`total` exact draws and their scores, `size` at a time, so that memory stays small."""
    rng = np.random.default_rng(seed)
    for start in range(0, total, size):
        x = target.draw(rng, min(size, total - start))
        yield x, target.score(x)


def grid(target: Target, low: float, high: float, points: int) -> tuple[Draws, np.ndarray]:
    """A trapezoid rule for expectations: nodes (m, dim) and weights (m,) that sum to one."""
    import jax

    axis = np.linspace(low, high, points)
    nodes = np.stack(np.meshgrid(*[axis] * target.dim, indexing="ij"), -1).reshape(-1, target.dim)
    with jax.enable_x64(True):
        logs = np.asarray(jax.vmap(target.log_density)(jnp.asarray(nodes)))
    weights = np.exp(logs - logs.max())
    return nodes, weights / weights.sum()
