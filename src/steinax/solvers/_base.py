"""The fitting problem, its preparation from a sample and a family, and the base class of solvers."""

import abc
from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from .._show import Described, describe, progress
from .._types import AnyArray, Key, Points, PyTree, Values
from ..data import (
    AffineMap,
    Integrands,
    Sample,
    check_moves,
    spread_of,
    stacked,
    stacked_weights,
    standardise as standardised_by,
)
from ..families import AbstractCoordinateFields, AbstractFamily, AbstractLinearFamily
from ..kernels import resolve
from ..objectives import (
    AbstractObjective,
    AbstractPenalty,
    LeastSquares,
    choose_penalties,
)
from ..operators import AbstractOperator
from ._regression import Folds, HeldOut, scaled

type Weights = Float[AnyArray, " n"] | None
SHELLS = 10  # of distances from the centre, in `typical_share`
REACH = 1.5  # times the distance of the farthest draw: training points beyond have no part in the spread


def unit_weights(weights: AnyArray | None) -> Weights:
    r"""Scale importance weights to mean square 1, for use in least squares.

    $\sum_i w_i^2 (f_i - g_i - c)^2 / n^2$ is the variance of the self-normalised average of $f - g$ if its
    limit is $c$, so the squared residuals are weighted by $w_i^2$.
    """
    if weights is None:
        return None
    flat = np.asarray(weights, np.float64).ravel()
    return flat / np.sqrt(np.mean(flat**2))


def ones(x: AnyArray, weights: Weights) -> AnyArray:
    """The intercept's column of ones, times the weights: (n, 1)."""
    return scaled(jnp.ones((x.shape[0], 1), x.dtype), weights)


def average(values: AnyArray, weights: Weights) -> AnyArray:
    """The mean of each column, weighted by the squares of the weights: (k,)."""
    if weights is None:
        return jnp.mean(values, axis=0)
    return jnp.sum(scaled(values, weights**2), axis=0) / jnp.sum(weights**2)


def centred(rows: AnyArray, weights: Weights) -> AnyArray:
    """Subtract from scaled rows their projection on the intercept's column: (n, p)."""
    if weights is None:
        return rows - jnp.mean(rows, axis=0)
    return rows - jnp.outer(weights, weights @ rows / jnp.sum(weights**2))


class Problem(eqx.Module):
    """A fitting problem: draws, integrands, family, penalties and objective.

    Hyper-parameters are numbers: heuristics in the family have been resolved. Training points are rows that
    are fitted to and never averaged.
    """

    family: AbstractFamily
    penalties: tuple[AbstractPenalty, ...]
    objective: AbstractObjective
    x: Points
    score: Points
    f: Values
    weights: Weights = None  # of the rows, with mean square 1; None for equal weights
    draw: Bool[AnyArray, " n"] | None = None  # which rows are draws; None if all are

    @property
    def draws(self) -> np.ndarray:
        """The indices of the draws among the rows."""
        return np.arange(self.x.shape[0]) if self.draw is None else np.flatnonzero(self.draw)

    @property
    def training(self) -> np.ndarray:
        """The indices of the training points among the rows."""
        return np.arange(0) if self.draw is None else np.flatnonzero(~self.draw)

    def take(self, index: np.ndarray) -> "Problem":
        """Restrict the problem to the rows of the given indices."""
        x, score, f = self.x[index], self.score[index], self.f[index]
        weights = None if self.weights is None else self.weights[index]
        draw = None if self.draw is None else self.draw[index]
        return Problem(self.family, self.penalties, self.objective, x, score, f, weights, draw)

    def loss(
        self,
        state: PyTree,
        params: PyTree,
        intercept: Float[AnyArray, " k"],
        batch: AnyArray | slice,
    ) -> jax.Array:
        """The penalised loss on a batch of draws, summed over integrands."""
        x, score, f = self.x[batch], self.score[batch], self.f[batch]
        residual, penalty = f, jnp.zeros(())
        several = len(self.family.terms) > 1
        states, thetas = (state, params) if several else ((state,), (params,))
        for term, term_state, theta, term_penalty in zip(
            self.family.terms, states, thetas, self.penalties, strict=True
        ):
            values = _evaluate(term, term_state, theta, x, score)
            residual = residual - values
            penalty = penalty + jnp.sum(term_penalty(term, term_state, theta, values))
        if self.weights is not None:
            residual = intercept + scaled(residual - intercept, self.weights[batch])
        return jnp.sum(self.objective(residual, intercept)) + penalty


def _evaluate(
    family: AbstractFamily, state: PyTree, params: PyTree, x: Points, score: Points
) -> jax.Array:
    return jax.vmap(family.evaluate, in_axes=(None, None, 0, 0))(state, params, x, score)


def evaluate(
    family: AbstractFamily, state: PyTree, params: PyTree, x: Points, score: Points
) -> AnyArray:
    """Evaluate the control variates of a family at many points, (n, k)."""
    if not isinstance(family, AbstractLinearFamily):
        return _mapped(family, state, params, x, score)
    if len(family.terms) == 1:
        return family.apply(state, params, x, score)
    total, offset = 0.0, 0
    for term, term_state in zip(family.terms, state, strict=True):
        size = term.size(term_state, x.shape[1])  # type: ignore[attr-defined]
        total = total + term.apply(term_state, params[offset : offset + size], x, score)  # type: ignore
        offset += size
    return total


_mapped = eqx.filter_jit(_evaluate)


class Training(eqx.Module):
    """The course of stochastic training at every learning rate that was tried.

    Attributes:
        losses: on held-out draws after each epoch, (trial, epoch); NaN once training had stopped.
        rates: at the start of each epoch, (trial, epoch); None where the optimiser sets its own.
        chosen: the index of the learning rate with the least loss, whose best iterate was kept.
        iterates: parameters and intercepts after each epoch at that rate, if they were recorded.

    >>> Training(np.array([[0.5, 0.4], [0.3, 0.6]]), None, np.array(1)).losses.shape
    (2, 2)
    """

    losses: Float[AnyArray, "trial epoch"]
    rates: Float[AnyArray, "trial epoch"] | None
    chosen: AnyArray
    iterates: PyTree = None


class Solution(eqx.Module):
    """The best control variate that a solver found.

    `family` is the problem's, with the hyper-parameters that were used; `state` and `params` are
    the family's. For solvers that train, `history` is the held-out loss of the best iterate by epoch, and
    `training` holds the losses and rates of all runs.
    """

    family: AbstractFamily
    state: PyTree
    params: PyTree
    intercept: Float[AnyArray, " k"]
    note: str = eqx.field(static=True, default="")
    history: AnyArray | None = None
    training: Training | None = None

    def evaluate(self, x: Points, score: Points) -> AnyArray:
        """Evaluate the control variates at many points, (n, k)."""
        return evaluate(self.family, self.state, self.params, x, score)


def linear_solution(
    problem: Problem, states: tuple, coef: AnyArray, intercept: AnyArray, note: str
) -> Solution:
    """Wrap the solution of a linear problem; the state of a single term is not put in a tuple."""
    state = states if len(problem.family.terms) > 1 else states[0]
    return Solution(problem.family, state, coef, intercept, note)


def random_key(key: Key | None) -> Key:
    """Return the given key, or a fixed one, so that results are reproducible."""
    return jax.random.key(0) if key is None else key


class AbstractSolver(Described):
    """Base class of solvers of a `Problem`.

    A problem can be seen as a loss on a batch of draws and, for linear families, as a linear system;
    a solver uses the view that it needs.

    >>> from steinax import Exact
    >>> isinstance(Exact(), AbstractSolver)
    True
    """

    references: ClassVar[tuple[str, ...]] = ()

    @property
    def penalty(self) -> AbstractPenalty | None:
        """The default penalty of the solver; None to choose it by the number of draws."""
        return None

    @property
    def selects(self) -> bool:
        """Whether the solver selects coefficients, setting the others to zero before it refits."""
        return False

    def references_for(self, problem: Problem) -> tuple[str, ...]:
        """The citation keys of the methods used for this problem, for `citations`."""
        return self.references

    @abc.abstractmethod
    def solve(self, problem: Problem, key: Key | None = None) -> Solution:
        """Fit to all draws of the problem."""

    def crossfit(self, problem: Problem, folds: Folds, key: Key | None = None) -> HeldOut:
        """Leave out each fold in turn, fit to the other draws, and evaluate on the fold.

        Training sets are cut to a common length, so that one compilation serves all folds.
        """
        n = problem.x.shape[0]
        length = n - max(stop - start for start, stop in folds)
        residuals, intercepts, note = [], [], ""
        with progress("fitting to each fold", total=len(folds)) as bar:
            keys = jax.random.split(random_key(key), len(folds))
            for (start, stop), fold_key in zip(folds, keys, strict=True):
                train = np.r_[0:start, stop:n][:length]
                solution = self.solve(problem.take(train), fold_key)
                residuals.append(_residual(problem.take(np.arange(start, stop)), solution))
                intercept = solution.intercept
                if problem.draw is not None:
                    others = problem.draws[(problem.draws < start) | (problem.draws >= stop)]
                    draws = problem.take(others)
                    intercept = average(_residual(draws, solution), draws.weights)
                intercepts.append(np.asarray(intercept))
                note = solution.note
                bar.advance()
        residual, intercepts = np.concatenate(residuals), np.stack(intercepts)
        return HeldOut(residual, note, intercepts, folds=folds)


def _residual(problem: Problem, solution: Solution) -> np.ndarray:
    """Evaluate f - g on the draws of a problem, (n, k)."""
    return np.asarray(problem.f - solution.evaluate(problem.x, problem.score))


def prepare(
    wanted: Integrands,
    sample: Sample,
    family: AbstractFamily,
    penalty: AbstractPenalty | Sequence[AbstractPenalty] | None,
    objective: AbstractObjective | None,
    standardise: bool = True,
) -> tuple[Problem, AffineMap]:
    """Build the problem in standardised coordinates, with resolved hyper-parameters, and the coordinates.

    Without `standardise` the coordinates are those of the draws, or of their space.
    """
    if not isinstance(family, AbstractFamily):
        what = f"the class {family.__name__}" if isinstance(family, type) else repr(family)
        raise TypeError(f"the family is {what}: give one such as Polynomial(2), or a sum of them.")
    check_moves(sample)
    _check_domain(family, sample)
    objective = LeastSquares() if objective is None else objective
    x, score, coordinates = _coordinates(sample, family, wanted.training is not None, standardise)
    if sample.space is None:
        family = _placed(family, sample, coordinates)
    penalties = choose_penalties(penalty, family, len(x), sample.dim)
    family = family if sample.space is None else _moved(family, coordinates)
    weights = unit_weights(stacked_weights(sample, wanted.training is not None))
    draw = None if len(x) == sample.size else np.arange(len(x)) < sample.size
    parts = (resolve(family, x), penalties, objective, x, score, wanted.rows, weights, draw)
    return Problem(*parts), coordinates


def _check_domain(family: AbstractFamily, sample: Sample) -> None:
    """Refuse operators whose domain is not that of the draws."""
    home = "reals" if sample.space is None else sample.space.domain
    for term in family.terms:
        operator = getattr(term, "operator", None)  # a user-defined family may have none
        domain = home if operator is None else operator.domain
        if domain != home:
            raise TypeError(
                f"the operator of {describe(term)} has mean zero on {domain}, and the draws live on {home}: "
                "give an operator and a space of the sample that belong together: see steinax.spaces."
            )


def _coordinates(
    sample: Sample, family: AbstractFamily, training: bool, standardise: bool
) -> tuple[AnyArray, AnyArray, AffineMap]:
    """Stack the draws, and the training points if they are used, in standardised coordinates or as given."""
    x, score = stacked(sample, training)
    if sample.space is None and not standardise:
        coordinates = AffineMap(np.zeros(sample.dim, x.dtype), np.ones(sample.dim, x.dtype))
    elif sample.space is None:
        whiten, weights = spread_of(sample)
        if family.keeps_coordinates:  # scale each coordinate by itself
            whiten = False
        seen = slice(None if weights is None else sample.size)
        # a parametric family spans the same functions in any coordinates, which only its penalty depends on
        spans_all = all(getattr(term, "is_parametric", False) for term in family.terms)
        coordinates = standardised_by(x[seen], whiten, weights, None if spans_all else score[seen])
    else:
        coordinates = AffineMap(*sample.space.coordinates(x))
    return *coordinates(x, score), coordinates


def _placed(family: AbstractFamily, sample: Sample, coordinates: AffineMap) -> AbstractFamily:
    """Tell families that refer to single coordinates the names and units of these."""

    def refers(node: PyTree) -> bool:
        return isinstance(node, AbstractCoordinateFields)

    def place(node: PyTree) -> PyTree:
        shape = (coordinates.shift, coordinates.scale)
        return node.placed(sample.names, *shape) if refers(node) else node

    return jax.tree.map(place, family, is_leaf=refers)


def _moved(family: AbstractFamily, coordinates: AffineMap) -> AbstractFamily:
    """Transform the operators of a family that depend on location to the coordinates of a space."""

    def is_operator(node: PyTree) -> bool:
        return isinstance(node, AbstractOperator)

    def move(node: PyTree) -> PyTree:
        return node.moved(coordinates.shift, coordinates.scale) if is_operator(node) else node

    return jax.tree.map(move, family, is_leaf=is_operator)


def typical_share(x: AnyArray, draw: np.ndarray | None) -> np.ndarray | None:
    """The share of each draw and training point in the spread of residuals, (rows,); None if all are draws.

    Training points need not be distributed as the draws are: leapfrog states reach farther out. So rows are
    sorted into shells by their distance from the centre. A shell between quantiles of the draws counts as
    it does among the draws, and the shell beyond the last of n draws counts 1 / (n + 1), which is the
    expected probability of the region outside; points much farther out count nothing.

    Args:
        x: standardised coordinates, (rows, dim).
        draw: which rows are draws, (rows,); None for all.
    """
    if draw is None or draw.all():
        return None
    radius = np.linalg.norm(np.asarray(x), axis=1)
    inner, n = radius[draw], int(draw.sum())
    count = max(min(SHELLS, n // 5), 1)
    edges = np.quantile(inner, np.linspace(0, 1, count + 1))[1:]
    shell = np.searchsorted(edges, radius)  # the last is beyond all draws
    used = radius <= REACH * edges[-1]
    rows = np.bincount(shell[used], minlength=count + 1)
    mass = np.array([*np.full(count, n / count), 1.0]) * (rows > 0)
    return np.where(used, (mass / np.maximum(rows, 1))[shell], 0.0) / mass.sum()


def with_training(
    folds: Folds, training: int, most: int | None = None
) -> tuple[np.ndarray, Folds, np.ndarray | None]:
    """Deal training points to the folds of draws, so that each is held out with one of them.

    Args:
        folds: the start and stop of each fold of draws.
        training: the number of training points, which are the rows after the draws.
        most: the most training points to use, evenly spaced; all by default.

    Returns:
        The order of the rows, in which each fold of draws is followed by its training points; where the folds
        start and stop in it; and which of the rows are draws, None if all are.

    >>> with_training(((0, 2), (2, 4)), 3)
    (array([0, 1, 4, 5, 2, 3, 6]), ((0, 4), (4, 7)), array([ True,  True, False, False,  True,  True, False]))
    >>> with_training(((0, 2), (2, 4)), 30, most=2)[0]
    array([ 0,  1, 11,  2,  3, 26])
    """
    n = folds[-1][1]
    if not training:
        return np.arange(n), folds, None
    count = training if most is None else min(training, most)
    points = n + ((np.arange(count) + 0.5) * training / count).astype(int)
    edges = np.ceil(np.linspace(0, count, len(folds) + 1)).astype(int)
    dealt = zip(folds, pairwise(edges), strict=True)
    parts = [np.r_[i:j, points[a:b]] for (i, j), (a, b) in dealt]
    order, stops = np.concatenate(parts), np.cumsum([0, *map(len, parts)])
    return order, tuple((int(i), int(j)) for i, j in pairwise(stops)), order < n
