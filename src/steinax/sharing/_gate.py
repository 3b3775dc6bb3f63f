"""Which fit each integrand of each task gets: never one that did worse on draws it had not seen."""

from typing import NamedTuple

import numpy as np

from ..chains import ChainStatistics, chain_statistics, controlled_statistics
from ..estimation import Estimate
from ..estimation._result import beside
from ..estimation._stability import instability
from ._crossfit import Trial
from ._tasks import Tasks

PLAIN = "plain Monte Carlo"
MARGIN = 3.0  # standard errors below the leading fit's variance that another must be, roughly


class Judged(NamedTuple):
    """One way to fit one task."""

    found: ChainStatistics
    variance: np.ndarray  # held-out, (k,)


def judge(tasks: Tasks, trials: dict[str, Trial], note: str) -> tuple[Estimate, ...]:
    """The estimate of every task.

    The leading fit of an integrand has the least held-out variance over all tasks, in the geometric
    mean: of one task alone 20 draws say little. A task has another fit only where that is clearly
    better, and the plain average where the leading fit's error bar is longer.
    """
    judged = [
        {name: _judged(tasks, trial, t) for name, trial in trials.items()}
        for t in range(tasks.number)
    ]
    names = tuple(trials)
    variances = np.array([[one[name].variance for name in names] for one in judged])
    leading = np.log(variances).mean(axis=0).argmin(axis=0)  # (k,)
    return tuple(
        _estimate(tasks, t, judged[t], _pick(variances[t], leading, tasks.samples[t].size), note)
        for t in range(tasks.number)
    )


def _judged(tasks: Tasks, trial: Trial, t: int) -> Judged:
    rest, f = trial.rest[tasks.task == t], tasks.wanted[t].values
    moved = instability(rest, trial.intercepts[t], tasks.folds()[t])
    found = controlled_statistics(rest.reshape(f.shape), f, moved)
    # about the mean of the fits' intercepts, so that a shift of the whole series counts
    error = rest - trial.intercepts[t].mean(axis=0)
    return Judged(found, np.maximum((error**2).mean(axis=0), 1e-300))


def _pick(variance: np.ndarray, leading: np.ndarray, size: int) -> np.ndarray:
    """The place of each integrand's fit."""
    best, each = variance.argmin(axis=0), np.arange(variance.shape[1])
    clearly = 1 - MARGIN / np.sqrt(size)
    return np.where(variance[best, each] < clearly * variance[leading, each], best, leading)


def _estimate(
    tasks: Tasks, t: int, judged: dict[str, Judged], picked: np.ndarray, note: str
) -> Estimate:
    names, wanted = list(judged), tasks.wanted[t]
    plain = chain_statistics(wanted.values)
    columns, chosen = [], []
    for i, place in enumerate(picked):
        name = names[place]
        better = judged[name].found
        if not better.mcse[i] < plain.mcse[i]:  # nor where there is none
            name, better = PLAIN, plain
        columns.append(_column(better, i))
        chosen.append(name)
    fields = zip(*columns, strict=True)
    better = ChainStatistics(*(np.concatenate(one, axis=-1) for one in fields))
    return beside(better, plain, wanted.names, tuple(chosen), note)


def _column(of: ChainStatistics, i: int) -> list[np.ndarray]:
    names = ("mean", "mcse", "ess", "rhat", "freedom", "batches")
    return [getattr(of, name)[..., i : i + 1] for name in names]
