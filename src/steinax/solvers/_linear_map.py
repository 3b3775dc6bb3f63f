"""Cross-fitting as a linear map of the integrands, kept for integrands that come later."""

import abc
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import Values
from ._blocks import Blocks
from ._dual import dual
from ._exact import Exact, one_factorisation
from ._linear_system import linear_terms
from ._problem import Folds, Problem


class AbstractLinearMap(eqx.Module):
    """The map from integrands to f - g on draws of folds that g was not fitted to."""

    @abc.abstractmethod
    def rest(self, f: Values) -> tuple[jax.Array, jax.Array]:
        """f - g on every draw, (n, k), and the intercepts of the fits, (fold, k)."""

    @abc.abstractmethod
    def weights(self) -> jax.Array:
        r"""The weights $w$ with which the mean of $f - g$ is $w^\top f$: (n,)."""


class DualMap(AbstractLinearMap):
    """The map in dual form, factorised: new integrands cost one product each."""

    blocks: Blocks

    @eqx.filter_jit
    def rest(self, f: Values) -> tuple[jax.Array, jax.Array]:
        centre = jnp.mean(f, axis=0)
        alpha, intercept = self.blocks.project(f - centre), self.blocks.tau @ (f - centre)
        rest, intercepts = self.blocks.held_out(alpha, intercept)
        return rest + centre, intercepts + centre

    @eqx.filter_jit
    def weights(self) -> jax.Array:
        return self.blocks.weights()


class RefittedMap(AbstractLinearMap):
    """The map of a problem with few coefficients, or none in dual form: fitted when it is used."""

    problem: Problem
    folds: Folds = eqx.field(static=True)

    def rest(self, f: Values) -> tuple[jax.Array, jax.Array]:
        problem = replace(self.problem, f=jnp.asarray(f))
        held = Exact().crossfit(problem, self.folds, jax.random.key(0))
        return held.rest, jnp.asarray(held.intercepts)

    def weights(self) -> jax.Array:
        n = self.problem.x.shape[0]
        _, transposed = jax.vjp(lambda f: self.rest(f)[0], jnp.zeros((n, 1), self.problem.x.dtype))
        (weights,) = transposed(jnp.full((n, 1), 1 / n, self.problem.x.dtype))
        return weights[:, 0]


def linear_map(problem: Problem, folds: Folds) -> tuple[AbstractLinearMap, str]:
    """The map that `Exact` cross-fits a linear problem by, in the form that it would take."""
    train = problem.x.shape[0] - max(stop - start for start, stop in folds)
    dual_form, note = Exact().plan(problem, train)
    if dual_form and one_factorisation(problem):
        return DualMap(_factorised(problem, folds)), note
    return RefittedMap(problem, folds), note


@eqx.filter_jit
def _factorised(problem: Problem, folds: Folds) -> Blocks:
    n = problem.x.shape[0]
    terms = linear_terms(problem, count=n - n / len(folds))
    return dual(terms, problem.x, problem.score).blocks(folds)
