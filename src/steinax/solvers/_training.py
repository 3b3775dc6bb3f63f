"""Stochastic optimisation of any family: one compiled scan from the first step to the last."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float

from .._types import AnyArray, Key, PyTree
from ._hyperparameters import with_hyperparameters
from ._optimiser import Optimiser
from ._problem import Problem
from ._segments import draw_batch


class Plan(NamedTuple):
    """What does not change during training, and is compiled in."""

    optimiser: Optimiser
    batch_size: int
    steps: int  # in an epoch
    epochs: int
    patience: int  # epochs without a gain on the held-out draws before training stops
    decay: bool  # whether the rate falls to zero along a cosine
    averaging: bool  # whether the second half's iterates are averaged


class Trainable(eqx.Module):
    """What is optimised: the parameters, the intercepts, and hyper-parameters by their logarithms."""

    params: PyTree
    intercept: Float[AnyArray, " k"]
    log_hyper: PyTree


class _Best(NamedTuple):
    """The best iterate so far, its held-out loss, and for how many epochs it has stood."""

    trainable: Trainable
    loss: jax.Array
    age: jax.Array
    latest: jax.Array  # the loss of the last epoch's own iterate


@dataclass(frozen=True, eq=False)  # hashed by identity: jax hashes the functions that it scans
class _Loop:
    """One step, and one epoch of them, as functions of what is carried from each to the next."""

    problem: Problem
    held_out: Problem
    rate: jax.Array
    key: Key
    plan: Plan

    def step(self, carry: tuple, index: jax.Array) -> tuple[tuple, None]:
        """One batch, drawn anew; carried are the iterate, the optimiser's memory, and the mean."""
        plan, (trainable, memory, mean) = self.plan, carry
        total = plan.epochs * plan.steps
        picked = jax.random.fold_in(self.key, index)
        n, reach = self.problem.x.shape[0], self.problem.objective.reach
        batch = draw_batch(picked, n, plan.batch_size, reach)
        gradient = jax.grad(loss)(trainable, self.problem, self.problem, batch)
        updates, memory = plan.optimiser.update(gradient, memory, trainable)
        fall = cosine(index / total) if plan.decay else 1.0
        trainable = jax.tree.map(lambda p, u: p + self.rate * fall * u, trainable, updates)
        weight = 1 / jnp.maximum(index - total // 2 + 1, 1)
        mean = jax.tree.map(lambda m, p: m + weight * (p - m), mean, trainable)
        return (trainable, memory, mean if plan.averaging else trainable), None

    def epoch(self, carry: tuple, number: jax.Array) -> tuple[tuple, tuple]:
        """As many steps as there are batches, then a look at the held-out draws."""
        stopped = carry[1].age >= self.plan.patience
        carry = jax.lax.cond(stopped, lambda c, _: c, self._run, carry, number)
        return carry, (carry[1].loss, jnp.where(stopped, jnp.nan, carry[1].latest))

    def _run(self, carry: tuple, number: jax.Array) -> tuple:
        inner, best = carry
        steps = number * self.plan.steps + jnp.arange(self.plan.steps)
        inner, _ = jax.lax.scan(self.step, inner, steps)
        candidate = inner[2]
        found = loss(candidate, self.problem, self.held_out, slice(None))
        better = found < best.loss  # false for NaN
        pick = jax.tree.map(lambda a, b: jnp.where(better, a, b), candidate, best.trainable)
        age = jnp.where(better, 0, best.age + 1)
        return inner, _Best(pick, jnp.where(better, found, best.loss), age, found)


@eqx.filter_jit
def train(
    problem: Problem,
    held_out: Problem,
    start: Trainable,
    rate: jax.Array,
    key: Key,
    plan: Plan,
) -> tuple[Trainable, jax.Array, jax.Array]:
    """Run the plan from `start`: the best iterate on the held-out draws, and two losses by epoch.

    The first is that of the best iterate so far, the second that of each epoch's own. Once the loss
    has not improved for `patience` epochs the rest of the scan does nothing, and the second is NaN.
    """
    first = loss(start, problem, held_out, slice(None))
    best = _Best(start, first, jnp.zeros((), int), first)
    inner = (start, plan.optimiser.init(cast(Any, start)), start)
    loop = _Loop(problem, held_out, rate, key, plan)
    (_, best), losses = jax.lax.scan(loop.epoch, (inner, best), jnp.arange(plan.epochs))
    return best.trainable, *losses


def cosine(part: AnyArray) -> jax.Array:
    """What is left of the rate after a part of the training: from one to zero."""
    return 0.5 * (1 + jnp.cos(jnp.pi * part))


def loss(
    trainable: Trainable, problem: Problem, data: Problem, batch: AnyArray | slice
) -> jax.Array:
    """The penalised loss on a batch of `data`, for a family set up on the draws of `problem`."""
    family = with_hyperparameters(problem.family, trainable.log_hyper)
    state = family.setup(problem.x, problem.score)
    now = replace(data, family=family)
    return now.loss(state, trainable.params, trainable.intercept, batch)
