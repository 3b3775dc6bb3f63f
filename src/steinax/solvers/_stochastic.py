"""Stochastic optimisation: Adam and its like, and Point-SAGA, on whitened coefficients."""

from dataclasses import replace
from math import ceil
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular

from .._types import AnyArray, Coefficients, Key, Points, Values
from ..families import AbstractLinearFamily, Landmarks
from ._base import (
    AbstractSolver,
    Problem,
    Root,
    Solution,
    average,
    centred,
    evaluate,
    linear_solution,
    random_key,
    scaled,
)
from ._conjugate_gradient import Wide, nystrom_columns
from ._exact import Columns, Term, columns, kernel_of, linear_terms, not_quadratic
from ._training import Optimiser, Plan, adam, train_family

LANDMARKS = 1000


class Whitened(eqx.Module):
    r"""A linear problem in coordinates in which its Hessian is the identity.

    The columns $A$ of all terms are centred and turned by $T$, $T^\top (A^\top A + P)\, T / m = 1$
    with $T^\top P T / m$ diagonal, so that $\frac1m \|f - A w\|^2 + \frac1m w^\top P w$ becomes
    $\frac1m \|f - Z v\|^2 + \sum_j \gamma_j v_j^2$ with $w = T v$.
    """

    z: AnyArray
    shrink: AnyArray  # gamma
    turn: AnyArray  # T
    tail: AnyArray  # the mean eigenvalue of what the landmarks leave of the kernel
    narrow: tuple[Columns | None, ...]  # in the order of the terms; None for a wide one
    wide: Wide | None


def whiten(
    terms: tuple[Term, ...],
    wide: Wide | None,
    x: Points,
    score: Points,
    tail: AnyArray,
    root: Root = None,
) -> Whitened:
    """Find the coordinates, from the draws' moments and the landmarks of the wide terms.

    Coordinates in which the Hessian is smaller than `tail` are whitened as if it were that.
    """
    n, dim = x.shape
    narrow = tuple(None if is_wide(term, n, dim) else columns(term, x, score) for term in terms)
    parts = [part.matrix for part in narrow if part is not None]
    holding = [
        jnp.full(part.matrix.shape[1], 0.0 if term.is_free else 1.0, x.dtype)
        for term, part in zip(terms, narrow, strict=True)
        if part is not None
    ]
    if wide is not None:
        parts.append(wide.matrix)
        holding.append(jnp.ones(wide.matrix.shape[1], x.dtype))
    matrix = centred(scaled(jnp.concatenate(parts, axis=1), root), root)
    penalty = jnp.diag(jnp.concatenate(holding)) / n
    hessian = matrix.T @ matrix / n + penalty
    floor = 8 * jnp.finfo(hessian.dtype).eps * jnp.trace(hessian)
    factor = jnp.linalg.cholesky(hessian + floor * jnp.eye(len(hessian), dtype=hessian.dtype))
    inner = solve_triangular(factor, penalty, lower=True)
    inner = solve_triangular(factor, inner.T, lower=True)
    shrink, vectors = jnp.linalg.eigh((inner + inner.T) / 2)
    shrink = jnp.clip(shrink, 0.0, 1.0)
    # gamma is the penalty's share 1 / m of the Hessian, so this is the Hessian over its floor
    damp = jnp.minimum(1.0, 1 / (jnp.maximum(shrink, 1e-300) * (n * tail + 1)))
    turn = solve_triangular(factor, vectors, lower=True, trans=1) * jnp.sqrt(damp)
    return Whitened(matrix @ turn, shrink * damp, turn, tail, narrow, wide)


def is_wide(term: Term, n: int, dim: int) -> bool:
    """Whether a term is used through its kernel: it has one, and more coefficients than landmarks."""
    return term.has_kernel and term.size(dim) >= min(n, LANDMARKS)


def rest_of_kernel(
    wide: Wide | None, x: Points, score: Points, root: Root = None
) -> jax.Array | None:
    """What the landmarks leave of the wide terms' kernel, centred: (n, n); None if nothing."""
    if wide is None or x.shape[0] <= LANDMARKS:
        return None
    rest = kernel_of(wide.terms, x, score, x, score) - wide.matrix @ wide.matrix.T
    rest = centred(scaled(scaled(rest, root).T, root).T, root)
    return rest - jnp.mean(rest, axis=1)[:, None] if root is None else centred(rest.T, root).T


def coefficients(
    white: Whitened,
    x: Points,
    score: Points,
    v: Coefficients,
    beta: Values | None,
    root: Root = None,
) -> jax.Array:
    """The coefficients of all terms, from those of the coordinates and of the kernel's rest."""
    w = white.turn @ v
    dual, wide = jnp.zeros((x.shape[0], w.shape[1]), w.dtype), white.wide
    if wide is not None:
        own = w[-wide.matrix.shape[1] :]
        if beta is not None:
            dual = scaled(centred(beta, root), root)
            own = own - wide.matrix.T @ dual
        dual = dual.at[wide.index].add(wide.back @ own)
    done, used = [], 0
    others = iter(() if wide is None else wide.terms)
    for part in white.narrow:
        if part is None:
            done.append(next(others).from_dual(x, score, dual))
        else:
            width = part.matrix.shape[1]
            done.append(part.coefficients(w[used : used + width]))
            used += width
    return jnp.concatenate(done)


def landmarks_of(terms: tuple[Term, ...], x: Points, score: Points) -> Wide | None:
    """The wide terms, on up to 1,000 landmarks, evenly spaced; None if there are none."""
    n, dim = x.shape
    chosen = tuple(term for term in terms if is_wide(term, n, dim))
    if not chosen:
        return None
    return nystrom_columns(chosen, x, score, Landmarks(LANDMARKS).choose(n))


# The step is this many times one over the number of batches. From 1.5 to 6 all problems of
# the tests converge alike; from 12 some do not.
STEP = 5.0


class Batches(NamedTuple):
    """The draws, dealt at random into batches of one size, the last filled up with zeros."""

    order: jax.Array  # of the draws
    z: jax.Array  # (batch, draw, r)
    f: jax.Array  # (batch, draw) or (batch, draw, k)
    visits: jax.Array  # which batch each step takes: all of them, in a new order, every epoch
    step: AnyArray
    share: AnyArray  # of the step that falls to one draw of a batch


def deal(white: Whitened, f: AnyArray, key: Key, batch_size: int, epochs: int) -> Batches:
    """Deal the draws into batches and decide in which order these are visited."""
    n = f.shape[0]
    count = -(-n // batch_size)
    first, second = jax.random.split(key)
    order = jax.random.permutation(first, n)
    gap = count * batch_size - n

    def batched(rows: jax.Array) -> jax.Array:
        padded = jnp.pad(rows[order], [(0, gap)] + [(0, 0)] * (rows.ndim - 1))
        return padded.reshape(count, batch_size, *rows.shape[1:])

    keys = jax.random.split(second, epochs)
    visits = jax.vmap(lambda one: jax.random.permutation(one, count))(keys).ravel()
    step = jnp.minimum(0.5, STEP / count)
    return Batches(order, batched(white.z), batched(f), visits, step, step * count / n)


def point_saga(white: Whitened, f: AnyArray, batches: Batches) -> jax.Array:
    r"""Minimise $\frac1m \|f - Z v\|^2 + \sum_j \gamma_j v_j^2$ (Defazio, 2016).

    It starts from $Z^\top f / m$, which is the minimum itself where the coordinates are exact. A step
    solves for the residuals of its batch implicitly, so it is stable at any length, and is
    corrected by the residuals that every batch had when last visited, so its noise dies out.

    Args:
        white: the features $Z$, whose Hessian is the identity, and $\gamma$.
        f: the integrands, centred, (n, k); or (n,) for one, which is faster.
        batches: of the draws.
    """
    n, size = f.shape[0], batches.z.shape[1]
    inner = jnp.einsum("nir,njr->nij", batches.z, batches.z)
    implicit = jnp.linalg.inv(jnp.eye(size, dtype=f.dtype) + batches.share * inner)
    keep = 1 - batches.step * _like(white.shrink, f)
    first = white.z.T @ f / n
    mean = white.z.T @ (f - white.z @ first) / n  # of the stored gradients

    def step(carry: tuple, i: jax.Array) -> tuple[tuple, None]:
        v, mean, fitted = carry  # v has been shrunk and moved along the mean gradient already
        z = batches.z[i]
        change = implicit[i] @ (fitted[i] - z @ v)
        pull = change @ z if f.ndim == 1 else z.T @ change
        mean = mean + pull / n
        v = (v + batches.share * pull) * keep + batches.step * mean
        return (v, mean, fitted.at[i].add(-change)), None

    fitted = batches.z @ first
    start = (first * keep + batches.step * mean, mean, fitted)
    return jax.lax.scan(step, start, batches.visits)[0][0]


def point_saga_with_rest(
    white: Whitened, rest: AnyArray, f: AnyArray, batches: Batches
) -> tuple[jax.Array, jax.Array]:
    r"""The same for $f \approx Z v + R \beta$, with the penalty $\frac1m \beta^\top R \beta$ beside.

    $R$ is what the landmarks leave of the kernel, and $\beta$ has one entry per draw. Its share
    of the Hessian is taken to be the mean eigenvalue of $R$ beyond the landmarks' span.

    Returns:
        $v$, and $\beta$ in the order of the draws.
    """
    n = f.shape[0]
    count, size = batches.z.shape[:2]
    gap = count * size - n
    rest = jnp.pad(rest[batches.order][:, batches.order], ((0, gap), (0, gap)))
    rows = rest.reshape(count, size, count * size)
    blocks = jax.vmap(lambda r, i: jax.lax.dynamic_slice(r, (0, i * size), (size, size)))(
        rows, jnp.arange(count)
    )
    tail = 1 / (white.tail + 1 / n)
    inner = jnp.einsum("nir,njr->nij", batches.z, batches.z) + tail * blocks
    implicit = jnp.linalg.inv(jnp.eye(size, dtype=f.dtype) + batches.share * inner)
    keep = 1 - batches.step * _like(white.shrink, f)

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


def _like(vector: AnyArray, f: AnyArray) -> AnyArray:
    return vector if f.ndim == 1 else vector[:, None]


def optax_descent(
    white: Whitened,
    f: AnyArray,
    key: Key,
    optimiser: Optimiser,
    batch_size: int,
    epochs: int,
    averaging: bool,
) -> jax.Array:
    """A whitened linear problem by any optimiser of optax, batches re-drawn for each step.

    With `averaging` the mean of the second half's iterates comes back, else the last one.
    """
    n = f.shape[0]
    steps = epochs * -(-n // batch_size)

    def loss(v: jax.Array, batch: jax.Array) -> jax.Array:
        rest = f[batch] - white.z[batch] @ v
        return jnp.sum(jnp.mean(rest**2, axis=0)) + jnp.sum(white.shrink[:, None] * v**2)

    def step(carry: tuple, index: jax.Array) -> tuple[tuple, None]:
        v, memory, mean = carry
        batch = jax.random.randint(jax.random.fold_in(key, index), (batch_size,), 0, n)
        updates, memory = optimiser.update(jax.grad(loss)(v, batch), memory, v)
        v = v + jnp.asarray(updates)
        mean = mean + (v - mean) / jnp.maximum(index - steps // 2 + 1, 1)
        return (v, memory, mean), None

    start = jnp.zeros((white.z.shape[1], f.shape[1]), f.dtype)
    carry = (start, optimiser.init(start), start)
    (v, _, mean), _ = jax.lax.scan(step, carry, jnp.arange(steps))
    return mean if averaging else v


# draws up to which what the landmarks leave of a kernel is kept, an array of (n, n)
WITH_REST = 8192
POINT_SAGA = ("defazio2016simple",)  # the paper of Point-SAGA


class Stochastic(AbstractSolver):
    r"""Minibatch stochastic optimisation, for any family: the paper's way.

    With no setting at all it finds its own rate. For a linear family it works in coordinates in
    which the loss is nearly round (whitened by the features' moments on up to 1,000 landmark
    draws), by Point-SAGA, whose step needs no rate and whose noise dies out. For any other family
    it is Adam at a few rates side by side, each decayed to zero; the best iterate on held-out draws
    is kept, and for a quadratic loss as much of each control variate as those draws bear out. So it
    is too for a linear family with a loss or penalty that is not a quadratic form. Adam sees
    integrands of mean 0 and variance 1.

    Args:
        optimiser: any of optax; its own rate is used as it is.
        batch_size: draws in a batch. Point-SAGA deals the draws into batches once and visits these
            in a new order every epoch; otherwise each step draws a batch anew.
        epochs: how many times as many draws as there are will have been used.
        precondition: whether a linear family is whitened first; without, the coefficients
            themselves are trained, as in the paper.
        averaging: whether the second half's iterates are averaged, where an optimiser is given.
        hold_out: the share of draws, at the end, that training is stopped by.
        patience: epochs without a gain on those draws after which a given optimiser stops.
        train_hyperparameters: whether kernels' hyper-parameters are trained in the same run.

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

    def __check_init__(self) -> None:
        if self.batch_size < 2 or self.epochs < 1:
            raise ValueError(
                f"Stochastic(batch_size={self.batch_size}, epochs={self.epochs}): use batches of 2 or "
                "more, and at least one epoch."
            )
        if not 0 < self.hold_out < 1:
            raise ValueError(f"hold_out={self.hold_out}: it must lie between 0 and 1.")

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
        own = self.optimiser is None
        plan = Plan(
            adam() if self.optimiser is None else self.optimiser,
            self.batch_size,
            steps,
            self.epochs,
            self.epochs if own else self.patience,  # what a falling rate gains comes late
            decay=own,
            averaging=self.averaging and not own,
        )
        found = train_family(problem, plan, self.hold_out, self.train_hyperparameters, key)
        note = f"stochastic: {self.epochs} epochs of batches of {self.batch_size}, {found.note}"
        return replace(found, note=note)

    def _solve_linear(self, problem: Problem, key: Key) -> Solution:
        settings = (self.optimiser, self.batch_size, self.epochs, self.averaging)
        intercept, coef, states = _whiten_and_descend(problem, key, *settings)
        how = "Point-SAGA" if self.optimiser is None else "the given optimiser"
        note = f"stochastic: {self.epochs} epochs of batches of {self.batch_size}, whitened, {how}"
        return linear_solution(problem, states, coef, intercept, note)


@eqx.filter_jit
def _whiten_and_descend(
    problem: Problem,
    key: Key,
    optimiser: Optimiser | None,
    batch_size: int,
    epochs: int,
    averaging: bool,
) -> tuple[jax.Array, jax.Array, tuple]:
    terms, x, score, root = linear_terms(problem), problem.x, problem.score, problem.root
    f = scaled(problem.f - average(problem.f, root), root)
    one = f.shape[1] == 1 and optimiser is None
    f = f[:, 0] if one else f
    wide = landmarks_of(terms, x, score)
    keep = optimiser is None and len(x) <= WITH_REST
    rest = rest_of_kernel(wide, x, score, root) if keep else None
    # the mean eigenvalue of what is left, beyond the span of the landmarks
    tail = jnp.zeros(()) if rest is None else jnp.trace(rest) / (len(x) * (len(x) - LANDMARKS))
    white, beta = whiten(terms, wide, x, score, tail, root), None
    if optimiser is not None:
        v = optax_descent(white, f, key, optimiser, batch_size, epochs, averaging)
    elif rest is None:
        v = point_saga(white, f, deal(white, f, key, batch_size, epochs))
    else:
        batches = deal(white, f, key, batch_size, epochs)
        v, beta = point_saga_with_rest(white, rest, f, batches)
        beta = beta[:, None] if one else beta
    coef = coefficients(white, x, score, v[:, None] if one else v, beta, root)
    states = tuple(term.state for term in terms)
    state = states if len(problem.family.terms) > 1 else states[0]
    values = evaluate(problem.family, state, coef, x, score)
    return average(problem.f - values, root), coef, states
