r"""Markov chains in their stationary law: AR(1) on the Gaussian, HMC and MALA on the regression.

AR(1) with coefficient $\rho$ is $z_{t+1} = \rho z_t + \sqrt{1 - \rho^2}\, \epsilon_t$ in whitened
coordinates, started from the target itself. BlackJAX's samplers start from the Gaussian of the
posterior's moments and 100 transitions of HMC, whose autocorrelation is below 0.3: what is left of
the start after them is far below rounding. Each replicate has keys of its own, so that it is the
same whichever others are made beside it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..problems import Problem, gaussian, logistic
from ..problems._gaussian import MEAN, ROOT

BURN_IN = 100
HMC_STEP, HMC_STEPS = 0.5, 3  # in units of the posterior's standard deviations: 1.5 in time
MALA_STEP = 0.04


class Chains(NamedTuple):
    """Draws and scores of several replicates, (replicate, chain, draw, dim)."""

    draws: np.ndarray
    scores: np.ndarray


type Sampler = Callable[[np.ndarray, int, int], Chains]


def ar1(coefficient: float) -> Sampler:
    """The sampler of autoregressive chains."""

    def sample(seeds: np.ndarray, chains: int, length: int) -> Chains:
        noise = np.stack(
            [np.random.default_rng(int(s)).normal(size=(chains, length, 3)) for s in seeds]
        )
        z = np.empty_like(noise)
        z[:, :, 0] = noise[:, :, 0]
        for t in range(1, length):
            z[:, :, t] = coefficient * z[:, :, t - 1]
            z[:, :, t] += np.sqrt(1 - coefficient**2) * noise[:, :, t]
        x = MEAN + z @ ROOT.T
        return Chains(x, gaussian().score(x))

    return sample


def hmc(seeds: np.ndarray, chains: int, length: int) -> Chains:
    """HMC with the posterior's covariance as metric."""
    return _blackjax("hmc", seeds, chains, length)


def mala(seeds: np.ndarray, chains: int, length: int) -> Chains:
    """The Metropolis-adjusted Langevin algorithm, without a metric."""
    return _blackjax("mala", seeds, chains, length)


def _blackjax(name: str, seeds: np.ndarray, chains: int, length: int) -> Chains:
    with jax.enable_x64(True):
        keys = jnp.stack([jax.random.key(int(seed)) for seed in seeds])
        keys = jax.vmap(lambda key: jax.random.split(key, chains))(keys)
        draws, scores = _compiled(name, length)(keys)
        return Chains(np.asarray(draws), np.asarray(scores))


_programs: dict[tuple[str, int], Callable] = {}


def _compiled(name: str, length: int) -> Callable:
    if (name, length) not in _programs:
        one = _chain(name, length)
        _programs[name, length] = jax.jit(jax.vmap(jax.vmap(one)))
    return _programs[name, length]


def _chain(name: str, length: int) -> Callable:
    import blackjax

    _, target = logistic()
    steady: Any = blackjax.hmc(
        target.log_density, HMC_STEP, jnp.asarray(target.covariance), HMC_STEPS
    )
    moving: Any = steady if name == "hmc" else blackjax.mala(target.log_density, MALA_STEP)
    root = jnp.asarray(np.linalg.cholesky(target.covariance))

    def run(key):
        starting, warming, sampling = jax.random.split(key, 3)
        x = jnp.asarray(target.mean) + root @ jax.random.normal(starting, (3,))
        warm, _ = jax.lax.scan(
            lambda state, k: (steady.step(k, state)[0], None),
            steady.init(x),
            jax.random.split(warming, BURN_IN),
        )

        def step(state, k):
            state, _ = moving.step(k, state)
            return state, (state.position, state.logdensity_grad)

        first = moving.init(warm.position)
        return jax.lax.scan(step, first, jax.random.split(sampling, length))[1]

    return run


SAMPLERS: dict[str, tuple[Callable[[], Problem], Sampler]] = {
    "AR(1) 0": (gaussian, ar1(0.0)),
    "AR(1) 0.9": (gaussian, ar1(0.9)),
    "AR(1) -0.5": (gaussian, ar1(-0.5)),
    "HMC": (lambda: logistic()[0], hmc),
    "MALA": (lambda: logistic()[0], mala),
}
