"""The posterior of a Gaussian process's two hyper-parameters, given the LIDAR data, and its moments.

The kernel is exp(2 phi_1) exp(-exp(2 phi_2) d^2 / 2), the variance of the noise 0.04. The paper has
independent Cauchy priors on phi; the published code and chains of Chen et al. (Stein points) have them on
x = (2 phi_1, 2 phi_2 - log 2), and so has this module, except where `prior="phi"` is asked for.
"""

from functools import cache
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from .._data import data_folder

if TYPE_CHECKING:
    from jax import Array

NOISE = 0.04
SHIFT = np.array([0.0, np.log(2.0)])  # x = 2 phi - SHIFT
INTEGRANDS = ("phi1", "phi2", "phi1 squared", "phi2 squared", "log likelihood", "likelihood")
GRID = (np.linspace(-5, 17, 160), np.linspace(-15, -6, 140))  # of x1 and of x2


@cache
def _data() -> tuple[np.ndarray, np.ndarray]:
    """The squared distances between ranges, and the log ratios."""
    distance, ratio = np.loadtxt(data_folder("lidar") / "lidar.txt", skiprows=1).T
    return np.subtract.outer(distance, distance) ** 2, ratio


def log_likelihood(phi: "Array") -> "Array":
    """The logarithm of p(r | l, phi); in double precision within `jax.enable_x64()`."""
    squares, ratio = _data()
    n = len(ratio)
    covariance = jnp.exp(2 * phi[0] - jnp.exp(2 * phi[1]) * squares / 2) + NOISE * jnp.eye(n)
    factor = jnp.linalg.cholesky(covariance)
    white = jax.scipy.linalg.solve_triangular(factor, ratio, lower=True)
    log_root = jnp.log(jnp.diag(factor)).sum()
    return -0.5 * white @ white - log_root - 0.5 * n * jnp.log(2 * jnp.pi)


def _log_posterior(phi: "Array") -> tuple["Array", "Array"]:
    """Up to a constant, with Cauchy priors on x, and the log likelihood beside it."""
    fit = log_likelihood(phi)
    return fit - jnp.log1p((2 * phi - SHIFT) ** 2).sum(), fit


def potential(phi: "Array") -> "Array":
    """Minus the log density of the posterior, up to a constant."""
    return -_log_posterior(phi)[0]


def score(phi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The gradients of the log density by automatic differentiation, and the log likelihoods.

    Args:
        phi: draws, (n, 2).
    """
    with jax.enable_x64():
        fit, gradient = _scored(jnp.asarray(phi))
        return np.asarray(gradient), np.asarray(fit)


@jax.jit
def _scored(phi: "Array") -> tuple["Array", "Array"]:
    both = jax.value_and_grad(_log_posterior, has_aux=True)

    def one(point: "Array") -> tuple["Array", "Array"]:
        (_, fit), gradient = both(point)
        return fit, gradient

    return jax.lax.map(one, phi)  # a batch is slower, on one core


def integrands(phi: np.ndarray, fit: np.ndarray, most: float) -> np.ndarray:
    """The six integrands at some points, the likelihood over its largest value: (..., 6)."""
    return np.concatenate([phi, phi**2, fit[..., None], np.exp(fit - most)[..., None]], axis=-1)


@cache
def _likelihood_grid() -> tuple[np.ndarray, np.ndarray]:
    """The points phi of the grid and the log likelihood there, by one eigendecomposition for each x2."""
    squares, ratio = _data()
    x1, x2 = GRID
    fit = np.empty((len(x1), len(x2)))
    for j, rate in enumerate(np.exp(x2)):
        values, vectors = np.linalg.eigh(np.exp(-rate * squares))
        variances = np.exp(x1)[:, None] * np.maximum(values, 0.0) + NOISE
        exponent = (vectors.T @ ratio) ** 2 / variances + np.log(2 * np.pi * variances)
        fit[:, j] = -0.5 * exponent.sum(axis=1)
    x = np.stack(np.meshgrid(x1, x2, indexing="ij"), axis=-1)
    return (x + SHIFT) / 2, fit


def largest() -> float:
    """The largest log likelihood of the grid."""
    return float(_likelihood_grid()[1].max())


def expectations(prior: str = "x") -> np.ndarray:
    """The exact expectations of `INTEGRANDS`, by the trapezoidal rule on `GRID`.

    Args:
        prior: "x" or "phi", where the Cauchy priors are.
    """
    phi, fit = _likelihood_grid()
    at = phi if prior == "phi" else 2 * phi - SHIFT
    logarithm = fit - np.log1p(at**2).sum(axis=-1)
    inner = [np.full(len(axis), axis[1] - axis[0]) for axis in GRID]
    for one in inner:
        one[[0, -1]] /= 2
    weight = np.exp(logarithm - logarithm.max()) * np.multiply.outer(*inner)
    values = integrands(phi, fit, largest())
    return np.einsum("ij,ijk->k", weight / weight.sum(), values)


def as_in_the_file(moments: np.ndarray) -> dict[str, float]:
    """The expectations of x, as the file of exact moments names them, from those of phi."""
    first, second = 2 * moments[:2] - SHIFT, moments[2:4]
    squares = 4 * second - 4 * SHIFT * moments[:2] + SHIFT**2
    return {
        "m1": float(first[0]),
        "m2": float(first[1]),
        "s1": float(squares[0]),
        "s2": float(squares[1]),
        "loglik": float(moments[4]),
        "log_mean_lik": float(np.log(moments[5]) + largest()),
    }
