r"""The posterior of a small logistic regression, integrated by a grid in three dimensions.

The trapezoid rule, in coordinates in which the posterior has mean 0 and covariance 1, converges
exponentially: on $61^3$ nodes in $[-13, 13]^3$ it is right to rounding.
"""

from dataclasses import dataclass
from functools import lru_cache

import jax.numpy as jnp
import numpy as np

from ._problem import Array, Integrand, Problem

PRIOR = 2.0  # the standard deviation of every coefficient
NODES, REACH = 61, 13.0


@dataclass(frozen=True)
class Logistic:
    """Data and prior of the regression, and the moments of its posterior."""

    design: Array  # (data, 3)
    response: Array  # (data,), 0 or 1
    mean: Array
    covariance: Array

    def log_density(self, x):
        """Of one point, up to a constant, made of jax."""
        return _log_density(jnp, jnp.asarray(self.design), jnp.asarray(self.response), x)

    def minibatch_score(self, x: Array, rows: Array) -> Array:
        """An unbiased score at points (m, 3), from other observations (m, batch) for each."""
        design = self.design[rows]
        odds = 1 / (1 + np.exp(-np.einsum("mbd,md->mb", design, x)))
        likelihood = np.einsum("mb,mbd->md", self.response[rows] - odds, design)
        return likelihood * len(self.response) / rows.shape[1] - x / PRIOR**2


@lru_cache(maxsize=1)
def logistic() -> tuple[Problem, Logistic]:
    """The problem, without `draw` (a sampler is wanted), and what samplers need."""
    design, response = _data()
    mode = _mode(design, response)
    mean, covariance = mode, np.linalg.inv(-_hessian(design, mode))
    nodes, weights = grid(design, response, mean, covariance)
    mean = weights @ nodes
    covariance = (nodes - mean).T @ ((nodes - mean) * weights[:, None])
    nodes, weights = grid(design, response, mean, covariance)
    named = tuple(Integrand(name, f, float(weights @ f(nodes))) for name, f in _functions().items())
    target = Logistic(design, response, mean, covariance)

    def refuse(rng: np.random.Generator, n: int) -> Array:
        raise NotImplementedError("there are no exact draws of this posterior: run a sampler.")

    return Problem("logistic", 3, refuse, lambda x: _score(design, response, x), named), target


def grid(
    design: Array, response: Array, mean: Array, covariance: Array, nodes: int = NODES
) -> tuple[Array, Array]:
    """Nodes (m, 3) and weights (m,) that sum to one."""
    axis = np.linspace(-REACH, REACH, nodes)
    z = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3)
    x = mean + z @ np.linalg.cholesky(covariance).T
    logs = np.concatenate(
        [_log_density(np, design, response, part) for part in np.array_split(x, 64)]
    )
    weights = np.exp(logs - logs.max())
    return x, weights / weights.sum()


def _functions() -> dict:
    new = np.array([1.0, 0.5, -1.0])
    return {
        "b0": lambda x: x[..., 0],
        "b1^2": lambda x: x[..., 1] ** 2,
        "probability": lambda x: 1 / (1 + np.exp(-x @ new)),
        "exp(b2/2)": lambda x: np.exp(x[..., 2] / 2),
    }


def _data() -> tuple[Array, Array]:
    rng = np.random.default_rng(4)
    design = np.column_stack([np.ones(40), rng.normal(size=(40, 2))])
    odds = 1 / (1 + np.exp(-design @ np.array([0.3, 1.0, -0.7])))
    return design, (rng.random(40) < odds).astype(float)


def _log_density(library, design, response, x):
    """At points (..., 3), with NumPy or jax.numpy as the library."""
    eta = x @ design.T
    likelihood = (response * eta - library.logaddexp(0.0, eta)).sum(-1)
    return likelihood - (x**2).sum(-1) / (2 * PRIOR**2)


def _score(design: Array, response: Array, x: Array) -> Array:
    return (response - 1 / (1 + np.exp(-x @ design.T))) @ design - x / PRIOR**2


def _hessian(design: Array, x: Array) -> Array:
    odds = 1 / (1 + np.exp(-design @ x))
    return -(design.T * (odds * (1 - odds))) @ design - np.eye(len(x)) / PRIOR**2


def _mode(design: Array, response: Array) -> Array:
    x = np.zeros(design.shape[1])
    for _ in range(50):
        x = x - np.linalg.solve(_hessian(design, x), _score(design, response, x))
    return x
