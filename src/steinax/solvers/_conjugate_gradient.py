"""Conjugate gradients without a matrix, with a preconditioner of landmarks."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._linalg import whitening
from .._types import AnyArray, Key, Points
from ..families import AbstractLinearFamily, Landmarks, Products
from ..objectives import AbstractPenalty
from ._base import (
    AbstractSolver,
    Problem,
    Root,
    Solution,
    average,
    centred,
    linear_solution,
    ones,
    scaled,
)
from ._exact import Term, gather, has_mean_square, kernel_of, linear_terms, unknowns


class Wide(eqx.Module):
    r"""Terms that have a kernel $K$, as one, by its columns at landmarks.

    The columns $A = K(x, S) K(S, S)^{-1/2}$ span its translates to the landmarks $S$ (Nyström).
    """

    terms: tuple[Term, ...]
    matrix: AnyArray  # A
    back: AnyArray  # K(S, S)^(-1/2)
    index: AnyArray  # of S among the draws


def nystrom_columns(terms: tuple[Term, ...], x: Points, score: Points, index: AnyArray) -> Wide:
    """The columns of terms that have a kernel, on the landmarks of the given indices."""
    landmarks = (x[index], score[index])
    back = whitening(kernel_of(terms, *landmarks, *landmarks))
    return Wide(terms, kernel_of(terms, x, score, *landmarks) @ back, back, index)


type Times = Callable[[jax.Array], jax.Array]


class _State(NamedTuple):
    solution: jax.Array
    residual: jax.Array
    direction: jax.Array
    slope: jax.Array  # r' M^-1 r of each column
    gained: jax.Array  # what the steps so far took from the objective
    before: jax.Array  # what the last step took
    open: jax.Array  # columns that are not there yet
    step: jax.Array


def conjugate_gradients(
    times: Times,
    precondition: Times,
    right: AnyArray,
    left_over: Times,
    tolerance: float,
    max_steps: int,
) -> tuple[jax.Array, jax.Array]:
    r"""Solve $B v = b$ for every column $b$, and the number of steps.

    A step along $d$ of length $a = r^\top M^{-1} r / d^\top B d$ lowers $v^\top B v - 2 b^\top v$ by
    $a\, r^\top M^{-1} r$. A column ends when two steps in turn lowered it by less than the square of the
    tolerance times what is left of the objective.

    Args:
        times: the product with $B$, for many columns at once.
        precondition: the product with $M^{-1}$, likewise.
        right: the right-hand sides, (n, k).
        left_over: what is left of the objective, from what the steps have gained: (k,).
        tolerance: relative, of the root of the objective.
        max_steps: the most that are taken.
    """
    advance = partial(_advance, times, precondition, left_over, tolerance)
    start = _start(jnp.asarray(right), precondition(jnp.asarray(right)))
    done = jax.lax.while_loop(
        lambda state: jnp.any(state.open) & (state.step < max_steps), advance, start
    )
    return done.solution, done.step


def _start(right: jax.Array, refined: jax.Array) -> _State:
    slope = jnp.sum(right * refined, axis=0)
    none, much = jnp.zeros_like(slope), jnp.full_like(slope, jnp.inf)
    begin = jnp.zeros((), int)
    return _State(jnp.zeros_like(right), right, refined, slope, none, much, slope > 0, begin)


def _advance(
    times: Times, precondition: Times, left_over: Times, tolerance: float, state: _State
) -> _State:
    """One step of every column that is not there yet."""
    product = times(state.direction)
    curvature = jnp.sum(state.direction * product, axis=0)
    length = jnp.where(state.open, state.slope / jnp.where(curvature > 0, curvature, 1.0), 0.0)
    residual = state.residual - length * product
    refined = precondition(residual)
    slope = jnp.sum(residual * refined, axis=0)
    gain = length * state.slope
    gained = state.gained + gain
    little = tolerance**2 * left_over(gained)
    still = (gain > little) | (state.before > little)
    ahead = slope / jnp.where(state.slope > 0, state.slope, 1.0)
    return _State(
        state.solution + length * state.direction,
        residual,
        refined + ahead * state.direction,
        slope,
        gained,
        gain,
        state.open & still & (slope > 0),
        state.step + 1,
    )


def nystrom_inverse(
    terms: tuple[Term, ...], x: Points, score: Points, count: int, root: Root = None
) -> Times:
    r"""The product with $(A A^\top + 1)^{-1}$, $A$ the Nyström columns of so many landmarks."""
    index = Landmarks(count).choose(len(x))
    columns = nystrom_columns(terms, x, score, index).matrix
    return _low_rank_inverse(scaled(columns, root), jnp.ones(()))


def leading_inverse(terms: tuple[Term, ...], each: list[Products], root: Root = None) -> Times:
    r"""The product with $(A A^\top + c)^{-1}$, $A$ the leading features of all terms.

    The rest of the kernel is taken for a multiple of the identity, $c = 1 + \operatorname{tr}
    K_{\text{rest}} / n$: it has many directions and none of them is large.
    """
    columns, noise = [], jnp.ones(())
    for term, products in zip(terms, each, strict=True):
        leading, rest = products.leading()
        columns.append(scaled(leading / jnp.sqrt(term.weight), root))
        noise = noise + rest / term.weight
    return _low_rank_inverse(jnp.concatenate(columns, axis=1), noise)


def feature_squares(products: Products, n: int, size: int) -> jax.Array:
    """The sum of squares of each feature over the draws: (size,).

    Those that are not leading are given the mean of theirs.
    """
    leading, rest = products.leading()
    own = jnp.sum(leading**2, axis=0)
    others = size - len(own)
    return jnp.concatenate([own, jnp.full(others, n * rest / max(others, 1), own.dtype)])


def _low_rank_inverse(a: AnyArray, noise: AnyArray) -> Times:
    r"""The product with $(A A^\top + c)^{-1} = (1 - A (A^\top A + c)^{-1} A^\top) / c$."""
    inner = a.T @ a + noise * jnp.eye(a.shape[1], dtype=a.dtype)
    factor = jnp.linalg.cholesky(inner)
    return lambda r: (r - a @ jax.scipy.linalg.cho_solve((factor, True), a.T @ r)) / noise


KEPT = 16384  # draws up to which the kernel matrix is kept (2 GB) rather than remade every step
ROWS = 512  # of the kernel matrix that are made at once
UNAIDED = 500  # draws up to which no preconditioner pays


class ConjugateGradient(AbstractSolver):
    r"""Conjugate gradients, for all integrands at once, matrix-free where the family allows.

    For degree-two polynomials an iteration costs two $(n, d, d)$ products for each integrand and no
    matrix is formed. For kernels it is one product with the kernel matrix $K$; the iteration is
    preconditioned by the Nyström approximation of $K$ on a few landmark draws $S$,

    $$ M = K_{XS} K_{SS}^{-1} K_{SX} + 1, $$

    in units of the noise. That costs $O(n M^2)$ once and leaves tens of iterations of $O(n^2)$. For
    polynomials the linear part of the kernel, $S S^\top$ with the scores $S$, takes the place of the
    landmarks, and a constant that of the quadratic part: $O(n d^2)$ once, and five to ten iterations
    to one per cent.

    Args:
        tolerance: of the root of the objective, relative: the steps end when they lower the
            objective by less than its square.
        max_steps: the most iterations to take; a warning is in the note when they ran out.
        preconditioner: how many landmarks it has, 0 for none. By default $8 \sqrt n$ for kernels
            and none, but the linear part, for polynomials.

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
                "landmarks, 0 for no preconditioner, or None for a number that fits the draws."
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
        taken = int(steps)
        note = f"conjugate gradients: {size} coefficients, {taken} iterations"
        if taken >= self.max_steps:
            note += ", stopped before convergence: raise max_steps or the penalty"
        return linear_solution(problem, states, coef, intercept, note)


def is_matrix_free(problem: Problem) -> bool:
    """Whether products with the features of every term, and with its penalty, need no matrix."""
    each = zip(problem.family.terms, problem.penalties, strict=True)
    return all(
        isinstance(term, AbstractLinearFamily)
        and term.is_matrix_free
        and _is_identity(term, penalty, problem)
        for term, penalty in each
    )


def _is_identity(family: AbstractLinearFamily, penalty: AbstractPenalty, problem: Problem) -> bool:
    state = jax.eval_shape(family.setup, problem.x, problem.score)
    dim = problem.x.shape[1]
    return jax.eval_shape(lambda made: penalty.gram(family, made, dim), state) is None


type _Found = tuple[jax.Array, jax.Array, tuple, jax.Array]


@eqx.filter_jit
def _primal(problem: Problem, tolerance: float, max_steps: int, count: int | None) -> _Found:
    r"""On $(A^\top A + P)\,\theta = A^\top f$, with centred products instead of columns.

    The preconditioner is the diagonal, unless the count is 0.
    """
    terms, x, score = linear_terms(problem), problem.x, problem.score
    root, dim = problem.root, x.shape[1]
    f = scaled(problem.f - average(problem.f, root), root)
    sizes = [t.size(dim) for t in terms]
    weights = [0.0 if t.is_free else t.weight for t in terms]
    full = [jnp.full(size, w, x.dtype) for size, w in zip(sizes, weights, strict=True)]
    penalty = jnp.concatenate(full)[:, None]
    each = [t.family.products(t.state, x, score) for t in terms]
    ends = np.cumsum(sizes)[:-1]

    def apply(coef: jax.Array) -> jax.Array:
        parts = zip(each, jnp.split(coef, ends), strict=True)
        return sum((one.apply(part) for one, part in parts), jnp.zeros(()))

    def adjoint(values: jax.Array) -> jax.Array:
        values = scaled(centred(values, root), root)
        return jnp.concatenate([one.adjoint(values) for one in each])

    squares = [feature_squares(one, len(x), size) for one, size in zip(each, sizes, strict=True)]
    diagonal = jnp.ones(()) if count == 0 else jnp.concatenate(squares)[:, None] + penalty
    square = jnp.sum(f**2, axis=0)
    least = jnp.finfo(x.dtype).eps * square
    coef, steps = conjugate_gradients(
        lambda coef: adjoint(scaled(apply(coef), root)) + penalty * coef,
        lambda residual: residual / diagonal,
        adjoint(f),
        lambda gained: jnp.maximum(square - gained, least),
        tolerance,
        max_steps,
    )
    intercept = average(problem.f - apply(coef), root)
    return intercept, coef, tuple(term.state for term in terms), steps


@eqx.filter_jit
def _dual(problem: Problem, tolerance: float, max_steps: int, count: int | None) -> _Found:
    r"""On $(K + 1)\,\alpha = f - H \beta$, among the $\alpha$ with $H^\top \alpha = 0$."""
    terms, x, score, root = linear_terms(problem), problem.x, problem.score, problem.root
    free = [t.family.feature_matrix(t.state, x, score) for t in terms if t.is_free]
    columns = jnp.concatenate([ones(x, root), *(scaled(one, root) for one in free)], axis=1)
    basis, upper = jnp.linalg.qr(columns)
    centre = jnp.mean(problem.f, axis=0)
    f = scaled(problem.f - centre, root)
    held = tuple(term for term in terms if not term.is_free)
    each = (
        [t.family.products(t.state, x, score) for t in held] if _free_of_matrices(held, x) else []
    )
    times = _row_scaled(_kernel_times(held, each, x, score), root)

    def project(values: jax.Array) -> jax.Array:
        return values - basis @ (basis.T @ values)

    refine = project
    if held and count is None:
        refine = leading_inverse(held, each, root)
    elif held and count:
        refine = nystrom_inverse(held, x, score, count, root)
    alpha, steps = conjugate_gradients(
        lambda v: project(v + times(v)),
        lambda residual: project(refine(residual)),
        project(f),
        lambda gained: gained,
        tolerance,
        max_steps,
    )
    beta = jax.scipy.linalg.solve_triangular(upper, basis.T @ (f - times(alpha)))
    coef = gather(terms, x, score, beta[1:], scaled(alpha, root))
    return beta[0] + centre, coef, tuple(term.state for term in terms), steps


def _row_scaled(times: Times, root: Root) -> Times:
    """The product with the kernel between scaled rows."""
    return times if root is None else lambda v: scaled(times(scaled(v, root)), root)


def _free_of_matrices(terms: tuple[Term, ...], x: Points) -> bool:
    return all(term.family.is_matrix_free and term.gram(x.shape[1]) is None for term in terms)


def _kernel_times(
    terms: tuple[Term, ...], products: list[Products], x: Points, score: Points
) -> Times:
    """The product with the penalised kernel, matrix-free where all terms have their products.

    Otherwise by its matrix, or, with too many draws to keep it, by rows of it made anew each time.
    """
    if len(products) == len(terms):
        each = [(one, term.weight) for one, term in zip(products, terms, strict=True)]
        return lambda v: sum((one.both(v) / w for one, w in each), jnp.zeros(()))

    def row(point: tuple[jax.Array, jax.Array]) -> jax.Array:
        return kernel_of(terms, point[0][None], point[1][None], x, score)[0]

    if len(x) <= KEPT:
        kernel = jax.lax.map(row, (x, score), batch_size=ROWS)
        return lambda v: kernel @ v
    return lambda v: jax.lax.map(lambda point: row(point) @ v, (x, score), batch_size=ROWS)
