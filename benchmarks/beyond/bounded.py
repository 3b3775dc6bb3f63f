"""Draws on a box: its own control variates against those after a transform to the whole line, the default.

Exact draws, 4 x 100; gains are ratios of mean squared errors to those of plain averages.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

import steinax as sx

from ._space_runs import Problem, accepted, measured, product_rule

UNIT, POSITIVE = sx.spaces.Box(0.0, 1.0), sx.spaces.Box(0.0, np.inf)
NODES = 100


def measure(only: str | None = None, rounds: int | None = None) -> list[dict]:
    """The gain of every integrand of every problem, by the box's family and by the choice."""
    return measured((beta, binomials, regression), only, rounds)


def beta() -> Problem:
    """Beta(0.7, 2): its density is infinite at 0, and not zero at all but at 1."""
    t, w = special.roots_jacobi(NODES, 1.0, -0.3)

    def score(x):
        return -0.3 / x - 1 / (1 - x)

    def draw(rng, n):
        return rng.beta(0.7, 2.0, size=(n, 1))

    functions = {"x": lambda x: x[0], "exp(x)": lambda x: jnp.exp(x[0])}
    return _problem("beta(0.7, 2)", UNIT, draw, score, functions, (t[:, None] + 1) / 2, w)


def binomials() -> Problem:
    """Two probabilities from rare events, and from events that need both: no conjugate prior."""
    y, n = np.array([0, 1]), np.array([6, 8])

    def log_density(p):
        both = p[..., 0] * p[..., 1]
        alone = (y * np.log(p) + (n - y) * np.log1p(-p)).sum(axis=-1)
        return alone + np.log(both) + 9 * np.log1p(-both)

    def score(p):
        both = (p[..., 0] * p[..., 1])[..., None]
        shared = 1 / both - 9 / (1 - both)
        return y / p - (n - y) / (1 - p) + shared * p[..., ::-1]

    x, w = special.roots_legendre(NODES)
    nodes, weights = product_rule(((x + 1) / 2, w), ((x + 1) / 2, w))
    log = log_density(nodes)
    draw = accepted(log_density, lambda rng, m: rng.uniform(size=(m, 2)), log.max() + 0.05)
    functions = {"p[0]": lambda p: p[0], "p[0] / (p[0] + p[1])": lambda p: p[0] / (p[0] + p[1])}
    return _problem("two probabilities", UNIT, draw, score, functions, nodes, weights * np.exp(log))


def regression() -> Problem:
    """Two coefficients that cannot be negative, one of them near zero: a normal, cut off."""
    mean, precision = np.array([0.1, 0.6]), np.array([[8.0, 4.0], [4.0, 6.0]])

    def log_density(x):
        return -np.einsum("...i,ij,...j->...", x - mean, precision, x - mean) / 2

    def draw(rng, n):
        x = rng.multivariate_normal(mean, np.linalg.inv(precision), size=8 * n)
        return x[(x > 0).all(axis=1)][:n]

    x, w = special.roots_legendre(NODES)
    nodes, weights = product_rule((2.5 * (x + 1), w), (2.5 * (x + 1), w))
    functions = {"x[0]": lambda x: x[0], "x[0] x[1]": lambda x: x[0] * x[1]}
    return _problem(
        "non-negative regression",
        POSITIVE,
        draw,
        lambda x: -(x - mean) @ precision,
        functions,
        nodes,
        weights * np.exp(log_density(nodes)),
    )


def _problem(
    name: str,
    space: sx.spaces.Box,
    draw: Callable,
    score: Callable,
    functions: dict[str, Callable],
    nodes: np.ndarray,
    weights: np.ndarray,
) -> Problem:
    """The two ways: with the family of the box, and with nothing given, in logits or logs."""

    def on_the_box(x):
        family = space.family(x.shape[0] * x.shape[1], x.shape[2])
        return sx.estimate(functions, sx.Sample(x, score(x), space=space), family)

    def transformed(x):
        return sx.estimate(functions, sx.Sample(x, score(x), space=space))

    with jax.enable_x64(True):
        values = {key: np.asarray(jax.vmap(f)(nodes)) for key, f in functions.items()}
    truth = {key: float(weights @ value / weights.sum()) for key, value in values.items()}
    return Problem(
        name, draw, truth, {"family of the box": on_the_box, "nothing given": transformed}
    )
