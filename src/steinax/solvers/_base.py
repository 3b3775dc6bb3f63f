import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._progress import progress
from .._types import AnyArray, Key, Points, PyTree, Values
from ..families import AbstractFamily
from ..objectives import AbstractPenalty
from ._problem import Folds, Problem, evaluate


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

    def evaluate(self, x: Points, score: Points) -> jax.Array:
        """The control variates on many points, (n, k)."""
        return evaluate(self.family, self.state, self.params, x, score)


def linear_solution(
    problem: Problem, states: tuple, coef: AnyArray, intercept: AnyArray, note: str
) -> Solution:
    """The solution of a linear problem; a family of one term has that term's state for its own."""
    state = states if len(problem.family.terms) > 1 else states[0]
    return Solution(problem.family, state, coef, intercept, note)


class HeldOut(eqx.Module):
    """f - g on every draw, with a g that was fitted to draws of other folds.

    `variance` is what the fit expects of the square of each draw's error, (n,), up to one factor
    for all draws: more for a draw far from the others. None where a solver does not know.
    `intercepts` are those of the fits that left out one fold each, (fold, k).
    """

    rest: Values
    note: str = eqx.field(static=True, default="")
    variance: AnyArray | None = None
    intercepts: AnyArray | None = None


class AbstractSolver(eqx.Module):
    """A way to solve a `Problem`.

    A problem has two views, a loss on a batch of draws and, for linear families, a linear system;
    a solver asks for the one that it needs.

    >>> from steinax import Exact
    >>> isinstance(Exact(), AbstractSolver)
    True
    """

    @property
    def penalty(self) -> AbstractPenalty | None:
        """The penalty where none is given; None for the one that fits the number of draws."""
        return None

    @property
    def selects(self) -> bool:
        """Whether it sets coefficients to zero: its fit is then the best among those that are not."""
        return False

    @abc.abstractmethod
    def solve(self, problem: Problem, key: Key) -> Solution:
        """Fit to all draws of the problem."""

    def crossfit(self, problem: Problem, folds: Folds, key: Key) -> HeldOut:
        """Fit to all draws but one fold's, for each fold in turn, and evaluate on that fold.

        Training sets are cut to one length, so that one compilation serves all folds.
        """
        n = problem.x.shape[0]
        length = n - max(stop - start for start, stop in folds)
        rest, intercepts, note = [], [], ""
        with progress("fitting to each fold", total=len(folds)) as bar:
            for (start, stop), one in zip(folds, jax.random.split(key, len(folds)), strict=True):
                train = np.r_[0:start, stop:n][:length]
                solution = self.solve(problem.take(train), one)
                held = problem.take(np.arange(start, stop))
                values = solution.evaluate(held.x, held.score)
                rest.append(held.f - values)
                intercepts.append(solution.intercept)
                note = solution.note
                bar.advance()
        return HeldOut(jnp.concatenate(rest), note, intercepts=jnp.stack(intercepts))
