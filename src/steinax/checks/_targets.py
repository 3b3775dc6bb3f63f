"""Two targets whose answers are known, and rules that integrate against them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np

from .._precision import precision
from ..data import Sample

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

    def sample(self, seed: int, chains: int = 4, length: int = 100, **options) -> Sample:
        """Independent draws, as if from `chains` chains."""
        x = self.draw(np.random.default_rng(seed), chains * length)
        shape = (chains, length, self.dim)
        return Sample(x.reshape(shape), self.score(x).reshape(shape), **options)

    @property
    def functions(self) -> dict[str, Function]:
        """The integrands alone, as `steinax.estimate` takes them."""
        return {name: f for name, (f, _) in self.integrands.items()}

    @property
    def expectations(self) -> np.ndarray:
        """The exact answers, in the order of `functions`."""
        return np.array([exact for _, exact in self.integrands.values()])


def skewed(dim: int, shape: float = 3.0) -> Target:
    """Independent logarithms of gamma variables: exponential tails to the left, none to the right."""
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


def blocks(target: Target, seed: int, total: int, size: int) -> Iterator[tuple[Draws, Draws]]:
    """`total` exact draws and their scores, `size` at a time, so that memory stays small."""
    rng = np.random.default_rng(seed)
    for start in range(0, total, size):
        x = target.draw(rng, min(size, total - start))
        yield x, target.score(x)


def grid(target: Target, low: float, high: float, points: int) -> tuple[Draws, np.ndarray]:
    """A trapezoid rule for expectations: nodes (m, dim) and weights (m,) that sum to one."""
    axis = np.linspace(low, high, points)
    nodes = np.stack(np.meshgrid(*[axis] * target.dim, indexing="ij"), -1).reshape(-1, target.dim)
    with precision(np.float64):
        logs = np.asarray(jax.vmap(target.log_density)(jnp.asarray(nodes)))
    weights = np.exp(logs - logs.max())
    return nodes, weights / weights.sum()


def quadrature(dim: int, fine: bool) -> tuple[Target, Draws, np.ndarray]:
    """A non-Gaussian target in one or two dimensions and a rule for it, fine enough for kinks or not."""
    if dim == 1:
        target = skewed(1)
        return target, *grid(target, -17.0, 5.5, 20_001 if fine else 2_001)
    target = mixture(2)
    return target, *grid(target, -9.5, 9.5, 401 if fine else 151)
