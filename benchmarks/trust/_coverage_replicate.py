"""One replicate of a cell of the coverage table: an estimate, and two wrong error bars beside it."""

import time
from itertools import product

import numpy as np

import steinax as sx

from ._estimate import estimate
from ._samplers import SAMPLERS

FAMILIES = {
    "degree 2": lambda: sx.Polynomial(2),
    "degree 2 + kernel": lambda: sx.Polynomial(2) + sx.KernelTranslates(),
    "automatic": lambda: None,
}
SIZES = {"4 x 250": (4, 250), "4 x 50": (4, 50), "1 x 1000": (1, 1000)}
CELLS = tuple(" | ".join(parts) for parts in product(SAMPLERS, FAMILIES, SIZES))
MUTATED = 400  # replicates that are fitted in-sample too
FIELDS = ("value", "mcse", "ess", "worth", "plain_value", "plain_mcse")


def replicate(cell: str, numbers: np.ndarray) -> dict[str, np.ndarray]:
    """The replicates of these numbers: arrays (replicate, k), or (replicate,)."""
    sampler, family, size = cell.split(" | ")
    make, sample = SAMPLERS[sampler]
    problem, (chains, length) = make(), SIZES[size]
    first = int(numbers[0]) - int(numbers[0]) % 100  # always 100 at once: one program serves all
    seeds = np.arange(first, first + 100)
    found = sample(seeds + 10_000 * list(SAMPLERS).index(sampler), chains, length)
    rows = []
    for number in numbers:
        i = int(number) - first
        one = sx.Sample(found.draws[i], found.scores[i])
        rows.append(_row(problem.values(found.draws[i]), one, FAMILIES[family](), int(number)))
    truth = np.broadcast_to(problem.means, (len(numbers), len(problem.means)))
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]} | {"truth": truth}


def _row(f: dict, sample: sx.Sample, family, number: int) -> dict[str, np.ndarray]:
    start = time.process_time()
    est = estimate(f, sample, family)
    seconds = time.process_time() - start
    row = {field: np.asarray(getattr(est, field)) for field in FIELDS}
    interval, plain = est.interval(), est.plain_interval()
    row |= {"low": interval[:, 0], "high": interval[:, 1]}
    row |= {"plain_low": plain[:, 0], "plain_high": plain[:, 1]}
    reach = (interval[:, 1] - interval[:, 0]) / (2 * est.mcse)
    row["insample_value"], row["insample_reach"] = _in_sample(f, sample, family, number, reach)
    # sd / sqrt(n) in the place of sd / sqrt(ess)
    row["independent_reach"] = reach * est.mcse * np.sqrt(est.residual_ess / sample.size)
    row["seconds"] = np.array(seconds)
    return row


def _in_sample(
    f: dict, sample: sx.Sample, family, number: int, reach: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Fit to all draws and average over the same, with the usual error of what is left."""
    if family is None or number >= MUTATED:
        nothing = np.full(len(f), np.nan)
        return nothing, nothing
    rest = np.stack(list(f.values()), -1) - sx.fit(f, sample, family)(sample.draws, sample.scores)
    statistics = sx.chains.chain_statistics(rest)
    return np.asarray(statistics.mean), np.asarray(reach * statistics.mcse)
