"""Sparse least squares: coefficients selected along the path of an elastic net."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._numerics import TINY, one_blas_thread
from .._require import require
from .._types import AnyArray, Key
from ..objectives import AbstractPenalty, MeanSquare, NoPenalty
from ._base import AbstractSolver, Problem, Solution, linear_solution
from ._exact import Term, linear_terms

SMALLEST = 1e-4  # the last penalty of a path, relative to the first, which keeps no column
SWEEPS = 30  # of coordinate descent per penalty: more hardly change which columns are kept
NEAR = 1.01  # errors within this factor of the least count as equal: the fewest columns are kept
NOTHING = 1e-20  # sums of squares below this fraction of those of f are rounding errors

# scikit-learn's `enet_path` with `l1_ratio` given: a function of columns, f, penalties and products
type Path = Callable[..., tuple]


class CentredColumns(NamedTuple):
    """Centred columns on some of the draws, their means, and the products of all pairs."""

    columns: np.ndarray
    mean: np.ndarray
    gram: np.ndarray
    penalty: np.ndarray  # the matrix of the problem's own penalty

    def kept(self, f: np.ndarray, path: Path, alphas: np.ndarray) -> Iterator[np.ndarray]:
        """Iterate over the columns that each penalty of the path keeps, at most half the number of draws.

        The path ends at the first penalty that keeps more. If none does, all columns that are not constant
        come last, as without a penalty, unless there are too many.
        """
        most, cross = len(f) // 2, self.columns.T @ f
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # coordinate descent has not converged
            _, coefs, *_ = path(
                self.columns,
                f,
                alphas=alphas,
                precompute=self.gram,
                Xy=cross,
                max_iter=SWEEPS,
                random_state=0,
            )
        moving = np.flatnonzero(np.diag(self.gram) > 0)
        for coef in coefs.T:
            kept = np.flatnonzero(coef)
            if len(kept) > most:
                return
            yield kept
        if len(moving) <= most:
            yield moving

    def solve(self, f: np.ndarray, kept: np.ndarray) -> np.ndarray:
        """Solve least squares on the given columns, by normal equations."""
        gram = self.gram[np.ix_(kept, kept)] + self.penalty[np.ix_(kept, kept)]
        floor = TINY * np.trace(gram)
        return np.linalg.solve(gram + floor * np.eye(len(kept)), self.columns[:, kept].T @ f)

    def refit(self, f: np.ndarray, kept: np.ndarray) -> np.ndarray:
        """Solve least squares on the given columns to full accuracy, by an orthogonal decomposition."""
        values, vectors = np.linalg.eigh(self.penalty[np.ix_(kept, kept)])
        factor = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
        right = np.concatenate([f, np.zeros(len(kept))])
        return np.linalg.lstsq(np.concatenate([self.columns[:, kept], factor]), right)[0]


def part_of(columns: np.ndarray, penalty: np.ndarray) -> CentredColumns:
    """Centre columns (n, p) and compute the products of their pairs."""
    mean = columns.mean(axis=0)
    centred = np.asfortranarray(columns - mean)
    return CentredColumns(centred, mean, centred.T @ centred, penalty)


def sparse_fit(
    features: Sequence[AnyArray],
    penalties: Sequence[np.ndarray],
    f: np.ndarray,
    path: Path,
    folds: int,
    shares: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Compute the intercepts (k,) and the coefficients (p, k), most of them zero.

    Args:
        features: the features of each term, (n, p).
        penalties: the matrix of each term's penalty.
        f: the integrands, (n, k).
        path: computes the coefficients at decreasing penalties.
        folds: the number of blocks of draws that are left out in turn.
        shares: the penalties, in units of the least one that keeps no column.
    """
    from scipy.linalg import block_diag

    raw = np.concatenate([np.asarray(matrix, np.float64) for matrix in features], axis=1)
    size = raw.std(axis=0)
    moves = size > 1e-12 * np.abs(raw).max(axis=0)
    unit = np.where(moves, size, 1.0)
    columns, penalty = raw / unit * moves, block_diag(*penalties) / np.outer(unit, unit)
    whole, mean_f = part_of(columns, penalty), f.mean(axis=0)
    slopes = np.abs(whole.columns.T @ (f - mean_f)).max(axis=0, initial=0.0) / len(f)
    errors = np.zeros((len(shares) + 1, f.shape[1]))
    for block in np.array_split(np.arange(len(f)), folds):
        errors += _errors(columns, penalty, f, block, path, np.outer(shares, slopes))
    coef = np.zeros((raw.shape[1], f.shape[1]))
    squares = np.sum((f - mean_f) ** 2, axis=0)
    for i in np.flatnonzero(slopes > 1e-13 * np.abs(f).max(axis=0)):
        good = errors[:, i] <= NEAR * errors[:, i].min() + NOTHING * squares[i]
        best, target = int(np.argmax(good)), f[:, i] - mean_f[i]
        supports = list(whole.kept(target, path, shares[: best + 1] * slopes[i]))
        kept = supports[min(best, len(supports) - 1)]
        coef[kept, i] = whole.refit(target, kept)
    return mean_f - whole.mean @ coef, coef / unit[:, None]


def _errors(
    columns: np.ndarray,
    penalty: np.ndarray,
    f: np.ndarray,
    block: np.ndarray,
    path: Path,
    alphas: np.ndarray,
) -> np.ndarray:
    """The squared errors on a block of fits to the other draws, at each penalty and at none: (.., k)."""
    inside = np.zeros(len(f), bool)
    inside[block] = True
    train, mean_f = part_of(columns[~inside], penalty), f[~inside].mean(axis=0)
    train_f, test, target = f[~inside] - mean_f, columns[inside] - train.mean, f[inside] - mean_f
    errors = np.full((len(alphas) + 1, f.shape[1]), np.inf)
    errors[0] = np.sum(target**2, axis=0)
    for i in np.flatnonzero(alphas[0] > 0):
        previous = np.zeros(0, int)
        for step, kept in enumerate(train.kept(train_f[:, i], path, alphas[:, i])):
            if np.array_equal(kept, previous):
                errors[step, i] = errors[max(step - 1, 0), i]
                continue
            residual = target[:, i] - test[:, kept] @ train.solve(train_f[:, i], kept)
            errors[step, i], previous = np.sum(residual**2), kept
    return errors


class Sparse(AbstractSolver):
    r"""Select a few of many coefficients by the lasso for each integrand, then refit by least squares.

    Features are scaled to variance one, and

    $$ \frac1{2m} \|f - \Psi \theta - c\|^2
       + \alpha \Big( \rho \|\theta\|_1 + \frac{1 - \rho}2 \|\theta\|^2 \Big) $$

    is solved along a path of decreasing $\alpha$ by scikit-learn. This selects the non-zero coefficients,
    which are refitted without this penalty; the $\alpha$ chosen is the one whose refitted coefficients have
    the least error on held-out blocks of consecutive draws. The number of coefficients kept is at most half
    the number of draws. The path starts with no coefficient and, given enough draws, ends with all of them
    (South, Oates, Mira and Drovandi, 2018).

    It is for families with many coefficients: a polynomial of degree 4 in 10 dimensions has 1,000. It
    computes one path per integrand and block, in each fold of `CrossFit`: some tens of times the cost of
    `Exact`. Unless the problem has its own penalty, the coefficients that are kept have none.

    Args:
        l1_ratio: $\rho$, 1 for the lasso and less for the elastic net.
        folds: the number of blocks that are left out in turn.
        length: the number of values of $\alpha$ on the path.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 50, 5))
    >>> g = sx.fit({"sin": np.sin(x[..., 0])}, sx.Sample(x, -x), sx.Polynomial(4), solver=Sparse())
    >>> g.params.shape, int((g.params != 0).sum()) < 40
    ((125, 1), True)
    """

    references: ClassVar[tuple[str, ...]] = ("south2018regularized",)
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

    def solve(self, problem: Problem, key: Key | None = None) -> Solution:
        sklearn = require("sklearn.linear_model", extra="sparse")
        path = partial(sklearn.enet_path, l1_ratio=self.l1_ratio)
        n, dtype = problem.x.shape[0], problem.f.dtype
        if n < 4 * self.folds:
            raise ValueError(
                f"{n} draws are too few for {self.folds} blocks of them: give {4 * self.folds} or more, or "
                "use Exact()."
            )
        if problem.weights is not None:
            raise ValueError(
                "Sparse() is for draws of equal weight, and these have importance weights: use Exact() with "
                "a penalty such as NativeNorm(1e-3)."
            )
        terms, features = _features(problem)
        pairs = zip(terms, features, strict=True)
        penalties = [_quadratic(term, matrix, problem.x.shape[1]) for term, matrix in pairs]
        shares = np.geomspace(1.0, SMALLEST, self.length) / self.l1_ratio
        f = np.asarray(problem.f, np.float64)
        with one_blas_thread():  # the systems are too small for threads
            intercept, coef = sparse_fit(features, penalties, f, path, self.folds, shares)
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
    if isinstance(term.penalty, MeanSquare):
        return float(term.weight) / len(features) * np.asarray(features.T @ features)
    return term.form(dim)
