"""Training of any parameters by stochastic gradients."""

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._types import AnyArray, Key, PyTree, Values
from ..families import AbstractFamily, LinearSum, Sum
from ..operators import AbstractOperator
from ._base import Problem, Root, Solution, Training, average, evaluate, scaled

if TYPE_CHECKING:
    import optax

    Optimiser = optax.GradientTransformation
else:
    Optimiser = Any  # optax is imported when something is trained


def log_hyperparameters(family: AbstractFamily) -> PyTree:
    """The logarithms of every (positive) hyper-parameter; None stands for everything else.

    An operator's factor is no hyper-parameter: it may be negative, and the coefficients absorb it.
    """

    def is_operator(node: PyTree) -> bool:
        return isinstance(node, AbstractOperator)

    def spec(node: PyTree) -> PyTree:
        keep = not is_operator(node) and eqx.is_inexact_array(node)
        return jax.tree.map(lambda _: keep, node) if is_operator(node) else keep

    chosen = jax.tree.map(spec, family, is_leaf=is_operator)
    hyper = eqx.filter(family, chosen)
    return jax.tree.map(lambda leaf: jnp.log(jnp.asarray(leaf)), hyper)


def with_hyperparameters(family: AbstractFamily, log_hyper: PyTree) -> AbstractFamily:
    """The family with other hyper-parameters; itself when none are given."""
    if log_hyper is None:
        return family
    return eqx.combine(jax.tree.map(jnp.exp, log_hyper), family)


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
        batch = jax.random.randint(picked, (plan.batch_size,), 0, self.problem.x.shape[0])
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


# Adam is run at these rates side by side, and what does best on the held-out draws is taken. Short
# trials would not do: the noise that a high rate leaves in two epochs is not that of 25.
RATES = (1e-3, 3e-3, 1e-2)


@cache
def adam() -> Optimiser:
    """Adam with clipped steps, at a rate of 1."""
    import optax

    return optax.chain(optax.clip_by_global_norm(10.0), optax.adam(1.0, b2=0.99))


def train_family(
    problem: Problem, plan: Plan, hold_out: float, train_hyperparameters: bool, key: Key
) -> Solution:
    """Train on the first draws, watch the last ones, and keep the best iterate.

    Integrands are brought to mean 0 and variance 1 first. The note names the optimiser.
    """
    centre, spread = jnp.mean(problem.f, axis=0), jnp.std(problem.f, axis=0)
    spread = jnp.where(spread > 0, spread, 1.0)
    family = problem.family if len(problem.family.terms) == 1 else Sum(problem.family.terms)
    unit = replace(problem, family=family, f=(problem.f - centre) / spread)
    n = problem.x.shape[0]
    cut = n - max(1, round(hold_out * n))
    fitted, watched = unit.take(np.arange(cut)), unit.take(np.arange(cut, n))
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
    return Solution(family, state, params, intercept, how, history, training)


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
