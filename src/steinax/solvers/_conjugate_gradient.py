"""Matrix-free conjugate gradients, preconditioned on landmarks."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._numerics import whitening
from .._types import AnyArray, Key, Points
from ..families import AbstractLinearFamily, Landmarks, Products
from ..objectives import AbstractPenalty
from ._base import (
    AbstractSolver,
    Problem,
    Solution,
    Weights,
    average,
    centred,
    linear_solution,
    ones,
    scaled,
)
from ._exact import Term, gather_coefficients, has_mean_square, kernel_of, linear_terms, unknowns


class Wide(eqx.Module):
    r"""The Nyström columns at landmarks of all terms that have a kernel, with $K$ the sum of their kernels.

    The columns $A = K(x, S) K(S, S)^{-1/2}$ span the translates of $K$ to the landmarks $S$.
    """

    terms: tuple[Term, ...]
    matrix: AnyArray  # A
    back: AnyArray  # K(S, S)^(-1/2)
    index: AnyArray  # of S among the draws


def nystrom_columns(terms: tuple[Term, ...], x: Points, score: Points, index: AnyArray) -> Wide:
    """Compute the Nyström columns of terms that have a kernel, with landmarks at the given indices."""
    landmarks = (x[index], score[index])
    back = whitening(kernel_of(terms, *landmarks, *landmarks))
    return Wide(terms, kernel_of(terms, x, score, *landmarks) @ back, back, index)


type Times = Callable[[jax.Array], jax.Array]


class _State(NamedTuple):
    """The state of the iteration, for all columns."""

    solution: jax.Array
    residual: jax.Array
    direction: jax.Array
    slope: jax.Array  # r' M^-1 r of each column
    gained: jax.Array  # the decrease of the objective by all steps so far
    last_gain: jax.Array  # the decrease by the last step
    active: jax.Array  # columns that have not converged
    step: jax.Array


def conjugate_gradients(
    times: Times,
    precondition: Times,
    right: AnyArray,
    remaining: Times,
    tolerance: float,
    max_steps: int,
) -> tuple[jax.Array, jax.Array]:
    r"""Solve $B v = b$ for every column $b$; also return the number of steps.

    A step along $d$ of length $a = r^\top M^{-1} r / d^\top B d$ lowers $v^\top B v - 2 b^\top v$ by
    $a\, r^\top M^{-1} r$. A column has converged when two successive steps lowered it by less than the square
    of the tolerance times the remaining objective.

    Args:
        times: the product with $B$, for many columns at once.
        precondition: the product with $M^{-1}$, for many columns at once.
        right: the right-hand sides, (n, k).
        remaining: the remaining objective as a function of its decrease so far: (k,).
        tolerance: relative, of the square root of the objective.
        max_steps: the maximum number of steps.
    """
    advance = partial(_advance, times, precondition, remaining, tolerance)
    start = _start(jnp.asarray(right), precondition(jnp.asarray(right)))
    final = jax.lax.while_loop(
        lambda state: jnp.any(state.active) & (state.step < max_steps), advance, start
    )
    return final.solution, final.step


def _start(right: jax.Array, refined: jax.Array) -> _State:
    slope = jnp.sum(right * refined, axis=0)
    zero, infinite = jnp.zeros_like(slope), jnp.full_like(slope, jnp.inf)
    step = jnp.zeros((), int)
    return _State(jnp.zeros_like(right), right, refined, slope, zero, infinite, slope > 0, step)


def _advance(
    times: Times, precondition: Times, remaining: Times, tolerance: float, state: _State
) -> _State:
    """Take one step for every column that has not converged."""
    product = times(state.direction)
    curvature = jnp.sum(state.direction * product, axis=0)
    length = jnp.where(state.active, state.slope / jnp.where(curvature > 0, curvature, 1.0), 0.0)
    residual = state.residual - length * product
    refined = precondition(residual)
    slope = jnp.sum(residual * refined, axis=0)
    gain = length * state.slope
    gained = state.gained + gain
    threshold = tolerance**2 * remaining(gained)
    improving = (gain > threshold) | (state.last_gain > threshold)
    momentum = slope / jnp.where(state.slope > 0, state.slope, 1.0)
    return _State(
        state.solution + length * state.direction,
        residual,
        refined + momentum * state.direction,
        slope,
        gained,
        gain,
        state.active & improving & (slope > 0),
        state.step + 1,
    )


def nystrom_inverse(
    terms: tuple[Term, ...], x: Points, score: Points, count: int, weights: Weights = None
) -> Times:
    r"""The product with $(A A^\top + 1)^{-1}$, with $A$ the Nyström columns of `count` landmarks."""
    index = Landmarks(count).choose(len(x))
    columns = nystrom_columns(terms, x, score, index).matrix
    return _low_rank_inverse(scaled(columns, weights), jnp.ones(()))


def leading_inverse(
    terms: tuple[Term, ...], term_products: list[Products], weights: Weights = None
) -> Times:
    r"""The product with $(A A^\top + c)^{-1}$, with $A$ the leading features of all terms.

    The remaining part of the kernel is approximated by a multiple of the identity, $c = 1 + \operatorname{tr}
    K_{\text{rest}} / n$: it has many directions, none of them large.
    """
    columns, shift = [], jnp.ones(())
    for term, products in zip(terms, term_products, strict=True):
        leading, remaining = products.leading()
        columns.append(scaled(leading / jnp.sqrt(term.weight), weights))
        shift = shift + remaining / term.weight
    return _low_rank_inverse(jnp.concatenate(columns, axis=1), shift)


def feature_squares(products: Products, n: int, size: int) -> jax.Array:
    """The sum of squares of each feature over the draws: (size,).

    Features that are not leading all get the mean of their squares.
    """
    leading, remaining = products.leading()
    squares = jnp.sum(leading**2, axis=0)
    count = size - len(squares)
    return jnp.concatenate([squares, jnp.full(count, n * remaining / max(count, 1), squares.dtype)])


def _low_rank_inverse(a: AnyArray, shift: AnyArray) -> Times:
    r"""The product with $(A A^\top + c)^{-1} = (1 - A (A^\top A + c)^{-1} A^\top) / c$."""
    inner = a.T @ a + shift * jnp.eye(a.shape[1], dtype=a.dtype)
    factor = jnp.linalg.cholesky(inner)
    return lambda r: (r - a @ jax.scipy.linalg.cho_solve((factor, True), a.T @ r)) / shift


KEPT_ROWS = 16384  # draws up to which the kernel matrix is kept (2 GB), not recomputed every step
ROWS = 512  # rows of the kernel matrix that are computed at once
UNAIDED = 500  # draws up to which a preconditioner does not pay off


class ConjugateGradient(AbstractSolver):
    r"""Conjugate gradients, for all integrands at once, matrix-free where the family allows.

    For degree-two polynomials an iteration costs two $(n, d, d)$ products for each integrand and no
    matrix is formed. For kernels it is one product with the kernel matrix $K$; the iteration is
    preconditioned by the Nyström approximation of $K$ on a few landmark draws $S$,

    $$ M = K_{XS} K_{SS}^{-1} K_{SX} + 1, $$

    in units of the penalty. That costs $O(n M^2)$ once, followed by tens of iterations of $O(n^2)$. For
    polynomials the linear part of the kernel, $S S^\top$ with the scores $S$, takes the place of the
    landmarks, and a constant that of the quadratic part: $O(n d^2)$ once, and five to ten iterations
    for an accuracy of one per cent.

    Args:
        tolerance: relative, of the square root of the objective: iterations stop when they lower the
            objective by less than its square.
        max_steps: the maximum number of iterations; the note says so if they ran out.
        preconditioner: its number of landmarks, 0 for none. By default $8 \sqrt n$ for kernels
            and, for polynomials, the linear part instead of landmarks.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 100, 2))
    >>> control = sx.fit(
    ...     lambda x: x[0] ** 2, sx.Sample(x, -x), sx.Polynomial(2), solver=ConjugateGradient()
    ... )
    >>> bool(abs(control.intercept[0] - 1) < 1e-4)
    True
    """

    tolerance: float = eqx.field(static=True, default=1e-8)
    max_steps: int = eqx.field(static=True, default=1000)
    preconditioner: int | None = eqx.field(static=True, default=None)

    def __check_init__(self) -> None:
        if self.preconditioner is not None and self.preconditioner < 0:
            raise ValueError(
                f"ConjugateGradient(preconditioner={self.preconditioner}): give the number of "
                "landmarks, 0 for no preconditioner, or None to choose it by the number of draws."
            )

    def solve(self, problem: Problem, key: Key | None = None) -> Solution:
        size, free = unknowns(problem)
        if has_mean_square(problem):
            raise ValueError(
                "MeanSquare has no dual form to iterate on: use Exact() or Stochastic()."
            )
        matrix_free = is_matrix_free(problem)
        count, n = self.preconditioner, problem.x.shape[0]
        if count is None and not matrix_free:
            count = 0 if n <= UNAIDED else round(8 * n**0.5)
        solve = partial(_primal if free and matrix_free else _dual, count=count)
        intercept, coef, states, steps = solve(problem, self.tolerance, self.max_steps)
        iterations = int(steps)
        note = f"conjugate gradients: {size} coefficients, {iterations} iterations"
        if iterations >= self.max_steps:
            note += ", stopped before convergence: raise max_steps or the penalty"
        return linear_solution(problem, states, coef, intercept, note)


def is_matrix_free(problem: Problem) -> bool:
    """Whether products with the features of every term, and with its penalty, need no matrix."""
    pairs = zip(problem.family.terms, problem.penalties, strict=True)
    return all(
        isinstance(term, AbstractLinearFamily)
        and term.is_matrix_free
        and _is_identity(term, penalty, problem)
        for term, penalty in pairs
    )


def _is_identity(family: AbstractLinearFamily, penalty: AbstractPenalty, problem: Problem) -> bool:
    state = jax.eval_shape(family.setup, problem.x, problem.score)
    dim = problem.x.shape[1]
    return jax.eval_shape(lambda term_state: penalty.gram(family, term_state, dim), state) is None


type _Fit = tuple[jax.Array, jax.Array, tuple, jax.Array]


@eqx.filter_jit
def _primal(problem: Problem, tolerance: float, max_steps: int, count: int | None) -> _Fit:
    r"""Solve $(A^\top A + P)\,\theta = A^\top f$, with centred products instead of columns.

    The preconditioner is the diagonal, or none if `count` is 0.
    """
    terms, x, score = linear_terms(problem), problem.x, problem.score
    weights, dim = problem.weights, x.shape[1]
    f = scaled(problem.f - average(problem.f, weights), weights)
    sizes = [t.size(dim) for t in terms]
    penalties = [0.0 if term.is_free else term.weight for term in terms]
    diagonals = [jnp.full(size, one, x.dtype) for size, one in zip(sizes, penalties, strict=True)]
    penalty = jnp.concatenate(diagonals)[:, None]
    products = [t.family.products(t.state, x, score) for t in terms]
    ends = np.cumsum(sizes)[:-1]

    def apply(coef: jax.Array) -> jax.Array:
        pairs = zip(products, jnp.split(coef, ends), strict=True)
        return sum((op.apply(block) for op, block in pairs), jnp.zeros(()))

    def adjoint(values: jax.Array) -> jax.Array:
        values = scaled(centred(values, weights), weights)
        return jnp.concatenate([op.adjoint(values) for op in products])

    squares = [feature_squares(op, len(x), size) for op, size in zip(products, sizes, strict=True)]
    diagonal = jnp.ones(()) if count == 0 else jnp.concatenate(squares)[:, None] + penalty
    square = jnp.sum(f**2, axis=0)
    least = jnp.finfo(x.dtype).eps * square
    coef, steps = conjugate_gradients(
        lambda coef: adjoint(scaled(apply(coef), weights)) + penalty * coef,
        lambda residual: residual / diagonal,
        adjoint(f),
        lambda gained: jnp.maximum(square - gained, least),
        tolerance,
        max_steps,
    )
    intercept = average(problem.f - apply(coef), weights)
    return intercept, coef, tuple(term.state for term in terms), steps


@eqx.filter_jit
def _dual(problem: Problem, tolerance: float, max_steps: int, count: int | None) -> _Fit:
    r"""Solve $(K + 1)\,\alpha = f - H \beta$ over the $\alpha$ with $H^\top \alpha = 0$."""
    terms, x, score, weights = linear_terms(problem), problem.x, problem.score, problem.weights
    free = [t.family.feature_matrix(t.state, x, score) for t in terms if t.is_free]
    columns = jnp.concatenate([ones(x, weights), *(scaled(h, weights) for h in free)], axis=1)
    basis, upper = jnp.linalg.qr(columns)
    centre = jnp.mean(problem.f, axis=0)
    f = scaled(problem.f - centre, weights)
    penalised = tuple(term for term in terms if not term.is_free)
    products = (
        [t.family.products(t.state, x, score) for t in penalised]
        if _free_of_matrices(penalised, x)
        else []
    )
    times = _row_scaled(_kernel_times(penalised, products, x, score), weights)

    def project(values: jax.Array) -> jax.Array:
        return values - basis @ (basis.T @ values)

    refine = project
    if penalised and count is None:
        refine = leading_inverse(penalised, products, weights)
    elif penalised and count:
        refine = nystrom_inverse(penalised, x, score, count, weights)
    alpha, steps = conjugate_gradients(
        lambda v: project(v + times(v)),
        lambda residual: project(refine(residual)),
        project(f),
        lambda gained: gained,
        tolerance,
        max_steps,
    )
    beta = jax.scipy.linalg.solve_triangular(upper, basis.T @ (f - times(alpha)))
    coef = gather_coefficients(terms, x, score, beta[1:], scaled(alpha, weights))
    return beta[0] + centre, coef, tuple(term.state for term in terms), steps


def _row_scaled(times: Times, weights: Weights) -> Times:
    """Turn the product with a kernel into that with the kernel of the scaled rows."""
    return times if weights is None else lambda v: scaled(times(scaled(v, weights)), weights)


def _free_of_matrices(terms: tuple[Term, ...], x: Points) -> bool:
    return all(term.family.is_matrix_free and term.gram(x.shape[1]) is None for term in terms)


def _kernel_times(
    terms: tuple[Term, ...], products: list[Products], x: Points, score: Points
) -> Times:
    """The product with the penalised kernel, matrix-free if every term has its products.

    Otherwise it uses the kernel matrix, recomputed row by row if there are too many draws to keep it.
    """
    if len(products) == len(terms):
        weighted = [(op, term.weight) for op, term in zip(products, terms, strict=True)]
        return lambda v: sum((op.both(v) / weight for op, weight in weighted), jnp.zeros(()))

    def row(point: tuple[jax.Array, jax.Array]) -> jax.Array:
        return kernel_of(terms, point[0][None], point[1][None], x, score)[0]

    if len(x) <= KEPT_ROWS:
        kernel = jax.lax.map(row, (x, score), batch_size=ROWS)
        return lambda v: kernel @ v
    return lambda v: jax.lax.map(lambda point: row(point) @ v, (x, score), batch_size=ROWS)
