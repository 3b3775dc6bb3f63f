"""First-order meta-learning: one compiled scan over batches of tasks."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import AnyArray, Key, PyTree
from ..families import Network
from ..solvers import evaluate

type Data = tuple[AnyArray, AnyArray, AnyArray]  # draws, scores and integrands of a task


class Plan(NamedTuple):
    """What is compiled in."""

    iterations: int
    batch: int
    inner_steps: int


def loss(params: PyTree, family: Network, data: Data) -> jax.Array:
    """The variance of f - g on a task's draws, summed over integrands."""
    x, score, f = data
    return jnp.sum(jnp.var(f - evaluate(family, None, params, x, score), axis=0))


@eqx.filter_jit
def adapted(
    family: Network, params: PyTree, data: Data, rate: AnyArray, steps: int
) -> tuple[PyTree, jax.Array]:
    """The parameters after some gradient steps on a task's draws, and the mean of f - g there."""
    found = _descend(params, family, data, rate, steps)
    x, score, f = data
    return found, jnp.mean(f - evaluate(family, None, found, x, score), axis=0)


def _descend(params: PyTree, family: Network, data: Data, rate: AnyArray, steps: int) -> PyTree:
    def step(now: PyTree, _: None) -> tuple[PyTree, None]:
        gradient = jax.grad(loss)(now, family, data)
        size = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(gradient)))
        brake = rate / jnp.maximum(size, 1.0)  # steep where a score is large
        return jax.tree.map(lambda p, g: p - brake * g, now, gradient), None

    return jax.lax.scan(step, params, None, length=steps)[0]


@eqx.filter_jit
def train(
    family: Network, start: PyTree, data: Data, rates: AnyArray, key: Key, plan: Plan
) -> PyTree:
    """Parameters from which the tasks of `data`, (task, n, ...), are few steps away.

    Args:
        family: the network.
        start: its parameters at first.
        data: of all tasks, each with as many draws.
        rates: of the outer steps, by Adam, and of the inner ones.
        key: for the choice of tasks and of halves.
        plan: how often.
    """
    import optax

    optimiser = optax.chain(optax.clip_by_global_norm(1.0), optax.scale_by_adam())
    count, n = data[2].shape[:2]

    def of_task(params: PyTree, task: AnyArray, order: AnyArray) -> PyTree:
        mine = tuple(one[task][order] for one in data)
        first, last = (
            tuple(one[part] for one in mine) for part in (slice(n // 2), slice(n // 2, n))
        )
        there = _descend(params, family, first, rates[1], plan.inner_steps)
        return jax.grad(loss)(there, family, last)

    def step(carry: tuple, index: AnyArray) -> tuple[tuple, None]:
        params, memory = carry
        pick, mix = jax.random.split(jax.random.fold_in(key, index))
        chosen = jax.random.randint(pick, (plan.batch,), 0, count)
        orders = jax.vmap(lambda k: jax.random.permutation(k, n))(jax.random.split(mix, plan.batch))
        each = jax.vmap(of_task, (None, 0, 0))(params, chosen, orders)
        mean = jax.tree.map(lambda g: jnp.mean(g, axis=0), each)
        updates, memory = optimiser.update(mean, memory)
        fall = rates[0] * (1 - index / plan.iterations)
        return (jax.tree.map(lambda p, u: p - fall * u, params, updates), memory), None

    first = (start, optimiser.init(start))
    return jax.lax.scan(step, first, jnp.arange(plan.iterations))[0][0]
