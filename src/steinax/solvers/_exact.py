import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import Key
from ..families import AbstractLinearFamily
from ..objectives import NativeNorm
from ._base import AbstractSolver, HeldOut, Solution, linear_solution
from ._dual import dual, gather
from ._in_order import solve_in_order
from ._linear_system import has_mean_square, linear_terms, unknowns
from ._primal import primal
from ._problem import Folds, LeftOut, Problem
from ._rows import scaled


class Exact(AbstractSolver):
    r"""The exact minimiser for a linear family, by one factorisation.

    In dual form there is one unknown per draw, in primal form one per coefficient; the smaller is
    taken, at a cost of $O(\min(n, p)^3 + n p \min(n, p))$ for all integrands together.
    Cross-fitting needs no refit: see `docs/math.md`.

    Args:
        dual: True or False to decide the form; by default the smaller one.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 100, 2))
    >>> sx.fit(lambda x: x[0] ** 2, sx.Sample(x, -x), sx.Polynomial(2), solver=Exact())
    ControlVariate(Polynomial(2), 1 integrand, exact, primal: 5 coefficients, 400 draws)
    """

    dual: bool | None = eqx.field(static=True, default=None)

    def solve(self, problem: Problem, key: Key) -> Solution:
        dual_form, note = self.plan(problem, problem.x.shape[0])
        intercept, coef, states = _solve(problem, dual_form)
        return linear_solution(problem, states, coef, intercept, note)

    def crossfit(self, problem: Problem, folds: Folds, key: Key) -> HeldOut:
        if not one_factorisation(problem):
            return super().crossfit(problem, folds, key)
        largest = max(stop - start for start, stop in folds)
        dual_form, note = self.plan(problem, problem.x.shape[0] - largest)
        found = _held_out(problem, dual_form, folds)
        return HeldOut(found.rest, note, found.variance, found.intercepts)

    def plan(self, problem: Problem, train: int) -> tuple[bool, str]:
        """Whether the dual form is taken for so many draws to fit to, and a note that says so."""
        p, free = unknowns(problem)
        primal_only = has_mean_square(problem)
        dual_form = p + 1 > train if self.dual is None else self.dual
        if free + 1 >= train:
            raise ValueError(
                f"{free} coefficients without a penalty cannot be found from {train} draws: give "
                "that term a penalty, such as NativeNorm(1e-3), or use a lower degree."
            )
        if primal_only and self.dual:
            raise ValueError("MeanSquare has no dual form: use Exact(), or another penalty.")
        reach = problem.objective.reach
        sizes = f"{p} coefficients, {train} draws"
        sizes += "" if reach is None else f", windows of {reach}"
        if dual_form and not primal_only:
            return True, f"exact, dual: {sizes}"
        return False, f"exact, primal: {sizes}"


def one_factorisation(problem: Problem) -> bool:
    """Whether leaving draws out of the data leaves them out of everything else too.

    A mean square of g is a mean over the training draws; what looks at draws in a row sees where
    others were left out; a function centred on a held-out draw would know where it is used. In its
    own norm a control functional gives such centres no weight.
    """
    if has_mean_square(problem) or problem.objective.reach is not None:
        return False
    each = zip(problem.family.terms, problem.penalties, strict=True)
    return all(
        not term.centres_on_draws or (term.is_whole_space and isinstance(penalty, NativeNorm))
        for term, penalty in each
        if isinstance(term, AbstractLinearFamily)
    )


@eqx.filter_jit
def _solve(problem: Problem, dual_form: bool) -> tuple[jax.Array, jax.Array, tuple]:
    terms, x, score = linear_terms(problem, in_order=True), problem.x, problem.score
    states = tuple(term.state for term in terms)
    centre, root = jnp.mean(problem.f, axis=0), problem.root
    if problem.objective.reach is not None:
        intercept, coef = solve_in_order(problem, terms, problem.f - centre, dual_form)
    elif dual_form:
        beta, alpha = dual(terms, x, score, root).coefficients(scaled(problem.f - centre, root))
        intercept, coef = gather(terms, x, score, beta, scaled(alpha, root))
    else:
        intercept, coef = primal(terms, x, score, root).solve(scaled(problem.f - centre, root))
    return intercept + centre, coef, states


@eqx.filter_jit
def _held_out(problem: Problem, dual_form: bool, folds: Folds) -> LeftOut:
    n = problem.x.shape[0]
    terms = linear_terms(problem, count=n - n / len(folds))
    build = dual if dual_form else primal
    centre = jnp.mean(problem.f, axis=0)
    built = build(terms, problem.x, problem.score, problem.root)
    return built.held_out(scaled(problem.f - centre, problem.root), folds).moved(centre)
