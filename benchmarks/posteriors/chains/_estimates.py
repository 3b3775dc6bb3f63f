"""The estimates from a model's chains, and how good they are."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import numpy as np

import steinax as sx

from .._data import folder
from .._rows import count_choices
from .._score import Trials, score, standardised
from ._registry import MODELS
from ._run import CHAINS, DRAWS, Chains, cached

BLOCKS, THIN = 10, 2  # of the long run, for the reference
MIXED = 1.1  # split R-hats up to here: a user would go on


class Constants(NamedTuple):
    """Means and standard deviations of the long run, by which parameters are standardised."""

    mean: np.ndarray
    sd: np.ndarray

    def integrands(self, values: np.ndarray) -> np.ndarray:
        """The parameters, then the squares of the standardised ones: (chain, draw, 2 k)."""
        return np.concatenate([values, ((values - self.mean) / self.sd) ** 2], axis=2)


class Table(NamedTuple):
    """Estimates from several samples: arrays of shape (sample, k)."""

    value: np.ndarray
    mcse: np.ndarray
    plain_value: np.ndarray
    plain_mcse: np.ndarray


def replicate(chains: Chains, i: int) -> Chains:
    """The chains of the i-th replicate."""
    rows = slice(CHAINS * i, CHAINS * (i + 1))
    return part(chains, rows, slice(None))


def block(chains: Chains, i: int) -> Chains:
    """The i-th stretch of the long run, every second draw of all chains: 4 x 250 draws again."""
    length = THIN * DRAWS
    return part(chains, slice(None), slice(length * i, length * (i + 1), THIN))


def part(chains: Chains, rows: slice, columns: slice) -> Chains:
    """Some of the chains and of their draws."""
    fields = ("draws", "scores", "values", "diverging")
    return chains._replace(**{name: getattr(chains, name)[rows, columns] for name in fields})


def estimate(chains: Chains, constants: Constants) -> tuple[sx.Estimate, float]:
    """What a user would call, with no options, and the CPU seconds that it took."""
    sample = sx.Sample(chains.draws, chains.scores, names=chains.names.tolist())
    f = constants.integrands(chains.values)
    values = {name: f[..., i] for i, name in enumerate(labels(chains))}
    start = time.process_time()
    found = sx.estimate(values, sample)
    return found, time.process_time() - start


def labels(chains: Chains) -> list[str]:
    """The names of the integrands."""
    names = chains.value_names.tolist()
    return [*names, *(f"square of {name}" for name in names)]


def tabulate(estimates: list[sx.Estimate]) -> Table:
    """The numbers of several estimates, a row each."""
    return Table(*(np.stack([getattr(e, name) for e in estimates]) for name in Table._fields))


def reference(long: Chains, constants: Constants) -> tuple[np.ndarray, np.ndarray]:
    r"""The average of $m$ estimates from the long run, and its error $\sqrt{\sum_j s_j^2} / m$."""
    found = tabulate([estimate(block(long, i), constants)[0] for i in range(BLOCKS)])
    return found.value.mean(axis=0), np.sqrt(np.sum(found.mcse**2, axis=0)) / BLOCKS


def figures(table: Table, names: list[str], means: np.ndarray, errors: np.ndarray) -> dict:
    """The scores of the estimates, and beside them those of the plain averages' error bars."""
    means, errors = (np.broadcast_to(one, table.value.shape) for one in (means, errors))
    half = len(names) // 2
    groups = {"means": range(half), "squares": range(half, 2 * half)}
    ours = score(Trials(table.value, table.mcse, table.plain_value, means, errors), names, groups)
    plain = Trials(table.plain_value, table.plain_mcse, table.plain_value, means, errors)
    theirs = score(plain, names, groups)
    return asdict(ours) | {
        "plain_calibration": theirs.calibration,
        "plain_coverage": theirs.coverage,
    }


def where_mixed(
    table: Table, rhat: np.ndarray, names: list[str], means: np.ndarray, errors: np.ndarray
) -> dict:
    """How many replicates a user would not have used, and the figures of the others."""
    found: dict = {"rhat": float(rhat.max()), "not_mixed": int(np.sum(rhat > MIXED))}
    kept = Table(*(array[rhat <= MIXED] for array in table))
    if 0 < found["not_mixed"] < len(rhat):
        found["mixed"] = figures(kept, names, means, errors)
    return found


def agreement(
    posterior: str, long: Chains, constants: Constants, means: np.ndarray, errors: np.ndarray
) -> dict:
    """The reference against plain averages, of the long run and of posteriordb's draws: worst |z|."""
    with np.load(folder() / posterior / "draws.npz") as stored:
        theirs = stored["draws"]
    worst = {}
    for name, values in (("long_run", long.values), ("posteriordb", theirs)):
        plain = sx.chains.chain_statistics(constants.integrands(values))
        rows = (plain.mean, plain.mcse, plain.mean, means, errors)
        z = standardised(Trials(*(np.asarray(row)[None] for row in rows)))
        worst[f"z_{name}"] = float(np.nanmax(np.abs(z)))
    return worst


def measure(name: str, replicates: int, cache: str) -> list[dict]:
    """The row of one model: estimates from every replicate, scored by those from the long run."""
    model, where = MODELS[name], Path(cache)
    chains = cached(model, folder(), where, "replicates", replicates)
    long = cached(model, folder(), where, "long", replicates)
    constants = Constants(long.values.mean(axis=(0, 1)), long.values.std(axis=(0, 1)))
    each = [replicate(chains, i) for i in range(replicates)]
    _, first = estimate(each[0], constants)  # compiles
    calls = [estimate(one, constants) for one in each]
    means, errors = reference(long, constants)
    table = tabulate([found for found, _ in calls])
    plain = [sx.chains.chain_statistics(one.values) for one in each]
    row = {
        "posterior": model.posterior,
        "dim": chains.draws.shape[2],
        "replicates": replicates,
        "divergences": int(chains.diverging.sum()),
        "divergences_long": int(long.diverging.sum()),
        "ess": float(np.median([np.min(one.ess) for one in plain])),
        "sampling_seconds": float(chains.seconds) / replicates,
        "seconds": float(np.median([seconds for _, seconds in calls])),
        "first_seconds": first,
        "chosen": count_choices([found.chosen for found, _ in calls]),
    }
    rhat = np.array([np.max(one.rhat) for one in plain])
    row |= where_mixed(table, rhat, labels(chains), means, errors)
    row |= agreement(model.posterior, long, constants, means, errors)
    return [row | figures(table, labels(chains), means, errors)]
