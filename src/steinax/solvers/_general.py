"""Stochastic optimisation for families that are not linear, or whose kernels are trained too."""

from dataclasses import replace
from functools import cache
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._types import Key, PyTree, Values
from ..families import AbstractFamily, LinearSum, Sum
from ._base import Training
from ._hyperparameters import log_hyperparameters, with_hyperparameters
from ._optimiser import Optimiser
from ._problem import Problem, evaluate
from ._rows import Root, average, scaled
from ._training import Plan, Trainable, cosine, train

# Adam is run at these rates side by side, and what does best on the held-out draws is taken. Short
# trials would not do: the noise that a high rate leaves in two epochs is not that of 25.
RATES = (1e-3, 3e-3, 1e-2)


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
    training: Training
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
    begin, second = jax.random.split(key)
    hyper = log_hyperparameters(family) if train_hyperparameters else None
    state = family.setup(fitted.x, fitted.score)
    params = family.init(state, fitted.x, problem.f.shape[1], begin)
    start = Trainable(params, jnp.zeros_like(centre), hyper)
    if plan.optimiser is adam():
        best, history, training = _train_at_rates(fitted, watched, start, second, plan)
        how = f"Adam at a rate of {RATES[int(training.chosen)]:.2g}"
    else:
        best, history, losses = train(fitted, watched, start, jnp.ones(()), second, plan)
        training = Training(losses[None], None, jnp.zeros((), int))
        how = "the given optimiser"
    family = with_hyperparameters(family, best.log_hyper)
    state = family.setup(fitted.x, fitted.score)
    params = best.params
    if plan.optimiser is adam() and problem.objective.is_quadratic:  # the share is one of squares
        values = evaluate(family, state, params, watched.x, watched.score)
        spread = spread * _share_to_keep(watched.f, values, watched.root)
    params = family.rescale(params, spread)
    rest = problem.f - evaluate(family, state, params, problem.x, problem.score)
    if isinstance(problem.family, LinearSum):
        params, family = jnp.concatenate(params), LinearSum(family.terms)  # type: ignore[arg-type]
    intercept = average(rest, problem.root)
    return Trained(family, state, params, intercept, history, training, how)


@eqx.filter_jit
def _train_at_rates(
    fitted: Problem, watched: Problem, start: Trainable, key: Key, plan: Plan
) -> tuple[Trainable, jax.Array, Training]:
    """The best iterate of the rate that does best on the held-out draws, its history, all trials."""
    rates = jnp.asarray(RATES)
    found, history, losses = jax.vmap(lambda rate: train(fitted, watched, start, rate, key, plan))(
        rates
    )
    winner = jnp.argmin(history[:, -1])
    best = jax.tree.map(lambda leaf: leaf[winner], found)
    falling = rates[:, None] * cosine(jnp.arange(plan.epochs) / plan.epochs)
    return best, history[winner], Training(losses, falling, winner)


@jax.jit
def _share_to_keep(f: Values, g: Values, root: Root) -> jax.Array:
    r"""How much of each control variate the held-out draws bear out, between 0 and 1: (k,).

    The slope $s$ of f on g there, less $4 e^2 / s$ with $e$ its standard error (the non-negative
    garrote): one where g is good, and zero where g may be noise, which would add variance.
    """
    f, g = (scaled(one - average(one, root), root) for one in (f, g))
    square = jnp.sum(g**2, axis=0)
    square = jnp.where(square > 0, square, 1.0)
    slope = jnp.sum(f * g, axis=0) / square
    error = jnp.sum((f - slope * g) ** 2, axis=0) / max(f.shape[0] - 2, 1) / square
    kept = slope - 4 * error / jnp.where(slope > 0, slope, 1.0)
    return jnp.where(slope > 0, jnp.clip(kept, 0.0, 1.0), 0.0)
