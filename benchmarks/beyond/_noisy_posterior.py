r"""A logistic regression of 10,000 observations, its scores from minibatches, and draws of it.

The score of a minibatch $S$ of $B$ of $N$ observations, drawn with replacement, is
$\nabla \log p(x) + \frac{N}{B} \sum_{i \in S} \nabla \ell_i(x)$. The centred one takes
$\nabla \ell_i(x) - \nabla \ell_i(\hat x)$ instead, at the mode $\hat x$, where the score of all data is zero.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import steinax as sx

N, DIM, PRIOR = 10_000, 5, 2.0
LENGTH, CHAINS = 100, 4  # of one replicate
HMC_STEP, HMC_STEPS, BURN_IN = 0.6, 3, 50  # in posterior standard deviations
MINIBATCH = 100
STEP, THIN = 0.005, 200  # of SGLD, the first in units of the smallest variance
SGHMC_STEP, SGHMC_STEPS, SGHMC_THIN = 0.1, 10, 2  # in units of the smallest standard deviation
type Array = np.ndarray
type Score = Callable[[jax.Array, jax.Array], jax.Array]  # of a point, from some observations


class Posterior(NamedTuple):
    """The data, and the Gaussian at the mode."""

    design: jax.Array
    response: jax.Array
    mode: jax.Array
    covariance: jax.Array


@lru_cache(maxsize=1)
def posterior() -> Posterior:
    """Made of a fixed seed; the mode by Newton's method."""
    rng = np.random.default_rng(7)
    design = np.column_stack([np.ones(N), rng.normal(size=(N, DIM - 1))])
    odds = 1 / (1 + np.exp(-design @ np.array([0.3, 1.0, -0.7, 0.5, 0.2])))
    response = (rng.random(N) < odds).astype(float)
    x = np.zeros(DIM)
    for _ in range(30):
        p = 1 / (1 + np.exp(-design @ x))
        precision = (design.T * (p * (1 - p))) @ design + np.eye(DIM) / PRIOR**2
        x = x + np.linalg.solve(precision, design.T @ (response - p) - x / PRIOR**2)
    return Posterior(*map(jnp.asarray, (design, response, x, np.linalg.inv(precision))))


def full(x: jax.Array) -> jax.Array:
    """The score of all data at one point."""
    return _likelihood(x, jnp.arange(N)) - x / PRIOR**2


def plain(x: jax.Array, rows: jax.Array) -> jax.Array:
    """The score of some observations at one point."""
    return N / len(rows) * _likelihood(x, rows) - x / PRIOR**2


def centred(x: jax.Array, rows: jax.Array) -> jax.Array:
    """The same, less the score of these observations at the mode, where that of all is zero."""
    mode = posterior().mode
    return plain(x, rows) - plain(mode, rows)


def _likelihood(x: jax.Array, rows: jax.Array) -> jax.Array:
    data = posterior()
    design = data.design[rows]
    return (data.response[rows] - jax.nn.sigmoid(design @ x)) @ design


def at(draws: Array, score: Score, batch: int, seed: int) -> Array:
    """Scores at draws (chain, draw, dim), each from fresh observations."""
    keys = jax.random.split(jax.random.key(seed), draws.shape[0] * draws.shape[1])

    def one(pair: tuple) -> jax.Array:
        return score(pair[0], jax.random.randint(pair[1], (batch,), 0, N))

    found = _mapped(one)((jnp.asarray(draws).reshape(-1, DIM), keys))
    return np.asarray(found).reshape(draws.shape)


def exact(draws: Array) -> Array:
    """Scores of all data at draws (chain, draw, dim)."""
    return np.asarray(_mapped(full)(jnp.asarray(draws).reshape(-1, DIM))).reshape(draws.shape)


def _mapped(one: Callable) -> Callable:
    return jax.jit(lambda x: jax.lax.map(one, x, batch_size=50))


def hmc(chains: int, seed: int = 0) -> Array:
    """Draws (chain, draw, dim) by BlackJAX's HMC, which has a Metropolis step."""
    import blackjax

    data = posterior()

    def log_density(x: jax.Array) -> jax.Array:
        eta = data.design @ x
        return data.response @ eta - jnp.logaddexp(0.0, eta).sum() - (x @ x) / (2 * PRIOR**2)

    sampler: Any = blackjax.hmc(log_density, HMC_STEP, data.covariance, HMC_STEPS)
    return _run(sampler.init, lambda key, state: sampler.step(key, state)[0], chains, 1, seed)


def sgld(chains: int, seed: int = 0) -> Array:
    """Draws of BlackJAX's SGLD with plain minibatches, every so many-th."""
    import blackjax

    sampler: Any = blackjax.sgld(plain)
    return _run(lambda x: x, _move(sampler, _least() * STEP), chains, THIN, seed)


def sghmc(chains: int, seed: int = 0) -> Array:
    """Draws of BlackJAX's SGHMC with centred minibatches: plain ones heat it without end."""
    import blackjax

    sampler: Any = blackjax.sghmc(centred, SGHMC_STEPS)
    step = np.sqrt(_least()) * SGHMC_STEP
    return _run(lambda x: x, _move(sampler, step), chains, SGHMC_THIN, seed)


def _move(sampler: Any, step: float) -> Callable:
    def move(key: jax.Array, state: jax.Array) -> jax.Array:
        first, then = jax.random.split(key)
        rows = jax.random.randint(first, (MINIBATCH,), 0, N)
        return sampler.step(then, state, rows, step)

    return move


def _least() -> float:
    """The smallest variance of the posterior, in any direction."""
    return float(jnp.linalg.eigvalsh(posterior().covariance)[0])


def _run(init: Callable, move: Callable, chains: int, thin: int, seed: int) -> Array:
    """Chains from the Gaussian at the mode, every so many-th state after a burn-in."""
    data = posterior()

    def chain(key: jax.Array) -> jax.Array:
        first, then = jax.random.split(key)
        start = jax.random.multivariate_normal(first, data.mode, data.covariance)

        def kept(state: Any, key: jax.Array) -> tuple:
            state, _ = jax.lax.scan(
                lambda s, k: (move(k, s), None), state, jax.random.split(key, thin)
            )
            return state, getattr(state, "position", state)

        return jax.lax.scan(kept, init(start), jax.random.split(then, BURN_IN + LENGTH))[1]

    keys = jax.random.split(jax.random.key(seed), chains)
    return np.asarray(jax.jit(jax.vmap(chain))(keys))[:, BURN_IN:]


def mispaired(draws: Array, seed: int) -> tuple[Array, Array]:
    """One step of SGLD from each draw: where it went, and the minibatch score that moved it there."""
    step = STEP * _least()
    scores = at(draws, plain, MINIBATCH, seed)
    noise = np.random.default_rng(seed).normal(size=draws.shape)
    return draws + step * scores + np.sqrt(2 * step) * noise, scores


@lru_cache(maxsize=1)
def truth() -> tuple[Array, Array]:
    """Posterior means and standard deviations, from 4,000 draws with the scores of all data."""
    draws = hmc(40, seed=1)
    sample = sx.Sample(draws, exact(draws))
    wanted = {"x": "x", "square": (draws - np.asarray(posterior().mode)) ** 2}
    mean, square = np.reshape(sx.estimate(wanted, sample, sx.Polynomial(2)).value, (2, DIM))
    return mean, np.sqrt(square - (mean - np.asarray(posterior().mode)) ** 2)
