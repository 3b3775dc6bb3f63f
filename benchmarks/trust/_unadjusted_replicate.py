"""One replicate of an unadjusted sampler: squares by plain averages, degree 2 and the choice."""

import numpy as np

import steinax as sx

from ._estimate import estimate
from ._unadjusted import langevin, mclmc, target

CELLS = (
    *(f"Gaussian | Langevin | {h}" for h in (0.1, 0.2, 0.3)),
    *(f"logistic | Langevin | {h}" for h in (0.01, 0.03, 0.05)),
    *(f"skewed | Langevin | {h}" for h in (0.05, 0.1, 0.15)),
    *(f"logistic | SGLD | {h}" for h in (0.005, 0.01)),
    *(f"logistic | MCLMC | {h}" for h in (1.5, 2.0)),
)


def replicate(cell: str, numbers: np.ndarray) -> dict[str, np.ndarray]:
    """The replicates of these numbers: arrays (replicate, k)."""
    name, sampler, step = cell.split(" | ")
    rows = []
    for number in numbers:
        seed = int(number) + 1000 * CELLS.index(cell)
        if sampler == "MCLMC":
            x = mclmc(float(step), seed)
        else:
            x = langevin(name, float(step), seed, minibatch=sampler == "SGLD")
        rows.append(_row(target(name), x))
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}


def _row(aim, x: np.ndarray) -> dict[str, np.ndarray]:
    f, sample = aim.squares(x), sx.Sample(x, aim.score(x))
    two = estimate(f, sample, sx.Polynomial(2), audit="unadjusted")
    chosen = estimate(f, sample, audit="unadjusted")
    return {
        "plain": two.plain_value,
        "degree 2": two.value,
        "automatic": chosen.value,
        "plain_mcse": two.plain_mcse,
        "degree 2_mcse": two.mcse,
        "automatic_mcse": chosen.mcse,
    }
