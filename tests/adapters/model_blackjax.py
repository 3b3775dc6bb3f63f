"""The shared model for BlackJAX: its log density with transforms written by hand, and a short run of it."""

from functools import cache
from typing import Any

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.scipy.special import gammaln

import steinax as sx
from adapters.shared_model import CONCENTRATION, COUNTS, ETA, Y
from steinax.adapters._blackjax import from_blackjax

START = {"L": np.zeros(3), "beta": np.zeros(3), "log_tau": np.zeros(()), "w": np.zeros(3)}


def simplex(z: Any) -> tuple[Any, Any]:
    """Stick breaking: each part takes a share of what is left; zero gives equal parts."""
    left = jnp.log(jnp.arange(len(z), 0, -1))
    share = jax.nn.sigmoid(z - left)
    rest = jnp.concatenate([jnp.ones(1), jnp.cumprod(1 - share)])
    w = jnp.append(share, 1.0) * rest
    return w, jnp.sum(jnp.log(share) + jnp.log1p(-share) + jnp.log(rest[:-1]))


def correlation_cholesky(z: Any) -> tuple[Any, Any]:
    """Partial correlations tanh(z), row by row: L[i, j] = p[i, j] sqrt(1 - sum of L[i, :j]^2)."""
    p = jnp.tanh(z)
    a = jnp.sqrt(1 - p[1] ** 2)
    b = jnp.sqrt(1 - p[2] ** 2)
    L = jnp.array([[1.0, 0.0, 0.0], [p[0], jnp.sqrt(1 - p[0] ** 2), 0.0], [p[1], p[2] * a, a * b]])
    return L, jnp.sum(jnp.log1p(-(p**2))) + jnp.log(a)


def constrain(z: Any) -> dict[str, Any]:
    """The parameters under the names that the model has for them."""
    return {
        "beta": z["beta"],
        "tau": jnp.exp(z["log_tau"]),
        "w": simplex(z["w"])[0],
        "L": correlation_cholesky(z["L"])[0],
    }


def log_density(z: Any) -> Any:
    """Of the unconstrained parameters, Jacobians included, up to a constant."""
    beta, log_tau = z["beta"], z["log_tau"]
    w, simplex_jacobian = simplex(z["w"])
    L, cholesky_jacobian = correlation_cholesky(z["L"])
    prior = -jnp.sum(beta**2) / 8 - log_tau**2 / 2  # of log tau: Jacobian and density cancel
    prior += jnp.sum((CONCENTRATION - 1) * jnp.log(w)) + simplex_jacobian
    order = jnp.arange(1, 3)
    prior += jnp.sum((3 - order - 1 + 2 * ETA - 2) * jnp.log(jnp.diagonal(L)[1:]))
    prior += cholesky_jacobian
    noise = jax.scipy.linalg.solve_triangular(L, (Y - beta).T, lower=True) / jnp.exp(log_tau)
    scale = 3 * log_tau + jnp.sum(jnp.log(jnp.diagonal(L)))
    likelihood = -jnp.sum(noise**2) / 2 - len(Y) * scale
    likelihood += jnp.sum(COUNTS * jnp.log(w)) - jnp.sum(gammaln(COUNTS + 1.0))
    return prior + likelihood


@cache
def _compiled() -> Any:
    _, unravel = ravel_pytree(START)  # made inside the scope, or it would insist on float32
    return jax.jit(lambda x: log_density(unravel(x)))


def flat_log_density(x: np.ndarray) -> float:
    """Of the columns side by side, in the order of `ravel_pytree`."""
    with jax.enable_x64(True):
        return float(_compiled()(jnp.asarray(x)))


def run(draws: int = 500, density: Any = log_density, double: bool = True) -> tuple[Any, Any]:
    """States and infos of four chains of NUTS after window adaptation: (chain, draw, ...)."""
    with jax.enable_x64(double):
        start = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), START)
        warm, sample = jax.random.split(jax.random.key(6))
        adaptation = blackjax.window_adaptation(blackjax.nuts, density)
        (first, parameters), _ = adaptation.run(warm, start, 500)
        step = blackjax.nuts(density, **parameters).step

        def one_chain(key: Any) -> Any:
            keys = jax.random.split(key, draws + 100)  # a hundred to forget the common start
            return jax.lax.scan(lambda state, key: _twice(step(key, state)), first, keys)[1]

        history = jax.jit(jax.vmap(one_chain))(jax.random.split(sample, 4))
        return jax.tree.map(lambda leaf: leaf[:, 100:], history)


def _twice(result: tuple[Any, Any]) -> tuple[Any, tuple[Any, Any]]:
    return result[0], result


@cache
def blackjax_sample() -> sx.Sample:
    """4 chains of 500 draws, with the scores that the sampler stored."""
    states, infos = run()
    return from_blackjax(states, infos, axes=("chain", "draw"), constrain=constrain)
