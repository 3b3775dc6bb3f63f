"""How tasks are related, and the kernel of all of them together."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from .._precision import as_leaf
from .._types import AnyArray

SPREAD = 0.5  # of the loadings of tasks around their mean, beforehand
OWN = 0.2  # of the variance that a task has to itself, beforehand
GAIN = np.log(100.0)  # the logarithm of signal over noise to start from

type Matrix = Float[AnyArray, "task task"]
type Grams = Float[AnyArray, "term n m"]
type Labels = Int[AnyArray, " n"]


class AbstractRelation(eqx.Module):
    """A positive semi-definite matrix between tasks."""

    @abc.abstractmethod
    def matrix(self) -> Matrix:
        """The matrix B."""

    @abc.abstractmethod
    def improbability(self) -> jax.Array:
        """Minus the logarithm of its prior density, up to a constant."""


class Given(AbstractRelation):
    """A matrix that is known, and not learned.

    >>> Given(np.eye(2)).matrix().shape
    (2, 2)
    """

    between: Matrix = eqx.field(converter=as_leaf)

    def matrix(self) -> Matrix:
        return jax.lax.stop_gradient(jnp.asarray(self.between))

    def improbability(self) -> jax.Array:
        return jnp.zeros(())


class LowRank(AbstractRelation):
    r"""$B = W W^\top + \operatorname{diag}(v)$: what tasks share, and what each has to itself.

    Beforehand the rows of $W$ are expected near their mean and the $v_t$ near theirs, so that a task
    of few draws is taken to be as the others are.

    Args:
        loadings: $W$, (task, rank).
        log_own: $\log v$, (task,).

    >>> related(3, 1).matrix().shape
    (3, 3)
    """

    loadings: Float[AnyArray, "task rank"]
    log_own: Float[AnyArray, " task"]

    def matrix(self) -> Matrix:
        return self.loadings @ self.loadings.T + jnp.diag(jnp.exp(self.log_own))

    def improbability(self) -> jax.Array:
        away = (self.loadings - jnp.mean(self.loadings, axis=0)) / SPREAD
        own = self.log_own - jnp.mean(self.log_own)
        size = jnp.log(jnp.mean(jnp.diag(self.matrix())))  # `gain` says how large, not this
        return (jnp.sum(away**2) + jnp.sum(own**2) + size**2) / 2


def related(count: int, rank: int) -> LowRank:
    """Where learning starts: all tasks much alike; further columns vary along their order."""
    place = (np.arange(count) + 0.5) / count
    waves = [np.cos(np.pi * j * place) * (1.0 if j == 0 else 0.3) for j in range(rank)]
    loadings = np.sqrt(1 - OWN) * np.stack(waves, axis=1)
    return LowRank(loadings, np.full(count, np.log(OWN)))


class Coupling(eqx.Module):
    r"""The kernel $e^{a}\, B_{tt'} \sum_j w_j\, k_j(x, y)$ of all tasks, in units of the noise.

    Args:
        relation: $B$.
        log_gain: $a$.
        log_weights: $\log w_j$ up to a constant, one for each term.
    """

    relation: AbstractRelation
    log_gain: Float[AnyArray, ""]
    log_weights: Float[AnyArray, " term"]

    def kernel(self, grams: Grams, task: AnyArray, other: AnyArray) -> jax.Array:
        """The kernel on rows of some tasks and columns of others: (n, m)."""
        between = self.relation.matrix()[task][:, other]
        mixed = jnp.tensordot(jax.nn.softmax(self.log_weights), grams, 1)
        return jnp.exp(self.log_gain) * between * mixed

    def improbability(self) -> jax.Array:
        """Minus the logarithm of the prior density, up to a constant."""
        return self.relation.improbability() + jnp.sum((self.log_weights / 3) ** 2) / 2


def coupling_of(relation: AbstractRelation, terms: int) -> Coupling:
    """Where learning starts: all terms of equal weight."""
    return Coupling(relation, np.asarray(GAIN), np.zeros(terms))
