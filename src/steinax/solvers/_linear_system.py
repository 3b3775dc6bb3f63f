from typing import cast

import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import AnyArray, OtherPoints, Points, PyTree, Values
from ..families import AbstractLinearFamily
from ..objectives import AbstractPenalty, MeanSquare, NativeNorm, NoPenalty
from ._problem import Problem


class Term(eqx.Module):
    r"""One term of a linear problem, in units in which the loss is a plain sum of squares.

    The problem $\frac1m \sum_i r_i^2 + \lambda \Omega(\theta)$ is $\sum_i r_i^2 + m \lambda
    \Omega(\theta)$, so `weight` is $m \lambda$ (times what the objective makes of it).
    """

    family: AbstractLinearFamily
    state: PyTree
    penalty: AbstractPenalty
    weight: AnyArray

    @property
    def is_free(self) -> bool:
        """Whether nothing holds the coefficients back."""
        return isinstance(self.penalty, NoPenalty)

    @property
    def has_kernel(self) -> bool:
        """Whether a penalty on the coefficients holds it, so that it is the span of a kernel."""
        return not isinstance(self.penalty, (NoPenalty, MeanSquare))

    def size(self, dim: int) -> int:
        """The number of coefficients."""
        return self.family.size(self.state, dim)

    def gram(self, dim: int) -> jax.Array | None:
        """The matrix of the penalty, without its strength; None if it is 1."""
        return self.penalty.gram(self.family, self.state, dim)

    def kernel(self, x: Points, score_x: Points, y: OtherPoints, score_y: OtherPoints) -> jax.Array:
        r"""The kernel $\psi(x)^\top \Omega^{-1} \psi(y) / m \lambda$ of a penalised term."""
        if isinstance(self.penalty, NativeNorm):
            gram = self.family.cross_gram(self.state, x, score_x, y, score_y)
        else:
            left = self.family.feature_matrix(self.state, x, score_x)
            gram = left @ self._divide(self.family.feature_matrix(self.state, y, score_y).T, y)
        return gram / self.weight

    def from_dual(self, x: Points, score: Points, dual: Values) -> jax.Array:
        """The coefficients of a combination of the kernel's translates."""
        if isinstance(self.penalty, NativeNorm):
            return self.family.from_dual(self.state, x, score, dual) / self.weight
        return self._divide(self.family.adjoint(self.state, x, score, dual), x) / self.weight

    def _divide(self, columns: AnyArray, x: OtherPoints) -> jax.Array:
        gram = self.gram(x.shape[1])
        return jnp.asarray(columns) if gram is None else jnp.linalg.solve(gram, columns)


def linear_terms(
    problem: Problem, count: float | None = None, in_order: bool = False
) -> tuple[Term, ...]:
    """The terms of a problem whose family is linear.

    Args:
        problem: with the draws that the family is set up on.
        count: the number of draws $m$ in the objective's mean; all of them, unless some are to be
            held out later.
        in_order: whether the solver heeds an objective to which the order of draws matters.
    """
    check_linear(problem)
    if problem.objective.reach is not None and not in_order:
        raise ValueError(
            f"{type(problem.objective).__name__} looks at draws in a row, as only Exact() does for a "
            "linear family, with a Sample in memory: use that, or objective=LeastSquares()."
        )
    _check_quadratic(problem)
    m = problem.x.shape[0] if count is None else count
    factor = m * problem.objective.penalty_factor(m)
    each = zip(problem.family.terms, problem.penalties, strict=True)
    return tuple(
        Term(
            cast(AbstractLinearFamily, term),
            term.setup(problem.x, problem.score),
            penalty,
            jnp.asarray(penalty.strength * factor),
        )
        for term, penalty in each
    )


def check_linear(problem: Problem) -> None:
    """Refuse a family that has no linear system."""
    if not isinstance(problem.family, AbstractLinearFamily):
        raise TypeError(
            f"{type(problem.family).__name__} is not linear in its parameters, so there is no linear "
            "system to solve: use the Stochastic solver."
        )


def not_quadratic(problem: Problem) -> str | None:
    """The name of a loss or penalty that is no quadratic form, so that there is no linear system."""
    parts = (problem.objective, *problem.penalties)
    return next((type(part).__name__ for part in parts if not part.is_quadratic), None)


def _check_quadratic(problem: Problem) -> None:
    name = not_quadratic(problem)
    if name is None:
        return
    instead = "objective=LeastSquares()"
    if problem.objective.is_quadratic:
        instead = "a penalty such as Ridge or NativeNorm"
    raise TypeError(
        f"{name} is not declared as a quadratic form, so there is no linear system to solve: use the "
        f"Stochastic solver, in fit or estimate with a Sample in memory, or {instead}. If it is a quadratic "
        "form, set is_quadratic = True in its class."
    )


def unknowns(problem: Problem) -> tuple[int, int]:
    """How many coefficients a linear problem has, and how many of them are free of penalty."""
    check_linear(problem)
    points = (problem.x, problem.score)
    total, free = 0, 0
    for term, penalty in zip(problem.family.terms, problem.penalties, strict=True):
        state = jax.eval_shape(term.setup, *points)
        size = term.size(state, problem.x.shape[1])  # type: ignore[attr-defined]
        total += size
        free += size if isinstance(penalty, NoPenalty) else 0
    return total, free


def has_mean_square(problem: Problem) -> bool:
    """Whether a penalty is on the values of g, which only the primal form knows."""
    return any(isinstance(penalty, MeanSquare) for penalty in problem.penalties)


def fitted_values(terms: tuple[Term, ...], coef: AnyArray, x: Points, score: Points) -> jax.Array:
    """The values of g on many points, (n, k), from the coefficients of all terms."""
    total, used = jnp.zeros((x.shape[0], coef.shape[1]), coef.dtype), 0
    for term in terms:
        size = term.size(x.shape[1])
        total = total + term.family.apply(term.state, coef[used : used + size], x, score)
        used += size
    return total
