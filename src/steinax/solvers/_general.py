"""Stochastic optimisation for families that are not linear, or whose kernels are trained too."""

from dataclasses import replace
from functools import cache
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._types import Key, PyTree
from ..families import AbstractFamily, LinearSum, Sum
from ._hyperparameters import log_hyperparameters, with_hyperparameters
from ._optimiser import Optimiser
from ._problem import Problem, evaluate
from ._training import Plan, Trainable, train

# Adam's rate is a traced number, so that one compilation serves every rate; seven are tried side
# by side, for two epochs each, and the one that does best on the held-out draws is taken.
RATES = np.geomspace(1e-4, 1e-1, 7)
TRIAL = 2


@cache
def adam() -> Optimiser:
    """Adam with clipped steps, at a rate of 1."""
    import optax

    return optax.chain(optax.clip_by_global_norm(10.0), optax.adam(1.0, b2=0.99))


class Trained(NamedTuple):
    """A family, its hyper-parameters trained or not, and what was found for it."""

    family: AbstractFamily
    state: PyTree
    params: PyTree
    intercept: jax.Array
    history: jax.Array
    how: str


def train_family(
    problem: Problem, plan: Plan, hold_out: float, train_hyperparameters: bool, key: Key
) -> Trained:
    """Train on the first draws, watch the last ones, and keep the best iterate.

    Integrands are brought to mean 0 and variance 1 first.
    """
    centre, spread = jnp.mean(problem.f, axis=0), jnp.std(problem.f, axis=0)
    spread = jnp.where(spread > 0, spread, 1.0)
    family = problem.family if len(problem.family.terms) == 1 else Sum(problem.family.terms)
    scaled = replace(problem, family=family, f=(problem.f - centre) / spread)
    n = problem.x.shape[0]
    cut = n - max(1, round(hold_out * n))
    fitted, watched = scaled.take(np.arange(cut)), scaled.take(np.arange(cut, n))
    begin, first, second = jax.random.split(key, 3)
    hyper = log_hyperparameters(family) if train_hyperparameters else None
    state = family.setup(fitted.x, fitted.score)
    params = family.init(state, fitted.x, problem.f.shape[1], begin)
    start = Trainable(params, jnp.zeros_like(centre), hyper)
    rate, how = jnp.ones(()), "the given optimiser"
    if plan.optimiser is adam():
        rate = _best_rate(fitted, watched, start, first, plan)
        how = f"Adam at a rate of {float(rate):.2g}"
    best, history = train(fitted, watched, start, rate, second, plan)
    family = with_hyperparameters(family, best.log_hyper)
    state = family.setup(fitted.x, fitted.score)
    params = family.rescale(best.params, spread)
    rest = problem.f - evaluate(family, state, params, problem.x, problem.score)
    if isinstance(problem.family, LinearSum):
        params, family = jnp.concatenate(params), LinearSum(family.terms)  # type: ignore[arg-type]
    return Trained(family, state, params, jnp.mean(rest, axis=0), history, how)


@eqx.filter_jit
def _best_rate(
    fitted: Problem, watched: Problem, start: Trainable, key: Key, plan: Plan
) -> jax.Array:
    plan = plan._replace(epochs=TRIAL)

    def final(rate: jax.Array) -> jax.Array:
        return train(fitted, watched, start, rate, key, plan)[1][-1]

    rates = jnp.asarray(RATES)
    return rates[jnp.argmin(jax.vmap(final)(rates))]
