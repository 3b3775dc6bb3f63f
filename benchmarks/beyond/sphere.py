"""Draws on a sphere: polynomials and kernels of the sphere against plain averages.

Exact draws, 4 x 100; gains are ratios of mean squared errors to those of plain averages.
"""

import jax.numpy as jnp
import numpy as np
from scipy import special, stats

import steinax as sx

from ._space_runs import Problem, accepted, measured

SPHERE = sx.spaces.Sphere()
NODES = 80


def measure(only: str | None = None, rounds: int | None = None) -> list[dict]:
    """The gain of every integrand of every problem, by three families."""
    return measured((wide, narrow, posterior, rotations), only, rounds)


def wide() -> Problem:
    """Von Mises-Fisher with concentration 2."""
    return _von_mises_fisher(2.0)


def narrow() -> Problem:
    """Von Mises-Fisher with concentration 20."""
    return _von_mises_fisher(20.0)


def _von_mises_fisher(kappa: float) -> Problem:
    mean = np.array([1.0, 2.0, 2.0]) / 3

    def draw(rng, n):
        return stats.vonmises_fisher(mean, kappa).rvs(n, random_state=rng)

    resultant = 1 / np.tanh(kappa) - 1 / kappa
    nodes, weights = _rule()
    weights = weights * np.exp(kappa * (nodes @ mean - 1))
    truth = {
        "component": resultant * mean[0],
        "angle": float(weights @ np.arccos(nodes[:, 2]) / weights.sum()),
    }
    functions = {"component": lambda x: x[0], "angle": lambda x: jnp.arccos(x[2])}
    name = f"von Mises-Fisher({kappa:g})"
    return _problem(name, draw, lambda x: kappa * mean + 0 * x, truth, functions)


def posterior() -> Problem:
    """A direction from seven noisy ones, with a girdle prior: Fisher-Bingham."""
    data = np.random.default_rng(0).normal([0.8, 0.6, 0.0], 0.5, size=(7, 3))
    total = 2.0 * (data / np.linalg.norm(data, axis=1, keepdims=True)).sum(axis=0)
    girdle = np.diag([0.0, 0.0, -4.0])

    def log_density(x):
        return x @ total + np.einsum("...i,ij,...j->...", x, girdle, x)

    nodes, weights = _rule()
    log = log_density(nodes)
    weights = weights * np.exp(log - log.max())
    truth = {
        "component": float(weights @ nodes[:, 0] / weights.sum()),
        "square": float(weights @ nodes[:, 2] ** 2 / weights.sum()),
    }
    functions = {"component": lambda x: x[0], "square": lambda x: x[2] ** 2}
    draw = accepted(log_density, _uniform(3), log.max() + 0.05)
    return _problem(
        "posterior of a direction", draw, lambda x: total + 2 * x @ girdle, truth, functions
    )


def rotations() -> Problem:
    """Rotations as quaternions: a Bingham density on S^3, the same at x and -x."""
    form = np.diag([3.0, 1.0, 0.0, -1.0])
    t, w = special.roots_legendre(NODES)
    t, angle = (t + 1) / 2, np.arange(NODES) * 2 * np.pi / NODES  # Hopf's coordinates
    part, first, second = np.meshgrid(t, angle, angle, indexing="ij")
    inner, outer = np.sqrt(1 - part), np.sqrt(part)
    nodes = np.stack(
        [
            inner * np.cos(first),
            inner * np.sin(first),
            outer * np.cos(second),
            outer * np.sin(second),
        ],
        axis=-1,
    ).reshape(-1, 4)
    weights = np.repeat(w, NODES**2) * np.exp(np.sum(nodes**2 @ form, axis=-1))
    truth = {
        "square": float(weights @ nodes[:, 0] ** 2 / weights.sum()),
        "size": float(weights @ np.sqrt(0.1 + nodes[:, 0] ** 2) / weights.sum()),
    }
    functions = {"square": lambda x: x[0] ** 2, "size": lambda x: jnp.sqrt(0.1 + x[0] ** 2)}
    draw = accepted(lambda x: np.sum(x**2 @ form, axis=-1), _uniform(4), 3.0)
    return _problem("rotations", draw, lambda x: 2 * x @ form, truth, functions)


def _problem(name, draw, score, truth, functions) -> Problem:
    def by(family):
        def estimator(x):
            return sx.estimate(functions, sx.Sample(x, score(x), space=SPHERE), family)

        return estimator

    quadratic = sx.Polynomial(2, operator=SPHERE.potential_operator)
    kernel = sx.KernelTranslates(operator=SPHERE.operator)
    ways = {"the default": by(None), "quadratic": by(quadratic), "kernel": by(kernel)}
    return Problem(name, draw, truth, ways)


def _uniform(dim: int):
    def propose(rng, n):
        x = rng.normal(size=(n, dim))
        return x / np.linalg.norm(x, axis=1, keepdims=True)

    return propose


def _rule() -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre in height and the trapezium rule around, on S^2."""
    height, w = special.roots_legendre(NODES)
    angle = np.arange(2 * NODES) * np.pi / NODES
    radius = np.sqrt(1 - height**2)
    flat = [np.outer(radius, turn(angle)).ravel() for turn in (np.cos, np.sin)]
    nodes = np.stack([*flat, np.repeat(height, len(angle))], axis=1)
    return nodes, np.repeat(w, len(angle))
