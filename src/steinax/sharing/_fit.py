from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from .._precision import as_leaf, precision, to_numpy
from .._types import AnyArray, Points
from ..data import AffineMap, Sample
from ..families import AbstractFamily, AbstractLinearFamily
from ..fitting import standardised
from ._coupling import Coupling
from ._crossfit import grams_of, terms_of
from ._likelihood import system
from ._related import checked, start_of
from ._tasks import Specs, tasks_of


class CoupledFit(eqx.Module):
    r"""Control variates of several tasks, fitted together: $g_t$ has mean zero under target $t$.

    Call it with the number of a task and draws with scores of that task's target.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(2, 1, 30, 1))
    >>> samples = [sx.Sample(one, -one) for one in x]
    >>> g = sx.sharing.fit_related("x", samples, np.ones((2, 2)), sx.KernelTranslates())
    >>> g(1, x[0, 0], -x[0, 0]).shape
    (30, 1)
    """

    coupling: Coupling
    terms: tuple[AbstractLinearFamily, ...]
    coordinates: AffineMap
    points: tuple[Points, Points]  # all draws and scores, in these coordinates
    task: AnyArray
    sizes: AnyArray  # of the terms' kernels, (term, task)
    alpha: AnyArray
    intercept: AnyArray  # of each task, (task, k)

    def __call__(self, task: int, draws: ArrayLike, scores: ArrayLike) -> np.ndarray:
        """The control variates of one task at some draws: (n, k)."""
        with precision(np.float64):
            x, score = self.coordinates(jnp.asarray(draws), jnp.asarray(scores))
            own = np.full(len(x), task)
            grams = [
                term.cross_gram(term.setup(*self.points), x, score, *self.points)
                / np.sqrt(size[own][:, None] * size[self.task])
                for term, size in zip(self.terms, self.sizes, strict=True)
            ]
            return np.asarray(self.coupling.kernel(jnp.stack(grams), own, self.task) @ self.alpha)


def fit_related(
    f: Specs,
    samples: Sequence[Sample],
    relation: AnyArray,
    family: AbstractFamily,
    *,
    noise: float = 1e-3,
) -> CoupledFit:
    r"""Fit the control variates of several tasks together, to all draws, with a relation that is known.

    With $A = B_{tt'} \sum_j k_j / \text{noise} + 1$ and an intercept for each task, one factorisation
    serves all tasks and integrands. `estimate_related` learns the relation and leaves out folds.

    Args:
        f: the integrands, as for `estimate_related`.
        samples: one for each task.
        relation: $B$, (task, task).
        family: a linear family; its terms, each divided by its mean variance under all tasks, are
            averaged.
        noise: of the integrands, over the mean variance of the kernel.
    """
    tasks, family = tasks_of(f, samples), checked(family)
    with precision(np.float64):
        x, score = (np.concatenate([getattr(s, part) for s in samples]) for part in ("x", "score"))
        x, score, coordinates = standardised(x.astype(np.float64), score.astype(np.float64))
        terms = terms_of(family, x)
        grams, sizes = grams_of(terms, x, score, np.zeros(len(x), int))
        sizes = np.repeat(sizes, tasks.number, axis=1)
        gain = as_leaf(-np.log(noise))
        coupling = Coupling(start_of(relation, 1, tasks.number), gain, np.zeros(len(sizes)))
        dual = system(coupling, grams, jnp.asarray(tasks.task), tasks.number)
        beta, alpha = dual.coefficients(jnp.asarray(tasks.f))
        made = CoupledFit(coupling, terms, coordinates, (x, score), tasks.task, sizes, alpha, beta)
        return to_numpy(made)
