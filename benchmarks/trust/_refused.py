"""Whether samples are refused, by whom, and by how much their estimates would be off."""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import steinax as sx

from ._scored import DENSITIES, RIGHT, chains
from ._wrong import WRONG

SETTINGS = (
    ((4, 250, 10), 0.5),
    ((4, 250, 10), 0.9),
    ((4, 250, 10), -0.5),
    ((4, 50, 10), 0.9),
    ((1, 1000, 10), 0.0),
    ((4, 50, 3), 0.0),
)
SIZES = (100, 1000)


def wrong_case(name: str, n: int, seeds: int) -> dict:
    """One mistake at n draws: how often it is refused, and by how much estimates are off."""
    wrong = WRONG[name]
    shape = (4, n // 4, wrong.dim)
    cases = [wrong.make(chains(seed, shape, wrong.rho)) for seed in range(seeds)]
    functions = [_functions(draws, cases[0][0]) for draws, _, _ in cases]
    truth = np.mean([f.mean(axis=(0, 1)) for f in functions], axis=0)  # of right draws, all seeds
    rows = []
    for (draws, scores, density), f in zip(cases, functions, strict=True):
        sample = sx.Sample(draws, scores)
        est = sx.estimate({"f": f}, sample, sx.Polynomial(2), audit="off")
        bias = np.abs(est.value - truth) / est.plain_mcse
        apart = np.abs(est.value - est.plain_value) / est.plain_mcse
        with_energies = sx.Sample(draws, scores, log_density=density)
        rows.append((bias.max(), apart.max(), refused(sample, f), refused(with_energies, f)))
    bias, apart, without, compared = (np.array(one) for one in zip(*rows, strict=True))
    return {
        "table": "subtle",
        "mistake": name,
        "draws": n,
        "seeds": seeds,
        "bias": float(np.median(bias)),
        "refused": int(np.sum(without)),
        "refused_with": int(np.sum(compared)),
        "apart": int(np.sum(apart > 5)),
        "apart_refused": int(np.sum(without[apart > 5])),
        "biased": int(np.sum(bias > 2)),
        "biased_refused": int(np.sum(compared[bias > 2])),
    }


def _functions(x: np.ndarray, first: np.ndarray) -> np.ndarray:
    """The columns, their squares and the products of neighbours, in units of the first seed's draws."""
    y = (x - first.mean(axis=(0, 1))) / first.std(axis=(0, 1))
    return np.concatenate([y, y**2, y[..., 1:] * y[..., :-1]], axis=2)


def refused(sample: sx.Sample, f: np.ndarray) -> bool:
    """Whether an estimate of these functions is refused, by the audit or for a contradiction."""
    try:
        sx.estimate({"f": f}, sample, sx.Polynomial(2))
    except sx.AuditError:
        return True
    return False


def right_case(target: str, seeds: int) -> dict:
    """Right samples of one target that are refused, without and with log densities."""
    count, without, compared = 0, 0, 0
    for shape, rho in SETTINGS:
        for seed in range(1000, 1000 + seeds):
            draws, scores = RIGHT[target](chains(seed, shape, rho))
            count += 1
            without += _refused_alone(sx.Sample(draws, scores))
            density = DENSITIES[target](draws)
            compared += _refused_alone(sx.Sample(draws, scores, log_density=density))
    return _right(target, count, without, compared)


def _refused_alone(sample: sx.Sample) -> bool:
    """Whether the estimates of the columns, their squares and products are refused."""
    return refused(sample, _functions(sample.draws, sample.draws))


def posterior_case(name: str, size: int) -> dict:
    """The same for all blocks of one posterior of posteriordb."""
    count, without, compared = 0, 0, 0
    for draws, scores, density in _blocks(name, size):
        count += 1
        without += _refused_alone(sx.Sample(draws, scores))
        compared += _refused_alone(sx.Sample(draws, scores, log_density=density))
    return _right(f"posteriordb, blocks of {size:,}", count, without, compared)


def _right(target: str, audits: int, without: int, compared: int) -> dict:
    found = {"audits": audits, "refused": without, "refused_with": compared}
    return {"table": "right", "target": target, **found}


def _blocks(name: str, size: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    with np.load(Path(os.environ["STEINAX_DATA"], "posteriordb", name, "scores.npz")) as stored:
        u, score, density = stored["u"], stored["score"], stored["logp"]
    for start in range(0, len(u) - size + 1, size):
        part = slice(start, start + size)
        yield u[part], score[part], density[part]
