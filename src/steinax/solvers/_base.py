"""The problem a solver is given, and what a solver is."""

import abc
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._progress import progress
from .._types import AnyArray, Key, Points, PyTree, Values
from ..families import AbstractFamily, AbstractLinearFamily
from ..objectives import AbstractObjective, AbstractPenalty
from ._regression import Folds, HeldOut, scaled

type Root = Float[AnyArray, " n"] | None


def root_of(weights: AnyArray | None) -> Root:
    r"""The roots of the weights $v_i$ that least squares gives to draws of importance weights $w_i$.

    $\sum_i w_i^2 (f_i - g_i - c)^2 / n^2$ is the variance of the self-normalised average of $f - g$ if its
    limit is $c$, so $v = w^2$, here of mean 1, and its root is $w$ but for a factor.
    """
    if weights is None:
        return None
    flat = np.asarray(weights, np.float64).ravel()
    return flat / np.sqrt(np.mean(flat**2))


def ones(x: AnyArray, root: Root) -> AnyArray:
    """The column of the intercept, one row for each of x: (n, 1)."""
    return scaled(jnp.ones((x.shape[0], 1), x.dtype), root)


def average(values: AnyArray, root: Root) -> AnyArray:
    """The constant that is nearest to each column, by weighted squares: (k,)."""
    if root is None:
        return jnp.mean(values, axis=0)
    return jnp.sum(scaled(values, root**2), axis=0) / jnp.sum(root**2)


def centred(rows: AnyArray, root: Root) -> AnyArray:
    """Scaled rows less what the intercept's column explains of them: (n, p)."""
    if root is None:
        return rows - jnp.mean(rows, axis=0)
    return rows - jnp.outer(root, root @ rows / jnp.sum(root**2))


class Problem(eqx.Module):
    """Draws, integrands, and what is to be minimised over which family.

    Hyper-parameters are numbers by now: no heuristic is left in the family.
    """

    family: AbstractFamily
    penalties: tuple[AbstractPenalty, ...]
    objective: AbstractObjective
    x: Points
    score: Points
    f: Values
    root: Root = None  # of the weights of the squares, where draws have weights

    def take(self, index: np.ndarray) -> "Problem":
        """The same problem on some of the draws."""
        x, score, f = self.x[index], self.score[index], self.f[index]
        root = None if self.root is None else self.root[index]
        return Problem(self.family, self.penalties, self.objective, x, score, f, root)

    def loss(
        self,
        state: PyTree,
        params: PyTree,
        intercept: Float[AnyArray, " k"],
        batch: AnyArray | slice,
    ) -> jax.Array:
        """The penalised loss on a batch of draws, summed over integrands."""
        x, score, f = self.x[batch], self.score[batch], self.f[batch]
        rest, penalty = f, jnp.zeros(())
        several = len(self.family.terms) > 1
        states, thetas = (state, params) if several else ((state,), (params,))
        for term, own, theta, one in zip(
            self.family.terms, states, thetas, self.penalties, strict=True
        ):
            values = _evaluate(term, own, theta, x, score)
            rest = rest - values
            penalty = penalty + jnp.sum(one(term, own, theta, values))
        if self.root is not None:
            rest = intercept + scaled(rest - intercept, self.root[batch])
        return jnp.sum(self.objective(rest, intercept)) + penalty


def _evaluate(
    family: AbstractFamily, state: PyTree, params: PyTree, x: Points, score: Points
) -> jax.Array:
    return jax.vmap(family.evaluate, in_axes=(None, None, 0, 0))(state, params, x, score)


def evaluate(
    family: AbstractFamily, state: PyTree, params: PyTree, x: Points, score: Points
) -> AnyArray:
    """The control variates on many points, (n, k)."""
    if not isinstance(family, AbstractLinearFamily):
        return _mapped(family, state, params, x, score)
    if len(family.terms) == 1:
        return family.apply(state, params, x, score)
    total, used = 0.0, 0
    for term, own in zip(family.terms, state, strict=True):
        size = term.size(own, x.shape[1])  # type: ignore[attr-defined]
        total = total + term.apply(own, params[used : used + size], x, score)  # type: ignore
        used += size
    return total


_mapped = eqx.filter_jit(_evaluate)


class Training(eqx.Module):
    """How stochastic training went, once for every learning rate that was tried.

    Attributes:
        losses: on held-out draws after each epoch, (trial, epoch); NaN once training had stopped.
        rates: at the start of each epoch, (trial, epoch); None where the optimiser had its own.
        chosen: the trial whose best iterate was kept, the one of least loss.

    >>> Training(np.array([[0.5, 0.4], [0.3, 0.6]]), None, np.array(1)).losses.shape
    (2, 2)
    """

    losses: Float[AnyArray, "trial epoch"]
    rates: Float[AnyArray, "trial epoch"] | None
    chosen: AnyArray


class Solution(eqx.Module):
    """The best control variate that a solver found.

    `family` is the problem's, with the hyper-parameters that were used; `state` and `params` are
    the family's; `history` is the held-out loss of the best iterate as training went
    on, and `training` all that is known of it, for solvers that have one.
    """

    family: AbstractFamily
    state: PyTree
    params: PyTree
    intercept: Float[AnyArray, " k"]
    note: str = eqx.field(static=True, default="")
    history: AnyArray | None = None
    training: Training | None = None

    def evaluate(self, x: Points, score: Points) -> AnyArray:
        """The control variates on many points, (n, k)."""
        return evaluate(self.family, self.state, self.params, x, score)


def linear_solution(
    problem: Problem, states: tuple, coef: AnyArray, intercept: AnyArray, note: str
) -> Solution:
    """The solution of a linear problem; a family of one term has that term's state for its own."""
    state = states if len(problem.family.terms) > 1 else states[0]
    return Solution(problem.family, state, coef, intercept, note)


def random_key(key: Key | None) -> Key:
    """The given key, or a fixed one: the same input gives the same output."""
    return jax.random.key(0) if key is None else key


class AbstractSolver(eqx.Module):
    """A way to solve a `Problem`.

    A problem has two views, a loss on a batch of draws and, for linear families, a linear system;
    a solver asks for the one that it needs.

    >>> from steinax import Exact
    >>> isinstance(Exact(), AbstractSolver)
    True
    """

    references: ClassVar[tuple[str, ...]] = ()

    @property
    def penalty(self) -> AbstractPenalty | None:
        """The penalty where none is given; None for the one that fits the number of draws."""
        return None

    @property
    def selects(self) -> bool:
        """Whether it sets coefficients to zero: its fit is then the best among those that are not."""
        return False

    def references_for(self, problem: Problem) -> tuple[str, ...]:
        """The keys of the papers behind how it solves this problem, for `citations`."""
        return self.references

    @abc.abstractmethod
    def solve(self, problem: Problem, key: Key | None = None) -> Solution:
        """Fit to all draws of the problem."""

    def crossfit(self, problem: Problem, folds: Folds, key: Key | None = None) -> HeldOut:
        """Fit to all draws but one fold's, for each fold in turn, and evaluate on that fold.

        Training sets are cut to one length, so that one compilation serves all folds.
        """
        n = problem.x.shape[0]
        length = n - max(stop - start for start, stop in folds)
        residuals, intercepts, note = [], [], ""
        with progress("fitting to each fold", total=len(folds)) as bar:
            keys = jax.random.split(random_key(key), len(folds))
            for (start, stop), one in zip(folds, keys, strict=True):
                train = np.r_[0:start, stop:n][:length]
                solution = self.solve(problem.take(train), one)
                held = problem.take(np.arange(start, stop))
                values = solution.evaluate(held.x, held.score)
                residuals.append(np.asarray(held.f - values))
                intercepts.append(np.asarray(solution.intercept))
                note = solution.note
                bar.advance()
        residual, intercepts = np.concatenate(residuals), np.stack(intercepts)
        return HeldOut(residual, note, intercepts, folds=folds)
