"""Fit a control variate to the draws and scores of a sample."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from ._numerics import few_threads, precision, to_numpy
from ._serialise import from_bytes, to_bytes
from ._show import describe, progress
from ._types import AnyArray, Key, PyTree
from .data import (
    AffineMap,
    Integrands,
    IntegrandSpec,
    Sample,
    Stream,
    integrands,
)
from .families import AbstractFamily
from .objectives import (
    AbstractObjective,
    AbstractPenalty,
)
from .solvers import AbstractSolver, Auto, Training, evaluate, prepare


class ControlVariate(eqx.Module):
    r"""A fitted control variate $g$: a function of mean zero under the target, close to $f - c$.

    Call it on draws and scores, of any leading shape, to evaluate $g$, with a last axis over the
    integrands. `intercept` is $c$, the in-sample estimate of the expectation. If g was trained, `history` is
    the held-out loss of the best iterate by epoch, and `training` describes all learning rates tried.

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
        """Evaluate the control variates of all integrands at the given draws: (..., k)."""
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

    def after(self, epoch: int) -> "ControlVariate":
        """Return the control variate after an epoch of training with `Stochastic(record=True)`.

        Args:
            epoch: from 1 to the number of epochs.
        """
        iterates = None if self.training is None else self.training.iterates
        if iterates is None:
            raise ValueError(
                "the epochs of this control variate were not recorded: fit a Network with "
                "solver=Stochastic(record=True), or a linear family with precondition=False too."
            )
        if not 1 <= epoch <= len(iterates[1]):
            raise ValueError(f"epoch={epoch}: give a number from 1 to {len(iterates[1])}.")
        params, intercept = jax.tree.map(lambda values: values[epoch - 1], iterates)
        return replace(self, params=params, intercept=intercept)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to one file (NumPy's npz, without pickle); `load` reads it back."""
        Path(path).write_bytes(to_bytes(self))

    @staticmethod
    def load(path: str | os.PathLike[str]) -> "ControlVariate":
        """Read a control variate written by `save`. Nothing in the file is executed."""
        if not Path(path).exists():
            raise FileNotFoundError(f"there is no file {path}: check the path.")
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
    standardise: bool = True,
) -> ControlVariate:
    r"""Fit a control variate to all draws of a sample.

    Draws and scores are standardised first, unless `standardise` is False. Then

    $$ \min_{c, \theta}\; J(f - \mathcal{L} u_\theta, c) + \lambda\, \Omega(\theta) $$

    is solved over the family's parameters, for all integrands at once.

    Args:
        f: the integrands: a name, a function of one draw, an array, or a dict of these.
        sample: the draws and scores.
        family: the functions $u_\theta$; it carries the operator $\mathcal{L}$.
        penalty: $\lambda \Omega$, one for all terms of the family or one for each.
        objective: $J$, `LeastSquares()` by default.
        solver: `Auto()` by default.
        key: for solvers that draw random numbers; a fixed one by default.
        standardise: whether $u_\theta$ is a function of standardised coordinates, in which penalties and
            length-scales do not depend on units, or of the draws as they are given.

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
    with (
        precision(sample.dtype),
        few_threads(sample),
        progress("fitting the control variate"),
    ):
        solver = Auto() if solver is None else solver
        penalty = solver.penalty if penalty is None else penalty
        problem, coordinates = prepare(wanted, sample, family, penalty, objective, standardise)
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
