"""What is left of every task's integrands by fits that have not seen the draws."""

from typing import NamedTuple, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular

from .._types import AnyArray, Points, Values
from ..families import AbstractLinearFamily
from ..kernels import resolve
from ..solvers import Folds
from ..solvers._blocks import blocks_of
from ._coupling import AbstractRelation, Coupling, Grams, coupling_of
from ._likelihood import learn, system
from ._tasks import Part, Tasks, parts_of

PARTS = 4  # the relation is learned so often, each time without a part of the draws


class Trial(NamedTuple):
    """What one way to fit leaves, on all rows."""

    rest: np.ndarray  # f - g, (n, k)
    intercepts: list[np.ndarray]  # of each task's fits, (fold, k)
    couplings: list[Coupling]  # one for each part


def terms_of(family: AbstractLinearFamily, x: Points) -> tuple[AbstractLinearFamily, ...]:
    """The terms of a linear family, their hyper-parameters found."""
    return tuple(cast(AbstractLinearFamily, term) for term in resolve(family, x).terms)


def grams_of(
    terms: tuple[AbstractLinearFamily, ...], x: Points, score: Points, task: np.ndarray
) -> tuple[Grams, np.ndarray]:
    """The Stein kernel of every term on all pairs of rows, and the mean variance under each task.

    Each is divided by these, so that no task counts for more because its scores are larger.
    """
    made = [_gram(term, x, score) for term in terms]
    counts = np.bincount(task)
    sizes = np.array([np.bincount(task, np.diag(one)) / counts for one in made])
    root = np.sqrt(np.maximum(sizes, 1e-300))[:, task]
    return jnp.stack(made) / jnp.asarray(root[:, :, None] * root[:, None, :]), sizes


@eqx.filter_jit
def _gram(term: AbstractLinearFamily, x: Points, score: Points) -> jax.Array:
    return term.cross_gram(term.setup(x, score), x, score, x, score)


def cross_fit(
    tasks: Tasks, family: AbstractLinearFamily, relation: AbstractRelation, shared: bool
) -> Trial:
    """Learn the relation without some folds of every task, fit without each, and go there.

    Args:
        tasks: the draws and integrands.
        family: whose terms are mixed.
        relation: where learning starts, or one that is given.
        shared: whether coordinates are the same for all tasks.
    """
    task, f, folds = tasks.task, tasks.f, tasks.folds()
    x, score = tasks.points(shared)
    grams, _ = grams_of(terms_of(family, x), x, score, task)
    rest, couplings = np.empty_like(f), []
    intercepts = []
    for part in parts_of(folds, PARTS):
        coupling, one, moved = _without(part, grams, task, f, relation, tasks.number)
        rest[part.order[: part.held]] = one
        intercepts += list(moved)
        couplings.append(coupling)
    own = [np.array([c[t] for c in intercepts[: len(mine)]]) for t, mine in enumerate(folds)]
    return Trial(rest, own, couplings)


def _without(
    part: Part, grams: Grams, task: np.ndarray, f: Values, relation: AbstractRelation, count: int
) -> tuple[Coupling, np.ndarray, np.ndarray]:
    """A coupling learned without a part, f - g on it, and the intercepts, (fold, task, k)."""
    order, seen = part.order, slice(part.held, part.held + part.training)
    grams, own = grams[:, order][:, :, order], task[order]
    centre, scale = units(f[order[part.held :]], own[part.held :], count)
    scaled = jnp.asarray((f[order] - centre[own]) / scale[own])
    start = coupling_of(relation, len(grams))
    found = learn(start, grams[:, seen, seen], jnp.asarray(own[seen]), scaled[seen], count)
    rest, moved = left_out(found, grams, jnp.asarray(own), scaled, count, part.folds)
    own = own[: part.held]
    return found, np.asarray(rest) * scale[own] + centre[own], np.asarray(moved) * scale + centre


def units(f: Values, task: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The mean and the standard deviation of the integrands under each task, (task, k)."""
    each = [f[task == t] for t in range(count)]
    centre, scale = (np.array([op(one, axis=0) for one in each]) for op in (np.mean, np.std))
    return centre, np.where(scale > 0, scale, 1.0)


@eqx.filter_jit
def left_out(
    coupling: Coupling, grams: Grams, task: AnyArray, f: Values, count: int, folds: Folds
) -> tuple[jax.Array, jax.Array]:
    """f - g on each of some folds, fitted to all rows but its own: one factorisation for all.

    The intercepts of every task come second, (fold, task, k).
    """
    dual = system(coupling, grams, task, count)
    beta, alpha = dual.coefficients(f)
    rows = dual.root.inverse().T
    free = rows @ dual.basis
    tau = solve_triangular(dual.upper, free.T)  # a row for each task's intercept
    error = blocks_of(rows, free, tau[0], folds).solve(alpha)
    moved = jnp.stack([beta - tau[:, a:b] @ error[a:b] for a, b in folds])
    fold = np.repeat(np.arange(len(folds)), [b - a for a, b in folds])
    return error + moved[fold, task[: len(fold)]], moved
