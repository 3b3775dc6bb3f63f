"""Cross-fitting as a linear map of the integrands, kept for integrands that come later."""

import abc
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_solve, solve_triangular

from .._types import AnyArray, Values
from ._blocks import Blocks, each_fold, flat
from ._dual import dual
from ._exact import Exact, one_factorisation
from ._linear_system import linear_terms
from ._primal import primal
from ._problem import Folds, Problem
from ._rows import Root, scaled, unscaled


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
        f = scaled(f - centre, self.blocks.root)
        alpha, intercept = self.blocks.project(f), self.blocks.tau @ f
        rest, intercepts = self.blocks.held_out(alpha, intercept)
        return rest + centre, intercepts + centre

    @eqx.filter_jit
    def weights(self) -> jax.Array:
        return self.blocks.weights()


class PrimalMap(AbstractLinearMap):
    r"""The map in primal form, factorised: new integrands cost two products with the columns.

    With $A$ the columns, the intercept's first, $P$ the penalty and $A^\top A + P = L L^\top$, the columns
    $Q = A L^{-\top}$ are nearly orthonormal, and so the normal equations of the fit without fold $B$,

    $$ \left(Q^\top Q + L^{-1} P L^{-\top} - Q_B^\top Q_B\right) v_B = Q^\top f - Q_B^\top f_B , $$

    lose no digits: there is nothing to refine.
    """

    columns: AnyArray  # Q
    factors: AnyArray  # of the normal equations without each fold, (fold, p + 1, p + 1)
    first: AnyArray  # the first row of the inverse of L', whose product with v is the intercept
    root: Root  # by which the rows of A and f are scaled
    folds: Folds = eqx.field(static=True)

    @eqx.filter_jit
    def rest(self, f: Values) -> tuple[jax.Array, jax.Array]:
        centre = jnp.mean(f, axis=0)
        f = scaled(f - centre, self.root)
        whole = self.columns.T @ f

        def without(
            own: AnyArray, inside: AnyArray, factor: AnyArray
        ) -> tuple[jax.Array, jax.Array]:
            v = cho_solve((factor, True), whole - inside.T @ f[own])
            intercept, root = self.first @ v, None if self.root is None else self.root[own]
            return unscaled(f[own] - inside @ v, root) + intercept, intercept

        rest, intercepts = each_fold(without, self.columns, self.folds, self.factors)
        return flat(rest, self.folds) + centre, intercepts + centre

    def weights(self) -> jax.Array:
        return _transposed(self, self.columns, self.root)


class RefittedMap(AbstractLinearMap):
    """The map of a problem whose folds share no factorisation: fitted when it is used."""

    problem: Problem
    folds: Folds = eqx.field(static=True)

    def rest(self, f: Values) -> tuple[jax.Array, jax.Array]:
        problem = replace(self.problem, f=jnp.asarray(f))
        held = Exact().crossfit(problem, self.folds, jax.random.key(0))
        return held.rest, jnp.asarray(held.intercepts)

    def weights(self) -> jax.Array:
        return _transposed(self, self.problem.x, self.problem.root)


def _transposed(made: AbstractLinearMap, rows: AnyArray, root: Root) -> jax.Array:
    """The transposed map of the weights of a mean over so many rows."""
    n, dtype = len(rows), rows.dtype
    _, back = jax.vjp(lambda f: made.rest(f)[0], jnp.zeros((n, 1), dtype))
    mean = jnp.full((n, 1), 1 / n, dtype)
    (weights,) = back(mean if root is None else scaled(mean, root / jnp.mean(root)))
    return weights[:, 0]


def linear_map(problem: Problem, folds: Folds) -> tuple[AbstractLinearMap, str]:
    """The map that `Exact` cross-fits a linear problem by, in the form that it would take."""
    train = problem.x.shape[0] - max(stop - start for start, stop in folds)
    dual_form, note = Exact().plan(problem, train)
    if not one_factorisation(problem):
        return RefittedMap(problem, folds), note
    made = DualMap(_dual_blocks(problem, folds)) if dual_form else _primal_map(problem, folds)
    return made, note


@eqx.filter_jit
def _dual_blocks(problem: Problem, folds: Folds) -> Blocks:
    n = problem.x.shape[0]
    terms = linear_terms(problem, count=n - n / len(folds))
    return dual(terms, problem.x, problem.score, problem.root).blocks(folds)


@eqx.filter_jit
def _primal_map(problem: Problem, folds: Folds) -> PrimalMap:
    n = problem.x.shape[0]
    terms = linear_terms(problem, count=n - n / len(folds))
    made = primal(terms, problem.x, problem.score, problem.root)
    factor = _factor(made.gram)
    columns = solve_triangular(factor, made.columns.T, lower=True).T
    half = solve_triangular(factor, made.penalty, lower=True)
    gram = columns.T @ columns + solve_triangular(factor, half.T, lower=True)
    unit = jnp.zeros(len(gram), gram.dtype).at[0].set(1 / made.size[0])
    first = solve_triangular(factor, unit, lower=True)
    factors = each_fold(lambda _, inside: _factor(gram - inside.T @ inside), columns, folds)
    return PrimalMap(columns, factors, first, problem.root, folds)


def _factor(gram: AnyArray) -> jax.Array:
    """The Cholesky factor, with what rounding needs on the diagonal."""
    floor = 8 * jnp.finfo(gram.dtype).eps * len(gram)
    return jnp.linalg.cholesky(gram + floor * jnp.eye(len(gram), dtype=gram.dtype))
