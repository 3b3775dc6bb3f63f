from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import AnyArray, Key
from ..families import AbstractLinearFamily
from ._base import AbstractSolver, Solution, linear_solution
from ._dual import gather
from ._linear_system import Term, has_mean_square, linear_terms, unknowns
from ._problem import Problem

MATERIALISE = 8192  # draws up to which the kernel matrix is kept (0.5 GB) rather than remade


class ConjugateGradient(AbstractSolver):
    r"""Conjugate gradients on the dual system, matrix-free where the family allows.

    For degree-two polynomials an iteration costs two $(n, d, d)$ products and no matrix is formed.

    Args:
        tolerance: the relative residual to stop at.
        max_steps: the most iterations to take; a warning is in the note when they ran out.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 100, 2))
    >>> control = sx.fit(
    ...     lambda x: x[0] ** 2, sx.Sample(x, -x), sx.Polynomial(2), solver=ConjugateGradient()
    ... )
    >>> bool(abs(control.intercept[0] - 1) < 1e-4)
    True
    """

    tolerance: float = eqx.field(static=True, default=1e-10)
    max_steps: int = eqx.field(static=True, default=1000)

    def solve(self, problem: Problem, key: Key) -> Solution:
        if has_mean_square(problem) and isinstance(problem.family, AbstractLinearFamily):
            raise ValueError(
                "MeanSquare has no dual form to iterate on: use Exact() or Stochastic()."
            )
        intercept, coef, states, steps = _solve(problem, self.tolerance, self.max_steps)
        taken = int(steps)
        note = f"conjugate gradients: {unknowns(problem)[0]} coefficients, {taken} iterations"
        if taken >= self.max_steps:
            note += ", stopped before convergence: raise max_steps or the penalty"
        return linear_solution(problem, states, coef, intercept, note)


@eqx.filter_jit
def _solve(
    problem: Problem, tolerance: float, max_steps: int
) -> tuple[jax.Array, jax.Array, tuple, jax.Array]:
    import lineax as lx

    terms, x, score = linear_terms(problem), problem.x, problem.score
    free = [t.family.feature_matrix(t.state, x, score) for t in terms if t.is_free]
    columns = jnp.concatenate([jnp.ones((len(x), 1), x.dtype), *free], axis=1)
    centre = jnp.mean(problem.f, axis=0)
    right = jnp.concatenate([problem.f - centre, columns], axis=1)
    times = _multiplier(tuple(t for t in terms if not t.is_free), x, score)

    def one(column: jax.Array) -> tuple[jax.Array, AnyArray]:
        operator = lx.FunctionLinearOperator(
            lambda v: v + times(v), jax.eval_shape(lambda: column), lx.positive_semidefinite_tag
        )
        solver = lx.CG(rtol=tolerance, atol=0.0, max_steps=max_steps, stabilise_every=None)
        found = lx.linear_solve(operator, column, solver, throw=False)
        return found.value, found.stats["num_steps"]

    solved, steps = jax.vmap(one, in_axes=1, out_axes=(1, 0))(right)
    k = problem.f.shape[1]
    inverse_f, inverse_h = solved[:, :k], solved[:, k:]
    beta = jnp.linalg.solve(columns.T @ inverse_h, columns.T @ inverse_f)
    intercept, coef = gather(terms, x, score, beta, inverse_f - inverse_h @ beta)
    return intercept + centre, coef, tuple(term.state for term in terms), jnp.max(steps)


def _multiplier(
    terms: tuple[Term, ...], x: AnyArray, score: AnyArray
) -> Callable[[jax.Array], jax.Array]:
    """The product with the penalised kernel: by its matrix, or through the coefficients.

    Through the coefficients is cheaper where a family applies them without forming its features.
    """
    matrix_free = all(term.family.is_matrix_free for term in terms)
    if len(x) <= MATERIALISE and not matrix_free:
        kernel = sum((term.kernel(x, score, x, score) for term in terms), jnp.zeros(()))
        return lambda v: kernel @ v

    def through(v: jax.Array) -> jax.Array:
        total = jnp.zeros_like(v)
        for term in terms:
            coef = term.from_dual(x, score, v[:, None])
            total = total + term.family.apply(term.state, coef, x, score)[:, 0]
        return total

    return through
