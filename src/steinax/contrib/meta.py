"""Meta-learning: a network trained across tasks, which a few gradient steps adapt to a new one."""

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..auditing import AuditMode, audited
from ..citing import references_of
from ..data import AffineMap, Integrands, IntegrandSpec, Sample, integrands, standardise
from ..estimation import CrossFit, Estimate, with_audit
from ..families import Network
from ..fitting import ControlVariate
from ..solvers import HeldOut, evaluate
from .tasks import Specs, tasks_of

type Data = tuple[Any, Any, Any]  # draws, scores and integrands of a task, or of all tasks


class Settings(NamedTuple):
    """Settings for training a network across tasks."""

    iterations: int = 2000
    batch: int = 5  # tasks per iteration
    rate: float = 3e-3
    inner_steps: int = 5
    inner_rate: float = 0.01


class MetaNetwork(eqx.Module):
    r"""A meta-learned network, which a few gradient steps adapt to a new task.

    Attributes:
        family: the network, $u_\theta$.
        params: the initial parameters $\theta$ of every task.
        coordinates: the coordinates in which all tasks are standardised.
        scale: the scale of the integrands, (k,).
        steps: the number of steps of gradient descent on the draws of a task.
        rate: the learning rate of these steps.
        names: the names of the integrands.
    """

    references: ClassVar[tuple[str, ...]] = ("sun2023meta",)
    family: Network
    params: Any
    coordinates: AffineMap
    scale: np.ndarray
    rate: np.ndarray
    steps: int = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)

    def adapt(self, f: IntegrandSpec | Integrands, sample: Sample) -> ControlVariate:
        """Fit the control variate of a new task by a few gradient steps on its draws."""
        wanted = self._wanted(f, sample)
        with jax.enable_x64(True):
            params, centre = self._adapted(*self._rows(wanted, sample))
        note = f"{self.steps} gradient steps from {len(self.names)} meta-learned outputs"
        return ControlVariate(
            self.family, None, params, centre, self.coordinates, wanted.names, note
        )

    def estimate(
        self, f: IntegrandSpec | Integrands, sample: Sample, *, audit: AuditMode = "raise"
    ) -> Estimate:
        """Estimate the expectations of a new task, adapting to all folds but one in turn."""
        wanted, report = self._wanted(f, sample), audited(sample, audit)
        folds = CrossFit().boundaries(sample.chains, sample.length)
        with jax.enable_x64(True):
            x, score, values = self._rows(wanted, sample)
            residual, centres = np.empty(values.shape), []
            fewest = len(x) - max(
                b - a for a, b in folds
            )  # equal lengths, so that one compilation serves all folds
            for start, stop in folds:
                train = np.delete(np.arange(len(x)), np.arange(start, stop))[:fewest]
                params, centre = self._adapted(x[train], score[train], values[train])
                g = evaluate(self.family, None, params, x[start:stop], score[start:stop])
                residual[start:stop] = values[start:stop] - g
                centres.append(centre)
        note = f"{len(folds)} folds, {self.steps} gradient steps for each"
        held = HeldOut(residual, note, np.array(centres), folds=folds)
        names = ("meta-learned Network",) * len(wanted.names)
        papers = references_of(self, CrossFit())
        result = Estimate.from_held_out(held, wanted, names, references=papers)
        return with_audit(result, report, audit)

    def _wanted(self, f: IntegrandSpec | Integrands, sample: Sample) -> Integrands:
        """Evaluate the integrands, and check that they match those of the training."""
        wanted, dim = integrands(f, sample), self.coordinates.shift.shape[0]
        if len(wanted.names) != len(self.names) or sample.dim != dim:
            raise ValueError(
                f"{len(wanted.names)} integrands of {sample.dim} dimensions: give {len(self.names)} of "
                f"{dim}, as in the tasks that the network was trained on."
            )
        return wanted

    def _rows(self, wanted: Integrands, sample: Sample) -> Data:
        """Return the draws and scores in the common coordinates, and the integrands."""
        x, score = self.coordinates(jnp.asarray(sample.x), jnp.asarray(sample.score))
        return x, score, wanted.values.reshape(sample.size, -1)

    def _adapted(self, x: Any, score: Any, f: Any) -> tuple[Any, np.ndarray]:
        """Compute the adapted parameters in the units of f, and the mean of f - g."""
        scaled = jnp.asarray(f) / self.scale
        data = (x, score, scaled)
        params, centre = adapted(self.family, self.params, data, self.rate, self.steps)
        params = self.family.rescale(params, jnp.asarray(self.scale))
        return jax.tree.map(np.asarray, params), np.asarray(centre * self.scale)


def meta_learn(
    f: Specs,
    samples: Sequence[Sample],
    network: Network | None = None,
    *,
    settings: Settings | None = None,
    key: Any = None,
) -> MetaNetwork:
    r"""Train a network across tasks, so that a few gradient steps adapt it to a new one.

    In every iteration, $\theta$ takes a few gradient steps on half of the draws of each task in a batch; the
    gradient at their end, of the loss on the other half, updates $\theta$ (first-order MAML).

    Args:
        f: the integrands, for all tasks or a list with those of each.
        samples: one for each task; all are cut to the length of the shortest.
        network: the family; `Network()` by default.
        settings: the settings of the training.
        key: a key of jax.random for the initial network and the choice of tasks; a fixed one by default.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(6, 1, 20, 1))
    >>> samples = [sx.Sample(draws, -draws) for draws in x]
    >>> quick = sx.contrib.Settings(iterations=50)
    >>> meta = sx.contrib.meta_learn("x", samples[:5], settings=quick)
    >>> meta.adapt("x", samples[5])(x[0], -x[0]).shape
    (1, 20, 1)
    """
    settings = Settings() if settings is None else settings
    tasks, family = tasks_of(f, samples), Network() if network is None else network
    key = jax.random.key(0) if key is None else key
    values, task = tasks.f, tasks.task
    within = [values[task == t].var(axis=0) for t in range(tasks.number)]
    scale = np.maximum(np.sqrt(np.mean(within, axis=0)), 1e-300)
    starts = np.searchsorted(task, np.arange(tasks.number))
    rows = starts[:, None] + np.arange(min(sample.size for sample in samples))
    with jax.enable_x64(True):
        coordinates = standardise(tasks.rows[0])
        x, score = coordinates(*tasks.rows)
        data = (x[rows], score[rows], jnp.asarray(values / scale)[rows])
        start = family.init(None, x, len(scale), key)
        params = meta_train(family, start, data, settings, jax.random.fold_in(key, 1))
        params, coordinates = jax.tree.map(np.asarray, (params, coordinates))
    rate = np.asarray(settings.inner_rate)
    names = tasks.wanted[0].names
    return MetaNetwork(family, params, coordinates, scale, rate, settings.inner_steps, names)


def task_loss(params: Any, family: Network, data: Data) -> jax.Array:
    """Compute the variance of f - g on a task's draws, summed over integrands."""
    x, score, f = data
    return jnp.sum(jnp.var(f - evaluate(family, None, params, x, score), axis=0))


@eqx.filter_jit
def adapted(
    family: Network, params: Any, data: Data, rate: Any, steps: int
) -> tuple[Any, jax.Array]:
    """Compute the parameters after some gradient steps on a task's draws, and the mean of f - g."""
    params = _descend(params, family, data, rate, steps)
    x, score, f = data
    return params, jnp.mean(f - evaluate(family, None, params, x, score), axis=0)


def _descend(params: Any, family: Network, data: Data, rate: Any, steps: int) -> Any:
    """Take some steps of gradient descent, with the norm of the gradient clipped to 1."""

    def step(current: Any, _: None) -> tuple[Any, None]:
        gradient = jax.grad(task_loss)(current, family, data)
        norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(gradient)))
        clipped_rate = rate / jnp.maximum(norm, 1.0)  # the loss is steep where a score is large
        return jax.tree.map(lambda p, g: p - clipped_rate * g, current, gradient), None

    return jax.lax.scan(step, params, None, length=steps)[0]


@eqx.filter_jit
def meta_train(family: Network, start: Any, data: Data, settings: Settings, key: Any) -> Any:
    """Train initial parameters from which few steps fit each task of `data`, (task, n, ...).

    Args:
        family: the network.
        start: the initial parameters.
        data: the data of all tasks, with equally many draws.
        settings: the settings of the outer steps, by Adam, and of the inner steps.
        key: the random key for the choice of tasks and halves.
    """
    import optax

    optimiser = optax.chain(optax.clip_by_global_norm(1.0), optax.scale_by_adam())
    count, n = data[2].shape[:2]

    def task_gradient(params: Any, task: Any, order: Any) -> Any:
        shuffled = tuple(array[task][order] for array in data)
        first, last = (
            tuple(array[half] for array in shuffled) for half in (slice(n // 2), slice(n // 2, n))
        )
        final = _descend(params, family, first, settings.inner_rate, settings.inner_steps)
        return jax.grad(task_loss)(final, family, last)

    def step(carry: tuple, index: Any) -> tuple[tuple, None]:
        params, memory = carry
        task_key, order_key = jax.random.split(jax.random.fold_in(key, index))
        batch = jax.random.randint(task_key, (settings.batch,), 0, count)
        orders = jax.vmap(lambda k: jax.random.permutation(k, n))(
            jax.random.split(order_key, settings.batch)
        )
        gradients = jax.vmap(task_gradient, (None, 0, 0))(params, batch, orders)
        mean = jax.tree.map(lambda g: jnp.mean(g, axis=0), gradients)
        updates, memory = optimiser.update(mean, memory)
        rate = settings.rate * (1 - index / settings.iterations)
        return (jax.tree.map(lambda p, u: p - rate * u, params, updates), memory), None

    initial = (start, optimiser.init(start))
    return jax.lax.scan(step, initial, jnp.arange(settings.iterations))[0][0]
