from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._types import AnyArray, Points, PyTree, Values
from ..families import AbstractFamily
from ..objectives import AbstractObjective, AbstractPenalty
from ._rows import Root, scaled
from ._segments import cut

# where each fold starts and stops among all draws
type Folds = tuple[tuple[int, int], ...]


class LeftOut(NamedTuple):
    """What leaving out each fold in turn gives."""

    rest: AnyArray  # f - g on every draw, g fitted to the other folds: (n, k)
    variance: AnyArray  # what the fit expects of its square, up to a factor: (n,)
    intercepts: AnyArray  # of the fits: (fold, k)

    def moved(self, centre: AnyArray) -> "LeftOut":
        """The same for integrands that are larger by a constant, (k,)."""
        return LeftOut(self.rest + centre, self.variance, self.intercepts + centre)


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
    # the unbroken piece of a chain that each draw is of, (n,), where the objective asks for it
    segment: AnyArray | None = None
    root: Root = None  # of the weights of the squares, where draws have weights

    def take(self, index: np.ndarray) -> "Problem":
        """The same problem on some of the draws."""
        x, score, f = self.x[index], self.score[index], self.f[index]
        segment = None if self.segment is None else cut(self.segment, index)
        root = None if self.root is None else self.root[index]
        return Problem(self.family, self.penalties, self.objective, x, score, f, segment, root)

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
        segment = None if self.segment is None else self.segment[batch]
        return jnp.sum(self.objective.along(rest, intercept, segment)) + penalty


def _evaluate(
    family: AbstractFamily, state: PyTree, params: PyTree, x: Points, score: Points
) -> jax.Array:
    return jax.vmap(family.evaluate, in_axes=(None, None, 0, 0))(state, params, x, score)


@eqx.filter_jit
def evaluate(
    family: AbstractFamily, state: PyTree, params: PyTree, x: Points, score: Points
) -> jax.Array:
    """The control variates on many points, (n, k)."""
    return _evaluate(family, state, params, x, score)
