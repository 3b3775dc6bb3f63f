"""Targets whose answers are known: exact draws, analytic scores, exact expectations.

Every target is made for any dimension (the banana for two or more), so that the same one serves
quadrature in one or two dimensions and exact draws in many.
"""

import jax.numpy as jnp
import numpy as np

from steinax.checks._laws import Target, blocks, grid, mixture, skewed

__all__ = [
    "MAKERS",
    "Target",
    "banana",
    "blocks",
    "correlated_gaussian",
    "gaussian",
    "grid",
    "mixture",
    "skewed",
    "standard_gaussian",
]


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


MAKERS = (standard_gaussian, correlated_gaussian, banana, skewed, mixture)
