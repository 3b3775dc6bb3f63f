"""Targets on spaces other than R^d: exact quadrature or summation, exact draws, and right scores."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special, stats

import steinax as sx


@dataclass(frozen=True)
class SpaceTarget:
    """A density on a space, and a rule that integrates smooth functions times it."""

    name: str
    space: sx.data.AbstractSpace
    nodes: np.ndarray  # (n, dim)
    weights: np.ndarray  # (n,), of sum 1, the density in them
    score: Callable[[np.ndarray], np.ndarray]  # of (..., dim), as `Sample` takes it
    draw: Callable[[np.random.Generator, int], np.ndarray]  # exact and independent, (n, dim)
    tolerance: float = 1e-10  # of E g by the rule, in root mean squares of g

    def __str__(self) -> str:
        return self.name

    def sample(self, seed: int, chains: int = 4, length: int = 250) -> sx.Sample:
        """Independent draws and right scores."""
        x = self.draw(np.random.default_rng(seed), chains * length)
        x = x.reshape(chains, length, -1)
        return sx.Sample(x, self.score(x), space=self.space)

    def mean(self, f: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """E f by the rule, f mapping (n, dim) to (n, ...)."""
        return np.tensordot(self.weights, f(self.nodes), axes=(0, 0))


def _products(rules: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """The product of rules on each axis."""
    nodes = np.stack(np.meshgrid(*(x for x, _ in rules), indexing="ij"), axis=-1)
    weights = rules[0][1]
    for _, more in rules[1:]:
        weights = np.multiply.outer(weights, more)
    return nodes.reshape(-1, len(rules)), weights.ravel() / weights.sum()


def _legendre(low: float, high: float, count: int = 60) -> tuple[np.ndarray, np.ndarray]:
    x, w = special.roots_legendre(count)
    return low + (high - low) * (x + 1) / 2, w * (high - low) / 2


def beta(a: float, b: float) -> SpaceTarget:
    """Beta(a, b) by Gauss and Jacobi: exact for polynomials, singular scores and all."""
    t, w = special.roots_jacobi(60, b - 1, a - 1)

    def score(x):
        return (a - 1) / x - (b - 1) / (1 - x)

    nodes, weights = _products([((t + 1) / 2, w)])
    return SpaceTarget(
        f"beta({a}, {b})",
        sx.spaces.Box(0.0, 1.0),
        nodes,
        weights,
        score,
        lambda rng, n: rng.beta(a, b, size=(n, 1)),
    )


def exponential() -> SpaceTarget:
    """The exponential on [0, inf), by panels up to 45: Laguerre's nodes are too far apart for a kernel."""
    panels = [_legendre(low, low + 0.75, 20) for low in np.arange(0, 45, 0.75)]
    x, w = np.concatenate([x for x, _ in panels]), np.concatenate([w for _, w in panels])
    nodes, weights = _products([(x, w * np.exp(-x))])
    return SpaceTarget(
        "exponential",
        sx.spaces.Box(0.0, np.inf),
        nodes,
        weights,
        lambda x: -np.ones_like(x),
        lambda rng, n: rng.exponential(size=(n, 1)),
    )


def truncated_normal() -> SpaceTarget:
    """Two correlated normals cut to a box that is bounded above and below, and below alone."""
    lower, upper = np.array([-0.5, -1.0]), np.array([1.5, np.inf])
    inverse = np.linalg.inv([[1.0, 0.5], [0.5, 0.8]])
    (x, wx), (y, wy) = _legendre(-0.5, 1.5), _legendre(-1.0, 9.0, 120)
    nodes, weights = _products([(x, wx), (y, wy)])
    weights = weights * np.exp(-np.einsum("ni,ij,nj->n", nodes, inverse, nodes) / 2)

    def draw(rng, n):
        x = rng.multivariate_normal(np.zeros(2), np.linalg.inv(inverse), size=20 * n)
        return x[((x > lower) & (x < upper)).all(axis=1)][:n]

    return SpaceTarget(
        "truncated normal",
        sx.spaces.Box(lower, upper),
        nodes,
        weights / weights.sum(),
        lambda x: -x @ inverse,
        draw,
    )


def circle(kappa: float = 2.0) -> SpaceTarget:
    """Von Mises on the circle, with a second peak, by the trapezium rule."""
    angle = np.linspace(0, 2 * np.pi, 400, endpoint=False)
    nodes = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    weights = np.exp(kappa * nodes[:, 0] + nodes[:, 1] ** 2)

    def draw(rng, n):
        angle = rng.uniform(0, 2 * np.pi, size=40 * n)
        log = kappa * np.cos(angle) + np.sin(angle) ** 2
        angle = angle[np.log(rng.uniform(size=len(angle))) < log - 2.6][:n]  # log is 2.25 at most
        return np.stack([np.cos(angle), np.sin(angle)], axis=1)

    return SpaceTarget(
        "circle",
        sx.spaces.Sphere(),
        nodes,
        weights / weights.sum(),
        lambda x: np.stack([np.full(x.shape[:-1], kappa), 2 * x[..., 1]], axis=-1),
        draw,
    )


def sphere_rule(count: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre in height and the trapezium rule around, for the uniform on S^2."""
    (height, w), angle = (
        _legendre(-1, 1, count),
        np.linspace(0, 2 * np.pi, 2 * count, endpoint=False),
    )
    radius = np.sqrt(1 - height**2)
    nodes = np.stack(
        [
            np.outer(radius, np.cos(angle)),
            np.outer(radius, np.sin(angle)),
            np.repeat(height[:, None], len(angle), axis=1),
        ],
        axis=-1,
    )
    return nodes.reshape(-1, 3), np.repeat(w / 2, len(angle)) / len(angle)


def von_mises_fisher(kappa: float) -> SpaceTarget:
    """On S^2 about a mean direction that is no axis."""
    mean = np.array([1.0, 2.0, 2.0]) / 3
    nodes, weights = sphere_rule()
    weights = weights * np.exp(kappa * (nodes @ mean - 1))

    def draw(rng, n):
        if kappa == 0:
            x = rng.normal(size=(n, 3))
            return x / np.linalg.norm(x, axis=1, keepdims=True)
        return stats.vonmises_fisher(mean, kappa).rvs(n, random_state=rng)

    return SpaceTarget(
        f"von Mises-Fisher({kappa})",
        sx.spaces.Sphere(),
        nodes,
        weights / weights.sum(),
        lambda x: np.broadcast_to(kappa * mean, x.shape).copy(),
        draw,
    )


def torus() -> SpaceTarget:
    """Two coupled angles of different periods, by a rule for functions that jump where they begin."""
    lengths, lower = np.array([2 * np.pi, 1.0]), np.array([-np.pi, 0.0])
    turns = np.array([1.0, 2 * np.pi])

    def log_density(x):
        a, b = np.moveaxis(x * turns, -1, 0)
        return 1.5 * np.cos(a) + np.cos(b) + 0.8 * np.sin(a) * np.sin(b)

    def score(x):
        a, b = np.moveaxis(x * turns, -1, 0)
        along_a = -1.5 * np.sin(a) + 0.8 * np.cos(a) * np.sin(b)
        along_b = -np.sin(b) + 0.8 * np.sin(a) * np.cos(b)
        return np.stack([along_a, along_b], axis=-1) * turns

    def draw(rng, n):
        x = lower + lengths * rng.uniform(size=(40 * n, 2))
        return x[np.log(rng.uniform(size=len(x))) < log_density(x) - 3.3][:n]

    sides = zip(lower, lower + lengths, strict=True)
    nodes, weights = _products([_legendre(low, high) for low, high in sides])
    weights = weights * np.exp(log_density(nodes))
    space = sx.spaces.Torus(lengths, lower)
    return SpaceTarget("torus", space, nodes, weights / weights.sum(), score, draw)
