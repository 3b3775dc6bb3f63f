from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._types import Key, Values
from ..families import AbstractLinearFamily, Products
from ..objectives import AbstractPenalty
from ._base import AbstractSolver, Solution, linear_solution
from ._conjugate_steps import Times, conjugate_gradients
from ._dual import gather
from ._linear_system import Term, has_mean_square, linear_terms, unknowns
from ._preconditioners import feature_squares, leading_inverse, nystrom_inverse
from ._problem import Problem
from ._rows import Root, average, centred, ones, scaled

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

    def solve(self, problem: Problem, key: Key) -> Solution:
        linear = isinstance(problem.family, AbstractLinearFamily)
        if linear and has_mean_square(problem):
            raise ValueError(
                "MeanSquare has no dual form to iterate on: use Exact() or Stochastic()."
            )
        size, free = unknowns(problem)
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
    intercept, coef = gather(terms, x, score, beta, scaled(alpha, root))
    return intercept + centre, coef, tuple(term.state for term in terms), steps


def _row_scaled(times: Times, root: Root) -> Times:
    """The product with the kernel between scaled rows."""
    return times if root is None else lambda v: scaled(times(scaled(v, root)), root)


def _free_of_matrices(terms: tuple[Term, ...], x: Values) -> bool:
    return all(term.family.is_matrix_free and term.gram(x.shape[1]) is None for term in terms)


def _kernel_times(
    terms: tuple[Term, ...], products: list[Products], x: Values, score: Values
) -> Times:
    """The product with the penalised kernel, matrix-free where all terms allow.

    Otherwise by its matrix, or, with too many draws to keep it, by rows of it made anew each time.
    """
    if _free_of_matrices(terms, x):
        each = [(one, term.weight) for one, term in zip(products, terms, strict=True)]
        return lambda v: sum((one.both(v) / w for one, w in each), jnp.zeros(()))

    def row(point: tuple[jax.Array, jax.Array]) -> jax.Array:
        here = (point[0][None], point[1][None])
        return sum((term.kernel(*here, x, score)[0] for term in terms), jnp.zeros(len(x), x.dtype))

    if len(x) <= KEPT:
        kernel = jax.lax.map(row, (x, score), batch_size=ROWS)
        return lambda v: kernel @ v
    return lambda v: jax.lax.map(lambda point: row(point) @ v, (x, score), batch_size=ROWS)
