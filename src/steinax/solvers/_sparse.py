from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._require import require
from .._types import AnyArray, Key
from ..objectives import AbstractPenalty, MeanSquare, NoPenalty
from ..working._blas import one_blas_thread
from ._base import AbstractSolver, Solution, linear_solution
from ._linear_system import Term, linear_terms
from ._problem import Problem
from ._sparse_path import SMALLEST, sparse_fit


class Sparse(AbstractSolver):
    r"""A few of many coefficients, found by the lasso for each integrand, then least squares on these.

    Features are brought to variance one, and

    $$ \frac1{2m} \|f - \Psi \theta - c\|^2
       + \alpha \Big( \rho \|\theta\|_1 + \frac{1 - \rho}2 \|\theta\|^2 \Big) $$

    is solved along a path of falling $\alpha$ by scikit-learn. It says which coefficients are not zero;
    they are found anew without this penalty, and $\alpha$ is the one whose refitted coefficients do best
    on blocks of consecutive draws that were left out. At most half as many are kept as there are
    draws. Zero is on the path, and so is every coefficient where draws are enough for it
    (South, Oates, Mira and Drovandi, 2018).

    For families with many coefficients: a polynomial of degree 4 in 10 dimensions has 1,000. It takes
    one path for each integrand and block, in each fold of `CrossFit`: some tens of times what `Exact`
    takes. Without a penalty of the problem's own the coefficients that are kept are free.

    Args:
        l1_ratio: $\rho$, one for the lasso and less for the elastic net.
        folds: how many blocks are left out in turn.
        length: of the path, in values of $\alpha$.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 50, 5))
    >>> g = sx.fit({"sin": np.sin(x[..., 0])}, sx.Sample(x, -x), sx.Polynomial(4), solver=Sparse())
    >>> g.params.shape, int((g.params != 0).sum()) < 40
    ((125, 1), True)
    """

    l1_ratio: float = eqx.field(static=True, default=1.0)
    folds: int = eqx.field(static=True, default=5)
    length: int = eqx.field(static=True, default=20)

    def __check_init__(self) -> None:
        if not 0 < self.l1_ratio <= 1:
            raise ValueError(
                f"Sparse(l1_ratio={self.l1_ratio}): give 1 for the lasso, or a number between 0 and 1 for "
                "the elastic net. For 0, which keeps every coefficient, use Exact() and Ridge."
            )
        if self.folds < 2 or self.length < 2:
            raise ValueError(
                f"Sparse(folds={self.folds}, length={self.length}): use at least two of each."
            )

    @property
    def penalty(self) -> AbstractPenalty:
        return NoPenalty()

    @property
    def selects(self) -> bool:
        return True

    def solve(self, problem: Problem, key: Key) -> Solution:
        sklearn = require("sklearn.linear_model", extra="sparse")
        path = partial(sklearn.enet_path, l1_ratio=self.l1_ratio)
        n, dtype = problem.x.shape[0], problem.f.dtype
        if n < 4 * self.folds:
            raise ValueError(
                f"{n} draws are too few for {self.folds} blocks of them: give {4 * self.folds} or more, or "
                "use Exact()."
            )
        if problem.root is not None:
            raise ValueError(
                "Sparse() is for draws of equal weight, and these have importance weights: use Exact() with "
                "a penalty such as NativeNorm(1e-3)."
            )
        terms, parts = _features(problem)
        each = zip(terms, parts, strict=True)
        penalties = [_quadratic(term, part, problem.x.shape[1]) for term, part in each]
        shares = np.geomspace(1.0, SMALLEST, self.length) / self.l1_ratio
        f = np.asarray(problem.f, np.float64)
        with one_blas_thread():  # the systems are small, and threads would wait for each other
            intercept, coef = sparse_fit(parts, penalties, f, path, self.folds, shares)
        counts = np.count_nonzero(coef, axis=0)
        kept = (
            f"{counts.min()}"
            if counts.min() == counts.max()
            else f"{counts.min()} to {counts.max()}"
        )
        note = f"sparse: {kept} of {len(coef)} coefficients, {n} draws"
        states = tuple(term.state for term in terms)
        arrays = (jnp.asarray(coef, dtype), jnp.asarray(intercept, dtype))
        return linear_solution(problem, states, *arrays, note)


@eqx.filter_jit
def _features(problem: Problem) -> tuple[tuple[Term, ...], list[jax.Array]]:
    terms, points = linear_terms(problem), (problem.x, problem.score)
    return terms, [term.family.feature_matrix(term.state, *points) for term in terms]


def _quadratic(term: Term, features: AnyArray, dim: int) -> np.ndarray:
    """The matrix of a term's penalty, in units in which the loss is a plain sum of squares."""
    size, weight = features.shape[1], float(term.weight)
    if isinstance(term.penalty, MeanSquare):
        return weight / len(features) * np.asarray(features.T @ features)
    gram = term.gram(dim)
    return weight * (np.eye(size) if gram is None else np.asarray(gram))
