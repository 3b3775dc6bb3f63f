"""NUTS by BlackJAX and by NumPyro, compiled once for each density: warm-up, then draws after it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from numpyro.infer import NUTS

CHAINS = 4


class Draws(NamedTuple):
    """Draws and scores of all chains, (chain, draw, dim)."""

    x: Any
    score: Any


class Sampler(NamedTuple):
    """Two functions: starts and a seed to the state after the warm-up and its draws; that state to draws."""

    warm_up: Callable[[np.ndarray, int], tuple[Any, Draws]]
    draw: Callable[[Any], Draws]


def by_blackjax(fn: Callable[[Any], Any], warmup: int, draws: int) -> Sampler:
    """Window adaptation and NUTS of a log density, chains mapped."""

    @jax.jit
    @jax.vmap
    def warm(start: Any, key: Any) -> Any:
        adapted, info = blackjax.window_adaptation(blackjax.nuts, fn).run(key, start, warmup)
        return (*adapted, key), Draws(info.state.position, info.state.logdensity_grad)

    @jax.jit
    @jax.vmap
    def draw(last: Any) -> Draws:
        state, parameters, key = last
        nuts = blackjax.nuts(fn, **parameters)

        def step(state: Any, key: Any) -> Any:
            state, _ = nuts.step(key, state)
            return state, Draws(state.position, state.logdensity_grad)

        keys = jax.random.split(jax.random.fold_in(key, 1), draws)
        return jax.lax.scan(step, state, keys)[1]

    def warm_up(starts: np.ndarray, seed: int) -> Any:
        keys = jax.random.split(jax.random.key(seed), CHAINS)
        return jax.block_until_ready(warm(jnp.asarray(starts), keys))

    return Sampler(warm_up, lambda last: jax.block_until_ready(draw(last)))


def by_numpyro(fn: Callable[[Any], Any], warmup: int, draws: int) -> Sampler:
    """NUTS of a potential, minus the log density, chains vectorised: the loop of `MCMC`, compiled once."""
    kernel = NUTS(potential_fn=fn)

    def step(state: Any, _: Any) -> Any:
        state = kernel.sample(state, (), {})
        return state, Draws(state.z, -state.z_grad)

    def compiled(length: int) -> Callable[[Any], tuple[Any, Draws]]:
        def run(state: Any) -> tuple[Any, Draws]:
            last, found = jax.lax.scan(step, state, length=length)
            return last, Draws(*(jnp.swapaxes(each, 0, 1) for each in found))

        return jax.jit(run)

    warm, draw = compiled(warmup), compiled(draws)

    def first(starts: Any, seed: int) -> Any:
        keys = jax.random.split(jax.random.PRNGKey(seed), CHAINS)
        return kernel.init(keys, warmup, jnp.asarray(starts), (), {})

    def go_on(last: Any) -> Draws:
        if kernel._sample_fn is None:  # the state is from another kernel: this one has to be set up
            first(last.z, 0)
        return jax.block_until_ready(draw(last)[1])

    return Sampler(lambda starts, seed: jax.block_until_ready(warm(first(starts, seed))), go_on)


SAMPLERS = {"BlackJAX": by_blackjax, "NumPyro": by_numpyro}
