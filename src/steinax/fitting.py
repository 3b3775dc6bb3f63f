"""Where operator, family, objective and solver meet: fit a control variate."""

import os
from collections.abc import Sequence
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from ._precision import precision, to_numpy
from ._progress import progress
from ._serialise import from_bytes, to_bytes
from ._show import describe
from ._types import AnyArray, Key, PyTree
from .data import AffineMap, Integrands, Sample, Stream, integrands, standardise
from .data._coordinates import DRAWS_PER_DIM, check_moves
from .data._integrands import IntegrandSpec
from .data._sample import kish_size
from .families import AbstractFamily
from .kernels import resolve
from .objectives import (
    AbstractObjective,
    AbstractPenalty,
    LeastSquares,
    choose_penalties,
)
from .operators import AbstractOperator
from .solvers import AbstractSolver, Auto, Problem, Training, evaluate
from .solvers._base import root_of


class ControlVariate(eqx.Module):
    r"""A fitted control variate $g$: a function of mean zero under the target, close to $f - c$.

    Call it on draws and scores, of any leading shape, to get $g$ there, with a last axis over the
    integrands. `intercept` is $c$, the in-sample estimate of the expectation. `history` is the held-out
    loss of the best iterate by epoch and `training` all rates that were tried, where g was trained.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 100, 2))
    >>> g = sx.fit(lambda x: x[0] ** 2, sx.Sample(x, -x), sx.Polynomial(2))
    >>> new = np.random.default_rng(1).normal(size=(5, 2))
    >>> np.allclose(new[:, 0] ** 2 - g(new, -new)[:, 0], 1.0)
    True
    """

    family: AbstractFamily
    state: PyTree
    params: PyTree
    intercept: Float[AnyArray, " k"]
    coordinates: AffineMap
    names: tuple[str, ...] = eqx.field(static=True)
    note: str = eqx.field(static=True)
    history: AnyArray | None = None
    training: Training | None = None

    def __call__(self, draws: ArrayLike, scores: ArrayLike) -> np.ndarray:
        """The control variates of all integrands at the given draws: (..., k)."""
        dtype = self.intercept.dtype
        draws, scores = np.asarray(draws, dtype), np.asarray(scores, dtype)
        dim = self.coordinates.shift.shape[0]
        if draws.shape != scores.shape or draws.shape[-1:] != (dim,):
            raise ValueError(
                f"draws of shape {draws.shape} and scores of shape {scores.shape}: both must end in "
                f"{dim}, the dimension of the draws that the control variate was fitted to."
            )
        with precision(dtype):
            x, score = self.coordinates(draws.reshape(-1, dim), scores.reshape(-1, dim))
            values = evaluate(self.family, self.state, self.params, x, score)
        return np.asarray(values).reshape(*draws.shape[:-1], -1)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to one file (NumPy's npz, no pickle in it); `load` reads it back."""
        Path(path).write_bytes(to_bytes(self))

    @staticmethod
    def load(path: str | os.PathLike[str]) -> "ControlVariate":
        """Read what `save` wrote. Nothing in the file is executed."""
        loaded = from_bytes(Path(path).read_bytes())
        if not isinstance(loaded, ControlVariate):
            raise ValueError(f"{path} holds a {type(loaded).__name__}, not a control variate.")
        return loaded

    def __repr__(self) -> str:
        k = len(self.names)
        count = "1 integrand" if k == 1 else f"{k} integrands"
        return f"ControlVariate({describe(self.family)}, {count}, {self.note})"


def fit(
    f: IntegrandSpec | Integrands,
    sample: Sample,
    family: AbstractFamily,
    *,
    penalty: AbstractPenalty | Sequence[AbstractPenalty] | None = None,
    objective: AbstractObjective | None = None,
    solver: AbstractSolver | None = None,
    key: Key | None = None,
) -> ControlVariate:
    r"""Fit a control variate to all draws of a sample.

    Draws and scores are standardised first. Then

    $$ \min_{c, \theta}\; J(f - \mathcal{L} u_\theta, c) + \lambda\, \Omega(\theta) $$

    is solved over the family's parameters, for all integrands at once.

    Args:
        f: the integrands: a name, a function of one draw, an array, or a dict of these.
        sample: the draws and scores.
        family: what $u_\theta$ may be; it carries the operator $\mathcal{L}$.
        penalty: $\lambda \Omega$, one for all terms of the family or one for each.
        objective: $J$, `LeastSquares()` by default.
        solver: `Auto()` by default.
        key: for solvers that draw random numbers; a fixed one by default.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 100, 2))
    >>> g = sx.fit("x", sx.Sample(x, -x), sx.Polynomial(2) + sx.KernelTranslates())
    >>> g.names
    ('x[0]', 'x[1]')
    """
    if isinstance(sample, Stream):
        raise TypeError(
            "fit needs its draws in memory: give a Sample, or use estimate on the stream."
        )
    wanted = integrands(f, sample)
    with precision(sample.dtype), progress("fitting the control variate"):
        solver = Auto() if solver is None else solver
        penalty = solver.penalty if penalty is None else penalty
        problem, coordinates = prepare(wanted, sample, family, penalty, objective)
        solution = solver.solve(problem, key)
        return ControlVariate(
            to_numpy(solution.family),
            to_numpy(solution.state),
            to_numpy(solution.params),
            np.asarray(solution.intercept),
            to_numpy(coordinates),
            wanted.names,
            solution.note,
            to_numpy(solution.history),
            to_numpy(solution.training),
        )


def prepare(
    wanted: Integrands,
    sample: Sample,
    family: AbstractFamily,
    penalty: AbstractPenalty | Sequence[AbstractPenalty] | None,
    objective: AbstractObjective | None,
) -> tuple[Problem, AffineMap]:
    """The problem in standardised coordinates, its hyper-parameters found, and the coordinates."""
    if not isinstance(family, AbstractFamily):
        what = f"the class {family.__name__}" if isinstance(family, type) else repr(family)
        raise TypeError(f"the family is {what}: give one such as Polynomial(2), or a sum of them.")
    check_moves(sample)
    _check_domain(family, sample)
    penalties = choose_penalties(penalty, family, sample.size, sample.dim)
    objective = LeastSquares() if objective is None else objective
    x, score, coordinates = _standardised(sample, family)
    family = family if sample.space is None else _moved(family, coordinates)
    values = np.asarray(wanted.values, np.float64).reshape(sample.size, -1)
    root = root_of(sample.weights)
    problem = Problem(resolve(family, x), penalties, objective, x, score, values, root)
    return problem, coordinates


def _check_domain(family: AbstractFamily, sample: Sample) -> None:
    """Refuse operators that have mean zero elsewhere than where the draws live."""
    home = "reals" if sample.space is None else sample.space.domain
    for term in family.terms:
        operator = getattr(term, "operator", None)  # a family of one's own may have none
        domain = home if operator is None else operator.domain
        if domain != home:
            raise TypeError(
                f"the operator of {describe(term)} has mean zero on {domain}, and the draws live on {home}: "
                "give the operator and the sample's space that belong together, see steinax.spaces."
            )


def _standardised(sample: Sample, family: AbstractFamily) -> tuple[AnyArray, AnyArray, AffineMap]:
    x, score = (np.asarray(part, np.float64) for part in (sample.x, sample.score))
    if sample.space is None:
        whiten, weights = spread_of(sample)
        if family.keeps_coordinates:  # each coordinate by itself
            whiten = False
        coordinates = standardise(x, whiten, weights)
    else:
        coordinates = AffineMap(*sample.space.coordinates(x))
    return *coordinates(x, score), coordinates


def _moved(family: AbstractFamily, coordinates: AffineMap) -> AbstractFamily:
    """The family in the coordinates of a space: operators that know of places are moved along."""

    def is_operator(node: PyTree) -> bool:
        return isinstance(node, AbstractOperator)

    def move(node: PyTree) -> PyTree:
        return node.moved(coordinates.shift, coordinates.scale) if is_operator(node) else node

    return jax.tree.map(move, family, is_leaf=is_operator)


def spread_of(sample: Sample) -> tuple[bool | None, AnyArray | None]:
    """Whether to whiten by a weighted covariance, and the weights: (n,), or None where it is not weighted.

    Weights that are worth a handful of draws say less of the spread than the draws do.
    """
    if sample.weights is None or kish_size(sample.weights) < DRAWS_PER_DIM:
        return None, None
    whiten = kish_size(sample.weights) >= DRAWS_PER_DIM * sample.dim
    return whiten, sample.weights.ravel().astype(np.float64)
