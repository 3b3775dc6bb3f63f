"""One replicate of the catalogue: the automatic estimate, or a gate on the reported error alone."""

import time

import numpy as np

import steinax as sx

from ._catalogued import CATALOGUE, Drawn
from ._estimate import estimate

MUTANT = "t(3), gate on the reported error"
PLAIN = "plain Monte Carlo"


def cells(sizes: list[int], holding: str = "") -> list[str]:
    """Every target at every number of draws, and the mutant."""
    names = [*CATALOGUE, MUTANT]
    return [f"{name} | {n}" for n in sizes for name in names if holding in name]


def replicate(cell: str, numbers: np.ndarray) -> dict[str, np.ndarray]:
    """The replicates of these numbers: arrays (replicate, k), or (replicate,)."""
    name, n = cell.split(" | ")
    one = _gated if name == MUTANT else _automatic
    source = CATALOGUE["t(3)" if name == MUTANT else name]
    rows = [one(source(int(number), int(n))) for number in numbers]
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}


def _automatic(drawn: Drawn) -> dict[str, np.ndarray]:
    start = time.process_time()
    est = estimate(drawn.f, sx.Sample(drawn.draws, drawn.scores))
    seconds = time.process_time() - start
    interval = est.interval()
    return _row(drawn, est) | {
        "value": est.value,
        "mcse": est.mcse,
        "low": interval[:, 0],
        "high": interval[:, 1],
        "plain_chosen": np.array([one == PLAIN for one in est.chosen]),
        "seconds": np.array(seconds),
    }


def _gated(drawn: Drawn) -> dict[str, np.ndarray]:
    """Degree 6 fitted to the other chains, all columns used, unless its error is not smaller."""
    start = time.process_time()
    sample = sx.Sample(drawn.draws, drawn.scores)
    rest = np.stack([_left(drawn, chain) for chain in range(sample.chains)])
    found = sx.chains.chain_statistics(rest)
    plain = estimate(drawn.f, sample, sx.Polynomial(1))
    better = np.asarray(found.mcse < plain.plain_mcse)
    value = np.where(better, found.mean, plain.plain_value)
    mcse = np.where(better, found.mcse, plain.plain_mcse)
    return _row(drawn, plain) | {
        "value": value,
        "mcse": mcse,
        "low": value - 1.96 * mcse,
        "high": value + 1.96 * mcse,
        "plain_chosen": ~better,
        "seconds": np.array(time.process_time() - start),
    }


def _left(drawn: Drawn, chain: int) -> np.ndarray:
    """What a fit to all chains but one leaves of f on that one, (draw, k)."""
    others = np.arange(len(drawn.draws)) != chain
    sample = sx.Sample(drawn.draws[others], drawn.scores[others])
    control = sx.fit({k: v[others] for k, v in drawn.f.items()}, sample, sx.Polynomial(6))
    values = np.stack([v[chain] for v in drawn.f.values()], -1)
    return values - control(drawn.draws[chain], drawn.scores[chain])


def _row(drawn: Drawn, est: sx.Estimate) -> dict[str, np.ndarray]:
    plain = est.plain_interval()
    return {
        "truth": drawn.truth,
        "truth_error": drawn.truth_error,
        "plain_value": est.plain_value,
        "plain_mcse": est.plain_mcse,
        "plain_low": plain[:, 0],
        "plain_high": plain[:, 1],
    }
