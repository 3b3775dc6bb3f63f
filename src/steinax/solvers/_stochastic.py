from math import ceil

import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import Key
from ..families import AbstractLinearFamily
from ._base import AbstractSolver, Solution, linear_solution
from ._general import adam, train_family
from ._linear_system import fitted_values, linear_terms, not_quadratic
from ._optax_descent import optax_descent
from ._optimiser import Optimiser
from ._point_saga import deal, point_saga, point_saga_with_rest
from ._problem import Problem
from ._rows import average, scaled
from ._training import Plan
from ._whitening import LANDMARKS, coefficients, landmarks_of, rest_of_kernel, whiten

# draws up to which what the landmarks leave of a kernel is kept, an array of (n, n)
WITH_REST = 8192


class Stochastic(AbstractSolver):
    r"""Minibatch stochastic optimisation, for any family: the paper's way.

    With no setting at all it finds its own rate. For a linear family it works in coordinates in
    which the loss is nearly round (whitened by the features' moments on up to 1,000 landmark
    draws), by Point-SAGA, whose step needs no rate and whose noise dies out. For any other family
    it is Adam at a few rates side by side, each decayed to zero; the best iterate on held-out draws
    is kept, and for a quadratic loss as much of each control variate as those draws bear out. So it
    is too for a linear family with a loss or penalty that is not a quadratic form. Adam sees
    integrands of mean 0 and variance 1.

    Args:
        optimiser: any of optax; its own rate is used as it is.
        batch_size: draws in a batch. Point-SAGA deals the draws into batches once and visits these
            in a new order every epoch; otherwise each step draws a batch anew.
        epochs: how many times as many draws as there are will have been used.
        precondition: whether a linear family is whitened first; without, the coefficients
            themselves are trained, as in the paper.
        averaging: whether the second half's iterates are averaged, where an optimiser is given.
        hold_out: the share of draws, at the end, that training is stopped by.
        patience: epochs without a gain on those draws after which a given optimiser stops.
        train_hyperparameters: whether kernels' hyper-parameters are trained in the same run.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> g = sx.fit(lambda x: x[0] ** 2, sx.Sample(x, -x), sx.Polynomial(2), solver=Stochastic())
    >>> bool(abs(g.intercept[0] - 1) < 1e-3)
    True
    """

    optimiser: Optimiser | None = eqx.field(static=True, default=None)
    batch_size: int = eqx.field(static=True, default=8)
    epochs: int = eqx.field(static=True, default=25)
    precondition: bool = eqx.field(static=True, default=True)
    averaging: bool = eqx.field(static=True, default=True)
    hold_out: float = eqx.field(static=True, default=0.1)
    patience: int = eqx.field(static=True, default=10)
    train_hyperparameters: bool = eqx.field(static=True, default=False)

    def __check_init__(self) -> None:
        if self.batch_size < 2 or self.epochs < 1:
            raise ValueError(
                f"Stochastic(batch_size={self.batch_size}, epochs={self.epochs}): use batches of 2 or "
                "more, and at least one epoch."
            )
        if not 0 < self.hold_out < 1:
            raise ValueError(f"hold_out={self.hold_out}: it must lie between 0 and 1.")

    def solve(self, problem: Problem, key: Key) -> Solution:
        linear = isinstance(problem.family, AbstractLinearFamily) and not_quadratic(problem) is None
        if linear and self.precondition and not self.train_hyperparameters:
            return self._solve_linear(problem, key)
        steps = ceil(problem.x.shape[0] / self.batch_size)
        own = self.optimiser is None
        plan = Plan(
            adam() if self.optimiser is None else self.optimiser,
            self.batch_size,
            steps,
            self.epochs,
            self.epochs if own else self.patience,  # what a falling rate gains comes late
            decay=own,
            averaging=self.averaging and not own,
        )
        trained = train_family(problem, plan, self.hold_out, self.train_hyperparameters, key)
        note = f"stochastic: {self.epochs} epochs of batches of {self.batch_size}, {trained.how}"
        found = (trained.family, trained.state, trained.params, trained.intercept)
        return Solution(*found, note, trained.history, trained.training)

    def _solve_linear(self, problem: Problem, key: Key) -> Solution:
        settings = (self.optimiser, self.batch_size, self.epochs, self.averaging)
        intercept, coef, states = _whiten_and_descend(problem, key, *settings)
        how = "Point-SAGA" if self.optimiser is None else "the given optimiser"
        note = f"stochastic: {self.epochs} epochs of batches of {self.batch_size}, whitened, {how}"
        return linear_solution(problem, states, coef, intercept, note)


@eqx.filter_jit
def _whiten_and_descend(
    problem: Problem,
    key: Key,
    optimiser: Optimiser | None,
    batch_size: int,
    epochs: int,
    averaging: bool,
) -> tuple[jax.Array, jax.Array, tuple]:
    terms, x, score, root = linear_terms(problem), problem.x, problem.score, problem.root
    f = scaled(problem.f - average(problem.f, root), root)
    one = f.shape[1] == 1 and optimiser is None
    f = f[:, 0] if one else f
    wide = landmarks_of(terms, x, score)
    keep = optimiser is None and len(x) <= WITH_REST
    rest = rest_of_kernel(wide, x, score, root) if keep else None
    # the mean eigenvalue of what is left, beyond the span of the landmarks
    tail = jnp.zeros(()) if rest is None else jnp.trace(rest) / (len(x) * (len(x) - LANDMARKS))
    white, beta = whiten(terms, wide, x, score, tail, root), None
    if optimiser is not None:
        v = optax_descent(white, f, key, optimiser, batch_size, epochs, averaging)
    elif rest is None:
        v = point_saga(white, f, deal(white, f, key, batch_size, epochs))
    else:
        batches = deal(white, f, key, batch_size, epochs)
        v, beta = point_saga_with_rest(white, rest, f, batches)
        beta = beta[:, None] if one else beta
    coef = coefficients(white, x, score, v[:, None] if one else v, beta, root)
    states = tuple(term.state for term in terms)
    values = fitted_values(terms, coef, x, score)
    return average(problem.f - values, root), coef, states
