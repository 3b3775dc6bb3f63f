from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._precision import precision, to_numpy
from .._progress import progress
from .._types import AnyArray, Key, PyTree, Values
from ..chains import chain_statistics, controlled_statistics
from ..data import AffineMap, Integrands, Sample, integrands
from ..data._integrands import IntegrandSpec
from ..estimation import CrossFit, Estimate
from ..estimation._audited import AuditMode, audited, with_audit
from ..estimation._result import beside
from ..estimation._stability import instability
from ..families import Network
from ..fitting import ControlVariate, random_key, standardised
from ..solvers import evaluate
from ._meta_training import Plan, adapted, train
from ._tasks import Specs, tasks_of


class MetaNetwork(eqx.Module):
    r"""A network from which a few gradient steps lead to the control variate of a new task.

    Attributes:
        family: the network, $u_\theta$.
        params: $\theta$, from which every task starts.
        coordinates: in which all tasks are standardised.
        scale: of the integrands, (k,).
        steps: of gradient descent on the draws of a task.
        rate: of these steps.
        names: of the integrands.
    """

    family: Network
    params: PyTree
    coordinates: AffineMap
    scale: AnyArray
    rate: AnyArray
    steps: int = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)

    def adapt(self, f: IntegrandSpec | Integrands, sample: Sample) -> ControlVariate:
        """The control variate of a new task, after a few steps on its draws."""
        wanted = self._wanted(f, sample)
        with precision(np.float64):
            params, centre = self._adapted(*self._rows(wanted, sample))
            note = f"{self.steps} gradient steps from {len(self.names)} meta-learned outputs"
            shared = to_numpy(self.coordinates)
            found = self.family, None, to_numpy(params), np.asarray(centre), shared
        return ControlVariate(*found, wanted.names, note)

    def estimate(
        self, f: IntegrandSpec | Integrands, sample: Sample, *, audit: AuditMode = "raise"
    ) -> Estimate:
        """The expectations of a new task: adapted to all folds but one and used there, in turn."""
        wanted, report = self._wanted(f, sample), audited(sample, audit)
        folds = CrossFit().boundaries(sample.chains, sample.length)
        with precision(np.float64):
            x, score, values = self._rows(wanted, sample)
            rest, centres = np.empty(values.shape), []
            fewest = len(x) - max(b - a for a, b in folds)  # one length, one compilation
            for start, stop in folds:
                seen = np.delete(np.arange(len(x)), np.arange(start, stop))[:fewest]
                params, centre = self._adapted(x[seen], score[seen], values[seen])
                found = evaluate(self.family, None, params, x[start:stop], score[start:stop])
                rest[start:stop] = values[start:stop] - found
                centres.append(np.asarray(centre))
        moved = instability(rest, np.array(centres), folds)
        plain = chain_statistics(wanted.values)
        better = controlled_statistics(rest.reshape(wanted.values.shape), wanted.values, moved)
        note = f"{len(folds)} folds, {self.steps} gradient steps for each"
        made = beside(
            better, plain, wanted.names, ("meta-learned Network",) * len(plain.mean), note
        )
        return with_audit(made, report, audit)

    def _wanted(self, f: IntegrandSpec | Integrands, sample: Sample) -> Integrands:
        wanted, dim = integrands(f, sample), self.coordinates.shift.shape[0]
        if len(wanted.names) != len(self.names) or sample.dim != dim:
            raise ValueError(
                f"{len(wanted.names)} integrands of {sample.dim} dimensions: give {len(self.names)} of "
                f"{dim}, as in the tasks that the network was trained on."
            )
        return wanted

    def _rows(self, wanted: Integrands, sample: Sample) -> tuple[AnyArray, AnyArray, AnyArray]:
        x, score = self.coordinates(jnp.asarray(sample.x), jnp.asarray(sample.score))
        return x, score, wanted.values.reshape(sample.size, -1)

    def _adapted(self, x: AnyArray, score: AnyArray, f: Values) -> tuple[PyTree, jax.Array]:
        """Parameters in the units of f, and the mean of f - g."""
        scaled = jnp.asarray(f) / self.scale
        found, centre = adapted(self.family, self.params, (x, score, scaled), self.rate, self.steps)
        return self.family.rescale(found, jnp.asarray(self.scale)), centre * self.scale


class Settings(NamedTuple):
    """How a network is trained across tasks."""

    iterations: int = 2000
    batch: int = 5  # tasks in each
    rate: float = 3e-3
    inner_steps: int = 5
    inner_rate: float = 0.01


def meta_learn(
    f: Specs,
    samples: Sequence[Sample],
    network: Network | None = None,
    *,
    settings: Settings | None = None,
    key: Key | None = None,
) -> MetaNetwork:
    r"""Train a network across tasks, so that a few steps on few draws of a new one suffice.

    For each of some tasks $\theta$ takes a few gradient steps on half of the draws; the gradient of the
    loss on the other half, taken where they end, moves $\theta$ (first-order MAML).

    Args:
        f: the integrands, for all tasks or a list with those of each.
        samples: one for each task; all are cut to the length of the shortest.
        network: the family; `Network()` by default.
        settings: of the training.
        key: for the initial network and the choice of tasks; a fixed one by default.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(6, 1, 20, 1))
    >>> samples = [sx.Sample(one, -one) for one in x]
    >>> quick = sx.sharing.Settings(iterations=50)
    >>> meta = sx.sharing.meta_learn("x", samples[:5], settings=quick)
    >>> meta.adapt("x", samples[5])(x[0], -x[0]).shape
    (1, 20, 1)
    """
    settings = Settings() if settings is None else settings
    tasks, family = tasks_of(f, samples), Network() if network is None else network
    key = random_key(key)
    with precision(np.float64), progress("meta-learning"):
        flat = [np.concatenate([getattr(s, part) for s in samples]) for part in ("x", "score")]
        x, score, coordinates = standardised(*(one.astype(np.float64) for one in flat))
        scale = np.maximum(_spread(tasks.f, tasks.task), 1e-300)
        shortest = min(sample.size for sample in samples)
        starts = np.cumsum([0, *(sample.size for sample in samples[:-1])])
        rows = starts[:, None] + np.arange(shortest)
        data = (x[rows], score[rows], jnp.asarray(tasks.f / scale)[rows])
        start = family.init(None, x, tasks.f.shape[1], key)
        plan = Plan(settings.iterations, settings.batch, settings.inner_steps)
        rates = jnp.asarray([settings.rate, settings.inner_rate])
        params = train(family, start, data, rates, jax.random.fold_in(key, 1), plan)
        inner = np.asarray(settings.inner_rate)
        made = (to_numpy(params), to_numpy(coordinates), scale, inner)
    return MetaNetwork(family, *made, settings.inner_steps, tasks.wanted[0].names)


def _spread(f: Values, task: np.ndarray) -> np.ndarray:
    """The standard deviation within tasks, (k,)."""
    within = [f[task == t].var(axis=0) for t in np.unique(task)]
    return np.sqrt(np.mean(within, axis=0))
