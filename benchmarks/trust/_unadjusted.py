r"""Samplers without a Metropolis step, whose draws are biased, and their targets.

Unadjusted Langevin is $x' = x + h\, s(x) + \sqrt{2 h}\, \epsilon$; on a Gaussian with precision
$\lambda$ its variance is $1 / (\lambda (1 - h \lambda / 2))$. Stochastic-gradient Langevin takes the score
of a minibatch instead; the scores that are handed on are those of all data, at the draws. MCLMC
is BlackJAX's, unadjusted as well.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import digamma, polygamma

from ..problems import gaussian, logistic
from ..problems._gaussian import COVARIANCE, MEAN

type Array = np.ndarray
CHAINS, LENGTH, THIN, BURN_IN = 4, 250, 20, 2000
SHAPE = 3.0  # of the gamma variables whose logarithms are the skewed target
MINIBATCH = 10


class Target(NamedTuple):
    """A target and its first moments: squares are of standardised coordinates, so that each is 1."""

    score: Callable[[Array], Array]
    mean: Array
    scale: Array

    def squares(self, x: Array) -> dict[str, Array]:
        """The standardised square of every coordinate."""
        z = ((x - self.mean) / self.scale) ** 2
        return {f"square {i}": z[..., i] for i in range(z.shape[-1])}


def target(name: str) -> Target:
    """The target of this name."""
    if name == "Gaussian":
        return Target(gaussian().score, MEAN, np.sqrt(np.diag(COVARIANCE)))
    if name == "logistic":
        problem, posterior = logistic()
        return Target(problem.score, posterior.mean, np.sqrt(np.diag(posterior.covariance)))
    mean, scale = float(digamma(SHAPE)), float(np.sqrt(polygamma(1, SHAPE)))
    return Target(lambda x: SHAPE - np.exp(x), np.full(2, mean), np.full(2, scale))


def langevin(name: str, step: float, seed: int, minibatch: bool = False) -> Array:
    """Draws (chain, draw, dim) of one replicate: every twentieth state, after a burn-in."""
    rng, aim = np.random.default_rng(seed), target(name)
    x = aim.mean + aim.scale * rng.normal(size=(CHAINS, len(aim.mean)))
    kept = []
    for t in range(BURN_IN + LENGTH * THIN):
        gradient = _minibatch_score(x, rng) if minibatch else aim.score(x)
        x = x + step * gradient + np.sqrt(2 * step) * rng.normal(size=x.shape)
        if t >= BURN_IN and (t - BURN_IN) % THIN == 0:
            kept.append(x)
    return np.stack(kept, axis=1)


def _minibatch_score(x: Array, rng: np.random.Generator) -> Array:
    _, posterior = logistic()
    rows = np.stack([rng.choice(len(posterior.response), MINIBATCH, replace=False) for _ in x])
    return posterior.minibatch_score(x, rows)


def mclmc(step: float, seed: int) -> Array:
    """Microcanonical Langevin on the logistic regression, momentum lost over one posterior width."""
    import jax
    import jax.numpy as jnp

    with jax.enable_x64(True):
        _, posterior = logistic()
        scale = float(np.sqrt(np.diag(posterior.covariance)).mean())
        run = _mclmc_program()
        keys = jax.random.split(jax.random.key(seed), CHAINS)
        start = jnp.asarray(posterior.mean) + 0.3 * jnp.stack(
            [jax.random.normal(jax.random.fold_in(key, 0), (3,)) for key in keys]
        )
        states = np.asarray(run(keys, start, jnp.asarray(step), jnp.asarray(2 * scale)))
    return states[:, BURN_IN::THIN]


_programs: dict[str, Callable] = {}


def _mclmc_program() -> Callable:
    import blackjax
    import jax

    _, posterior = logistic()

    def one(key, start, step, length):
        sampler: Any = blackjax.mclmc(posterior.log_density, L=length, step_size=step)
        beginning, moving = jax.random.split(key)

        def move(state, k):
            state, _ = sampler.step(k, state)
            return state, state.position

        first = sampler.init(start, beginning)
        return jax.lax.scan(move, first, jax.random.split(moving, BURN_IN + LENGTH * THIN))[1]

    if "mclmc" not in _programs:
        _programs["mclmc"] = jax.jit(jax.vmap(one, in_axes=(0, 0, None, None)))
    return _programs["mclmc"]
