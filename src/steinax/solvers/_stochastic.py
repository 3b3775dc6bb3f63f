"""Stochastic optimisation: optax optimisers such as Adam, and Point-SAGA on whitened coefficients."""

from dataclasses import dataclass, replace
from functools import cache, partial
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Float

from .._types import AnyArray, Coefficients, Key, Points, PyTree, Values
from ..families import (
    AbstractFamily,
    AbstractLinearFamily,
    Landmarks,
    LinearSum,
    Sum,
    log_hyperparameters,
    with_hyperparameters,
)
from ._base import (
    AbstractSolver,
    Problem,
    Solution,
    Training,
    Weights,
    average,
    centred,
    evaluate,
    linear_solution,
    random_key,
    scaled,
)
from ._conjugate_gradient import Wide, nystrom_columns
from ._exact import Term, TermColumns, kernel_of, linear_terms, not_quadratic, term_columns

if TYPE_CHECKING:
    import optax

    Optimiser = optax.GradientTransformation
else:
    Optimiser = Any  # optax is imported when something is trained


class Plan(NamedTuple):
    """Settings that do not change during training, and are compiled in."""

    optimiser: Optimiser
    batch_size: int
    steps: int  # in an epoch
    epochs: int
    patience: int  # epochs without improvement on the held-out draws before training stops
    averaging: bool  # whether the second half's iterates are averaged
    rates: tuple[float, ...]  # of Adam, at the start; none if the optimiser has its own
    hold_out: float  # the fraction of draws that choose the best iterate; 0 for the last one
    record: bool  # whether the iterate of every epoch is kept


class Trainable(eqx.Module):
    """The optimised variables: parameters, intercepts, and logarithms of hyper-parameters."""

    params: PyTree
    intercept: Float[AnyArray, " k"]
    log_hyper: PyTree


class _Best(NamedTuple):
    """The best iterate so far, its held-out loss, and the number of epochs since it was found."""

    trainable: Trainable
    loss: jax.Array
    age: jax.Array
    latest: jax.Array  # the loss of the last epoch's own iterate


@dataclass(frozen=True, eq=False)  # hashed by identity: jax hashes the functions that it scans
class _Loop:
    """The training loop: one step, and one epoch of steps, as functions for `jax.lax.scan`."""

    problem: Problem
    held_out: Problem
    rate: jax.Array
    plan: Plan

    def step(self, carry: tuple, at: tuple[jax.Array, jax.Array]) -> tuple[tuple, None]:
        """Update on a batch the iterate, the optimiser's state, and the mean of the iterates."""
        plan, (trainable, memory, mean), (index, batch) = self.plan, carry, at
        total = plan.epochs * plan.steps
        gradient = jax.grad(loss)(trainable, self.problem, self.problem, batch)
        updates, memory = plan.optimiser.update(gradient, memory, trainable)
        decay = cosine(index / total) if plan.rates else 1.0
        trainable = jax.tree.map(lambda p, u: p + self.rate * decay * u, trainable, updates)
        if plan.averaging:
            weight = 1 / jnp.maximum(index - total // 2 + 1, 1)
            mean = jax.tree.map(lambda m, p: m + weight * (p - m), mean, trainable)
        return (trainable, memory, mean), None

    def epoch(self, carry: tuple, at: tuple[jax.Array, jax.Array]) -> tuple[tuple, tuple]:
        """Take as many steps as there are batches, then compute the loss on the held-out draws."""
        stopped = carry[1].age >= self.plan.patience
        carry = jax.lax.cond(stopped, lambda c, _: c, self._run, carry, at)
        iterate = self._iterate(carry[0]) if self.plan.record else None
        return carry, (carry[1].loss, jnp.where(stopped, jnp.nan, carry[1].latest), iterate)

    def _run(self, carry: tuple, at: tuple[jax.Array, jax.Array]) -> tuple:
        (inner, best), (number, batches) = carry, at
        steps = number * self.plan.steps + jnp.arange(self.plan.steps)
        inner, _ = jax.lax.scan(self.step, inner, (steps, batches))
        candidate = self._iterate(inner)
        held_out_loss = loss(candidate, self.problem, self.held_out, slice(None))
        better = held_out_loss < best.loss  # false for NaN
        if not self.plan.hold_out:
            better = jnp.ones((), bool)
        chosen = jax.tree.map(lambda a, b: jnp.where(better, a, b), candidate, best.trainable)
        age = jnp.where(better, 0, best.age + 1)
        return inner, _Best(chosen, jnp.where(better, held_out_loss, best.loss), age, held_out_loss)

    def _iterate(self, inner: tuple) -> Trainable:
        latest, _, mean = inner
        return mean if self.plan.averaging else latest


def train(
    problem: Problem, held_out: Problem, start: Trainable, rate: Any, batches: AnyArray, plan: Plan
) -> tuple[Trainable, jax.Array, jax.Array, Trainable | None]:
    """Train from `start`; return the best iterate on the held-out draws, losses and iterates by epoch.

    The batches are indices of draws, (epoch, step, batch). Of two losses by epoch, the first is that of the
    best iterate so far, and the second that of the epoch's own. Once the loss has not improved for
    `patience` epochs, the remaining epochs do nothing and the second is NaN.
    """
    first = loss(start, problem, held_out, slice(None))
    best = _Best(start, first, jnp.zeros((), int), first)
    mean = start if plan.averaging else None  # a copy in every step, of many coefficients
    inner = (start, plan.optimiser.init(cast(Any, start)), mean)
    loop = _Loop(problem, held_out, rate, plan)
    epochs = jnp.arange(plan.epochs), batches
    (_, best), losses = jax.lax.scan(loop.epoch, (inner, best), epochs)
    return best.trainable, *losses


def cosine(fraction: AnyArray) -> jax.Array:
    """The factor of the learning rate after a fraction of the training: from one to zero."""
    return 0.5 * (1 + jnp.cos(jnp.pi * fraction))


def loss(
    trainable: Trainable, problem: Problem, data: Problem, batch: AnyArray | slice
) -> jax.Array:
    """The penalised loss on a batch of `data`, for a family set up on the draws of `problem`."""
    family = with_hyperparameters(problem.family, trainable.log_hyper)
    state = family.setup(problem.x, problem.score)
    current = replace(data, family=family)
    return current.loss(state, trainable.params, trainable.intercept, batch)


# Adam is run at all these rates, and the best on the held-out draws is kept. Short runs would not do: the
# noise of a high rate after two epochs differs from that after 25.
RATES = (1e-3, 3e-3, 1e-2)
CLIPPED = 10.0  # the greatest norm of a gradient
WATCHED = 0.1  # of the draws, on which losses are computed if none are held out


@cache
def adam() -> Optimiser:
    """Adam with clipped gradients, at a learning rate of 1."""
    import optax

    def clip(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        # a factor, unlike the quotient of `optax.clip_by_global_norm`, is not stored as another gradient
        factor = jnp.minimum(1.0, CLIPPED / optax.tree.norm(updates))
        return jax.tree.map(lambda update: factor * update, updates), state

    clipping = optax.GradientTransformation(lambda params: optax.EmptyState(), clip)
    return optax.chain(clipping, optax.adam(1.0, b2=0.99))


def train_family(problem: Problem, plan: Plan, train_hyperparameters: bool, key: Key) -> Solution:
    """Train on the first draws, and keep the iterate with the least loss on the last draws.

    If none are held out, train on all, and keep the last iterate. Integrands are scaled to mean 0 and
    variance 1 first. The note names the optimiser.
    """
    x, score, f = map(np.asarray, (problem.x, problem.score, problem.f))
    centre, spread = f.mean(axis=0), f.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    family = problem.family if len(problem.family.terms) == 1 else Sum(problem.family.terms)
    unit = replace(problem, family=family, x=x, score=score, f=(f - centre) / spread)
    n = len(x)
    cut = n - max(1, round((plan.hold_out or WATCHED) * n))
    fitted, watched = (
        unit.take(np.arange(cut if plan.hold_out else n)),
        unit.take(np.arange(cut, n)),
    )
    start = _start(fitted, key, train_hyperparameters)
    shape = plan.epochs, plan.steps, plan.batch_size
    batches = _generator(key).integers(len(fitted.x), size=shape, dtype=np.int32)
    best, history, training, iterates = _train_at_rates(fitted, watched, start, batches, plan)
    family = with_hyperparameters(family, best.log_hyper)
    # shrinkage assumes squared errors
    shrinks = bool(plan.rates and plan.hold_out and problem.objective.is_quadratic)
    trained = best, iterates
    state, found, iterates = _finish(problem, fitted, watched, family, trained, spread, shrinks)
    training = replace(training, iterates=iterates)
    if isinstance(problem.family, LinearSum):
        family = LinearSum(family.terms)  # type: ignore[arg-type]
    return Solution(family, state, *found, _how(plan, training), history, training)


@eqx.filter_jit
def _start(fitted: Problem, key: Key, train_hyperparameters: bool) -> Trainable:
    """Draw the first parameters; intercepts are 0."""
    family, k = fitted.family, fitted.f.shape[1]
    params = family.init(family.setup(fitted.x, fitted.score), fitted.x, k, key)
    hyper = log_hyperparameters(family) if train_hyperparameters else None
    return Trainable(params, jnp.zeros(k, fitted.f.dtype), hyper)


@eqx.filter_jit
def _finish(
    problem: Problem,
    fitted: Problem,
    watched: Problem,
    family: AbstractFamily,
    trained: tuple[Trainable, Trainable | None],
    spread: AnyArray,
    shrinks: bool,
) -> tuple[PyTree, tuple[PyTree, jax.Array], PyTree]:
    """Compute the state, the parameters and intercept in the integrands' own units, and those by epoch."""
    best, iterates = trained
    state = family.setup(fitted.x, fitted.score)
    if shrinks:
        values = evaluate(family, state, best.params, watched.x, watched.score)
        spread = spread * _share_to_keep(watched.f, values, watched.weights)

    def finished(trainable: Trainable) -> tuple[PyTree, jax.Array]:
        params = family.rescale(trainable.params, spread)
        residual = problem.f - evaluate(family, state, params, problem.x, problem.score)
        whole = jnp.concatenate(params) if isinstance(problem.family, LinearSum) else params
        return whole, average(residual, problem.weights)

    return state, finished(best), iterates and jax.lax.map(finished, iterates)


def _how(plan: Plan, training: Training) -> str:
    """Name the optimiser; with several rates, also say whether a lower or a higher one may be better."""
    if not plan.rates:
        return "the given optimiser"
    rate = plan.rates[int(training.chosen)]
    ends = {min(plan.rates): "lowest", max(plan.rates): "highest"} if len(plan.rates) > 1 else {}
    end = f", the {ends[rate]} of {len(plan.rates)}" if rate in ends else ""
    return f"Adam at a rate of {rate:.2g}{end}"


@eqx.filter_jit
def _train_at_rates(
    fitted: Problem, watched: Problem, start: Trainable, batches: AnyArray, plan: Plan
) -> tuple[Trainable, jax.Array, Training, Trainable | None]:
    """Train at all rates; return the best iterate, its history, all losses, and the iterates of its rate."""
    rates = jnp.asarray(plan.rates or (1.0,))
    if len(rates) == 1:  # not mapped, so that a run that has stopped costs nothing
        found = train(fitted, watched, start, rates[0], batches, plan)
        found = jax.tree.map(lambda leaf: leaf[None], found)
    else:
        at_rate = partial(train, fitted, watched, start, batches=batches, plan=plan)
        found = jax.vmap(at_rate)(rates)
    _, history, losses, _ = found
    chosen = jnp.nanargmin(history[:, -1])
    best, history, _, iterates = jax.tree.map(lambda leaf: leaf[chosen], found)
    decayed = rates[:, None] * cosine(jnp.arange(plan.epochs) / plan.epochs)
    training = Training(losses, decayed if plan.rates else None, chosen)
    return best, history, training, iterates


def _share_to_keep(f: Values, g: Values, weights: Weights) -> jax.Array:
    r"""The factor in [0, 1] by which to shrink each control variate, from held-out draws: (k,).

    It is the slope $s$ of f on g there, less $4 e^2 / s$ with $e$ its standard error (the non-negative
    garrote): one if g is good, and zero if g may be noise, which would add variance.
    """
    f, g = (scaled(values - average(values, weights), weights) for values in (f, g))
    square = jnp.sum(g**2, axis=0)
    square = jnp.where(square > 0, square, 1.0)
    slope = jnp.sum(f * g, axis=0) / square
    error = jnp.sum((f - slope * g) ** 2, axis=0) / max(f.shape[0] - 2, 1) / square
    kept = slope - 4 * error / jnp.where(slope > 0, slope, 1.0)
    return jnp.where(slope > 0, jnp.clip(kept, 0.0, 1.0), 0.0)


LANDMARKS = 1000


class Whitened(eqx.Module):
    r"""A linear problem in coordinates in which its Hessian is the identity.

    The columns $A$ of all terms are centred and multiplied by $T$, $T^\top (A^\top A + P)\, T / m = 1$
    with $T^\top P T / m$ diagonal, so that $\frac1m \|f - A w\|^2 + \frac1m w^\top P w$ becomes
    $\frac1m \|f - Z v\|^2 + \sum_j \gamma_j v_j^2$ with $w = T v$.
    """

    z: AnyArray
    shrink: AnyArray  # gamma
    turn: AnyArray  # T
    tail: AnyArray  # the mean eigenvalue of the residual kernel
    narrow: tuple[TermColumns | None, ...]  # in the order of the terms; None for a wide one
    wide: Wide | None


def whiten(
    terms: tuple[Term, ...],
    wide: Wide | None,
    x: Points,
    score: Points,
    tail: AnyArray,
    weights: Weights = None,
) -> Whitened:
    """Whiten a linear problem, by the moments of the draws and the landmarks of the wide terms.

    Coordinates in which the Hessian is smaller than `tail` are whitened as if it were `tail`.
    """
    n, dim = x.shape
    narrow = tuple(
        None if is_wide(term, n, dim) else term_columns(term, x, score) for term in terms
    )
    blocks = [columns.matrix for columns in narrow if columns is not None]
    strengths = [
        jnp.full(columns.matrix.shape[1], 0.0 if term.is_free else 1.0, x.dtype)
        for term, columns in zip(terms, narrow, strict=True)
        if columns is not None
    ]
    if wide is not None:
        blocks.append(wide.matrix)
        strengths.append(jnp.ones(wide.matrix.shape[1], x.dtype))
    matrix = centred(scaled(jnp.concatenate(blocks, axis=1), weights), weights)
    penalty = jnp.diag(jnp.concatenate(strengths)) / n
    hessian = matrix.T @ matrix / n + penalty
    floor = 8 * jnp.finfo(hessian.dtype).eps * jnp.trace(hessian)
    factor = jnp.linalg.cholesky(hessian + floor * jnp.eye(len(hessian), dtype=hessian.dtype))
    inner = solve_triangular(factor, penalty, lower=True)
    inner = solve_triangular(factor, inner.T, lower=True)
    shrink, vectors = jnp.linalg.eigh((inner + inner.T) / 2)
    shrink = jnp.clip(shrink, 0.0, 1.0)
    # gamma is the penalty 1 / m relative to the Hessian, so this is the Hessian relative to its floor
    damp = jnp.minimum(1.0, 1 / (jnp.maximum(shrink, 1e-300) * (n * tail + 1)))
    turn = solve_triangular(factor, vectors, lower=True, trans=1) * jnp.sqrt(damp)
    return Whitened(matrix @ turn, shrink * damp, turn, tail, narrow, wide)


def is_wide(term: Term, n: int, dim: int) -> bool:
    """Whether a term is used through its kernel: it has one, and no fewer coefficients than landmarks."""
    return term.has_kernel and term.size(dim) >= min(n, LANDMARKS)


def residual_kernel(
    wide: Wide | None, x: Points, score: Points, weights: Weights = None
) -> jax.Array | None:
    """The centred kernel of the wide terms minus its Nyström approximation, (n, n); None if it is zero."""
    if wide is None or x.shape[0] <= LANDMARKS:
        return None
    residual = kernel_of(wide.terms, x, score, x, score) - wide.matrix @ wide.matrix.T
    residual = centred(scaled(scaled(residual, weights).T, weights).T, weights)
    return centred(residual.T, weights).T


def coefficients(
    white: Whitened,
    x: Points,
    score: Points,
    v: Coefficients,
    beta: Values | None,
    weights: Weights = None,
) -> jax.Array:
    """Map coefficients of the whitened coordinates and of the residual kernel to those of all terms."""
    w = white.turn @ v
    dual, wide = jnp.zeros((x.shape[0], w.shape[1]), w.dtype), white.wide
    if wide is not None:
        wide_coef = w[-wide.matrix.shape[1] :]
        if beta is not None:
            dual = scaled(centred(beta, weights), weights)
            wide_coef = wide_coef - wide.matrix.T @ dual
        dual = dual.at[wide.index].add(wide.back @ wide_coef)
    blocks, offset = [], 0
    wide_terms = iter(() if wide is None else wide.terms)
    for columns in white.narrow:
        if columns is None:
            blocks.append(next(wide_terms).from_dual(x, score, dual))
        else:
            width = columns.matrix.shape[1]
            blocks.append(columns.coefficients(w[offset : offset + width]))
            offset += width
    return jnp.concatenate(blocks)


def landmarks_of(terms: tuple[Term, ...], x: Points, score: Points) -> Wide | None:
    """The Nyström columns of the wide terms on up to 1,000 evenly spaced landmarks, or None without any."""
    n, dim = x.shape
    wide = tuple(term for term in terms if is_wide(term, n, dim))
    if not wide:
        return None
    return nystrom_columns(wide, x, score, Landmarks(LANDMARKS).choose(n))


# The step length times the number of batches. From 1.5 to 6 all test problems converge equally well; from 12
# some do not.
STEP = 5.0


class Batches(NamedTuple):
    """The draws, divided at random into batches of one size, the last one padded with zeros."""

    order: AnyArray  # of the draws
    z: jax.Array  # (batch, draw, r)
    f: jax.Array  # (batch, draw) or (batch, draw, k)
    visits: AnyArray  # the batch of each step
    step: float
    share: float  # the part of the step due to one draw of a batch


def deal(white: Whitened, f: AnyArray, shuffled: Any, size: int) -> Batches:
    """Divide the draws into batches, with the orders of `_shuffled`."""
    (order, visits), n = shuffled, f.shape[0]
    count = -(-n // size)
    gap = count * size - n

    def batched(rows: jax.Array) -> jax.Array:
        padded = jnp.pad(rows[order], [(0, gap)] + [(0, 0)] * (rows.ndim - 1))
        return padded.reshape(count, size, *rows.shape[1:])

    step = min(0.5, STEP / count)
    return Batches(order, batched(white.z), batched(f), visits, step, step * count / n)


def _shuffled(n: int, batch_size: int, epochs: int, key: Key) -> tuple[np.ndarray, np.ndarray]:
    """Return a random order of the draws, and of the visits to batches: every epoch visits all of them."""
    rng = _generator(key)
    count = -(-n // batch_size)
    visits = np.tile(np.arange(count, dtype=np.int32), (epochs, 1))
    return rng.permutation(n), rng.permuted(visits, axis=1).ravel()


def _generator(key: Key) -> np.random.Generator:
    """Return NumPy's generator for a key: random numbers made by jax take seconds to compile."""
    return np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel())


def point_saga(white: Whitened, f: AnyArray, batches: Batches) -> jax.Array:
    r"""Minimise $\frac1m \|f - Z v\|^2 + \sum_j \gamma_j v_j^2$ (Defazio, 2016).

    It starts from $Z^\top f / m$, which is the minimum itself if the whitening is exact. A step solves for
    the residuals of its batch implicitly, so it is stable at any length, and is corrected by the
    residuals that every batch had when last visited, so its noise vanishes.

    Args:
        white: the features $Z$, whose Hessian is the identity, and $\gamma$.
        f: the centred integrands, (n, k); or (n,) for a single one, which is faster.
        batches: the batches of draws.
    """
    n, size = f.shape[0], batches.z.shape[1]
    inner = jnp.einsum("nir,njr->nij", batches.z, batches.z)
    implicit = jnp.linalg.inv(jnp.eye(size, dtype=f.dtype) + batches.share * inner)
    keep = 1 - batches.step * _broadcast_like(white.shrink, f)
    first = white.z.T @ f / n
    mean = white.z.T @ (f - white.z @ first) / n  # of the stored gradients

    def step(carry: tuple, i: jax.Array) -> tuple[tuple, None]:
        v, mean, fitted = carry  # v is already shrunk and moved along the mean gradient
        z = batches.z[i]
        change = implicit[i] @ (fitted[i] - z @ v)
        pull = change @ z if f.ndim == 1 else z.T @ change
        mean = mean + pull / n
        v = (v + batches.share * pull) * keep + batches.step * mean
        return (v, mean, fitted.at[i].add(-change)), None

    fitted = batches.z @ first
    start = (first * keep + batches.step * mean, mean, fitted)
    return jax.lax.scan(step, start, batches.visits)[0][0]


def point_saga_with_kernel(
    white: Whitened, residual: AnyArray, f: AnyArray, batches: Batches
) -> tuple[jax.Array, jax.Array]:
    r"""Run Point-SAGA for $f \approx Z v + R \beta$, with a further penalty $\frac1m \beta^\top R \beta$.

    $R$ is the residual kernel, beyond the landmarks, and $\beta$ has one entry per draw. Its part
    of the Hessian is approximated by the mean eigenvalue of $R$ outside the landmarks' span.

    Returns:
        $v$, and $\beta$ in the order of the draws.
    """
    n = f.shape[0]
    count, size = batches.z.shape[:2]
    gap = count * size - n
    residual = jnp.pad(residual[batches.order][:, batches.order], ((0, gap), (0, gap)))
    rows = residual.reshape(count, size, count * size)
    blocks = jax.vmap(lambda r, i: jax.lax.dynamic_slice(r, (0, i * size), (size, size)))(
        rows, jnp.arange(count)
    )
    tail = 1 / (white.tail + 1 / n)
    inner = jnp.einsum("nir,njr->nij", batches.z, batches.z) + tail * blocks
    implicit = jnp.linalg.inv(jnp.eye(size, dtype=f.dtype) + batches.share * inner)
    keep = 1 - batches.step * _broadcast_like(white.shrink, f)

    def step(carry: tuple, i: jax.Array) -> tuple[tuple, None]:
        v, mean, stored, beta = carry
        z = batches.z[i]
        v = v * keep + batches.step * mean
        beta = beta + batches.step * tail / n * (stored - beta)
        flat = beta.reshape(count * size, *f.shape[1:])
        change = implicit[i] @ (batches.f[i] - z @ v - rows[i] @ flat - stored[i])
        pull = change @ z if f.ndim == 1 else z.T @ change
        beta = beta.at[i].add(batches.share * tail * change)
        return (v + batches.share * pull, mean + pull / n, stored.at[i].add(change), beta), None

    first = white.z.T @ f / n
    stored = batches.f - batches.z @ first
    mean = white.z.T @ (f - white.z @ first) / n
    start = (first, mean, stored, jnp.zeros_like(batches.f))
    v, _, _, beta = jax.lax.scan(step, start, batches.visits)[0]
    beta = beta.reshape(count * size, *f.shape[1:])[:n]
    return v, jnp.zeros_like(f).at[batches.order].set(beta)


def _broadcast_like(vector: AnyArray, f: AnyArray) -> AnyArray:
    return vector if f.ndim == 1 else vector[:, None]


def optax_descent(
    white: Whitened,
    f: AnyArray,
    batches: AnyArray,
    optimiser: Optimiser,
    averaging: bool,
) -> jax.Array:
    """Solve a whitened linear problem by any optax optimiser, with the batch of each step, (step, batch).

    Return the mean of the second half's iterates with `averaging`, else the last one.
    """
    steps = len(batches)

    def loss(v: jax.Array, batch: jax.Array) -> jax.Array:
        residual = f[batch] - white.z[batch] @ v
        return jnp.sum(jnp.mean(residual**2, axis=0)) + jnp.sum(white.shrink[:, None] * v**2)

    def step(carry: tuple, at: tuple[jax.Array, jax.Array]) -> tuple[tuple, None]:
        (v, memory, mean), (index, batch) = carry, at
        updates, memory = optimiser.update(jax.grad(loss)(v, batch), memory, v)
        v = v + jnp.asarray(updates)
        mean = mean + (v - mean) / jnp.maximum(index - steps // 2 + 1, 1)
        return (v, memory, mean), None

    start = jnp.zeros((white.z.shape[1], f.shape[1]), f.dtype)
    carry = (start, optimiser.init(start), start)
    (v, _, mean), _ = jax.lax.scan(step, carry, (jnp.arange(steps), batches))
    return mean if averaging else v


# draws up to which the residual kernel, an array of (n, n), is kept in memory
KERNEL_DRAWS = 8192
POINT_SAGA = ("defazio2016simple",)  # the citation key of Point-SAGA


class Stochastic(AbstractSolver):
    r"""Minibatch stochastic optimisation for any family, as in the paper.

    No learning rate needs to be set. A linear family is fitted by Point-SAGA, which has no rate and whose
    noise vanishes, in coordinates in which the Hessian is nearly the identity (whitened by the features'
    moments on up to 1,000 landmark draws). Any other family is trained by Adam at a few rates, each
    decayed to zero; the best iterate on held-out draws is kept and, for a quadratic loss, each control
    variate is shrunk as far as those draws suggest. The same applies to a linear family with a loss or
    penalty that is not a quadratic form. For Adam, integrands are scaled to mean 0 and variance 1.

    Args:
        optimiser: any optax optimiser; its own rate is used unchanged.
        batch_size: draws in a batch. Point-SAGA divides the draws into batches once and visits these
            in a new order every epoch; otherwise each step uses a new random batch.
        epochs: the number of passes over the draws.
        precondition: whether a linear family is whitened first; if not, the coefficients themselves
            are trained, as in the paper.
        averaging: whether the second half's iterates are averaged, if an optimiser is given.
        hold_out: the fraction of draws, at the end, held out to choose the best iterate and when to stop.
            With 0, all draws are trained on and the last iterate is kept, as in the paper.
        patience: epochs without improvement on those draws after which a given optimiser stops.
        train_hyperparameters: whether kernels' hyper-parameters are trained in the same run.
        rates: the learning rates that Adam is run at.
        record: whether the iterate of every epoch is kept, for `ControlVariate.after`.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> g = sx.fit(lambda x: x[0] ** 2, sx.Sample(x, -x), sx.Polynomial(2), solver=Stochastic())
    >>> bool(abs(g.intercept[0] - 1) < 1e-3)
    True
    """

    optimiser: Optimiser | None = eqx.field(static=True, default=None)
    batch_size: int = eqx.field(static=True, default=8)
    epochs: int = eqx.field(static=True, default=25)
    precondition: bool = eqx.field(static=True, default=True)
    averaging: bool = eqx.field(static=True, default=True)
    hold_out: float = eqx.field(static=True, default=0.1)
    patience: int = eqx.field(static=True, default=10)
    train_hyperparameters: bool = eqx.field(static=True, default=False)
    rates: tuple[float, ...] = eqx.field(static=True, default=RATES)
    record: bool = eqx.field(static=True, default=False)

    def __check_init__(self) -> None:
        if self.batch_size < 2 or self.epochs < 1:
            raise ValueError(
                f"Stochastic(batch_size={self.batch_size}, epochs={self.epochs}): use batches of 2 or "
                "more, and at least one epoch."
            )
        if not 0 <= self.hold_out < 1:
            raise ValueError(
                f"hold_out={self.hold_out}: give 0, or a fraction of the draws below 1."
            )
        if not self.rates or not min(self.rates) > 0:
            raise ValueError(f"rates={self.rates}: give one or several positive numbers.")
        if self.record and self.train_hyperparameters:
            raise ValueError(
                "record=True keeps coefficients only: leave out train_hyperparameters, or record."
            )

    def references_for(self, problem: Problem) -> tuple[str, ...]:
        return POINT_SAGA if self._whitens(problem) and self.optimiser is None else ()

    def _whitens(self, problem: Problem) -> bool:
        linear = isinstance(problem.family, AbstractLinearFamily) and not_quadratic(problem) is None
        return linear and self.precondition and not self.train_hyperparameters

    def solve(self, problem: Problem, key: Key | None = None) -> Solution:
        key = random_key(key)
        if self._whitens(problem):
            return self._solve_linear(problem, key)
        steps = ceil(problem.x.shape[0] / self.batch_size)
        is_adam = self.optimiser is None
        plan = Plan(
            adam() if self.optimiser is None else self.optimiser,
            self.batch_size,
            steps,
            self.epochs,
            self.epochs if is_adam else self.patience,  # a decaying rate improves late
            averaging=self.averaging and not is_adam,
            rates=self.rates if is_adam else (),
            hold_out=self.hold_out,
            record=self.record,
        )
        solution = train_family(problem, plan, self.train_hyperparameters, key)
        note = f"stochastic: {self.epochs} epochs of batches of {self.batch_size}, {solution.note}"
        return replace(solution, note=note)

    def _solve_linear(self, problem: Problem, key: Key) -> Solution:
        n, size = problem.x.shape[0], self.batch_size
        if self.optimiser is None:
            drawn = _shuffled(n, size, self.epochs, key)
        else:
            steps = self.epochs * ceil(n / size)
            drawn = _generator(key).integers(n, size=(steps, size), dtype=np.int32)
        settings = (self.optimiser, size, self.averaging)
        intercept, coef, states = _whiten_and_descend(problem, drawn, *settings)
        how = "Point-SAGA" if self.optimiser is None else "the given optimiser"
        note = f"stochastic: {self.epochs} epochs of batches of {self.batch_size}, whitened, {how}"
        return linear_solution(problem, states, coef, intercept, note)


@eqx.filter_jit
def _whiten_and_descend(
    problem: Problem,
    drawn: AnyArray | tuple[AnyArray, AnyArray],
    optimiser: Optimiser | None,
    batch_size: int,
    averaging: bool,
) -> tuple[jax.Array, jax.Array, tuple]:
    """Solve a linear problem in whitened coordinates; `drawn` are batches, or for Point-SAGA `_shuffled`."""
    terms, x, score, weights = linear_terms(problem), problem.x, problem.score, problem.weights
    f = scaled(problem.f - average(problem.f, weights), weights)
    is_single = f.shape[1] == 1 and optimiser is None
    f = f[:, 0] if is_single else f
    wide = landmarks_of(terms, x, score)
    keep = optimiser is None and len(x) <= KERNEL_DRAWS
    residual = residual_kernel(wide, x, score, weights) if keep else None
    # the mean eigenvalue of the residual kernel, outside the span of the landmarks
    outside = len(x) * (len(x) - LANDMARKS)
    tail = jnp.zeros(()) if residual is None else jnp.trace(residual) / outside
    white, beta = whiten(terms, wide, x, score, tail, weights), None
    if optimiser is not None:
        v = optax_descent(white, f, drawn, optimiser, averaging)
    elif residual is None:
        v = point_saga(white, f, deal(white, f, drawn, batch_size))
    else:
        batches = deal(white, f, drawn, batch_size)
        v, beta = point_saga_with_kernel(white, residual, f, batches)
        beta = beta[:, None] if is_single else beta
    coef = coefficients(white, x, score, v[:, None] if is_single else v, beta, weights)
    states = tuple(term.state for term in terms)
    state = states if len(terms) > 1 else states[0]
    values = evaluate(problem.family, state, coef, x, score)
    return average(problem.f - values, weights), coef, states
