"""Whether samples are refused, by whom, and by how much their estimates would be off."""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import steinax as sx
from steinax.estimation._estimate import contradiction

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
        rows.append((bias.max(), apart.max(), *refused(est, draws, scores, density)))
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


def refused(
    est: sx.Estimate, draws: np.ndarray, scores: np.ndarray, density: np.ndarray
) -> tuple[bool, bool]:
    """Whether an estimate would be refused, without the log densities of the draws and with them.

    By the audit, or because it contradicts the plain average: what `estimate` does with `audit="raise"`.
    """
    against = contradiction(est) is not None
    audits = (
        sx.audit(sx.Sample(draws, scores)),
        sx.audit(sx.Sample(draws, scores, log_density=density)),
    )
    return against or not audits[0].passed, against or not audits[1].passed


def right_case(target: str, seeds: int) -> dict:
    """Right samples of one target that are refused, without and with log densities."""
    count, without, compared = 0, 0, 0
    for shape, rho in SETTINGS:
        for seed in range(1000, 1000 + seeds):
            draws, scores = RIGHT[target](chains(seed, shape, rho))
            found = _columns_refused(draws, scores, DENSITIES[target](draws))
            count, without, compared = count + 1, without + found[0], compared + found[1]
    return _right(target, count, without, compared)


def _columns_refused(
    draws: np.ndarray, scores: np.ndarray, density: np.ndarray
) -> tuple[bool, bool]:
    """Whether the estimates of the columns, their squares and products are refused."""
    sample = sx.Sample(draws, scores)
    f = _functions(sample.draws, sample.draws)
    est = sx.estimate({"f": f}, sample, sx.Polynomial(2), audit="off")
    return refused(est, draws, scores, density)


def posterior_case(name: str, size: int) -> dict:
    """The same for all blocks of one posterior of posteriordb."""
    count, without, compared = 0, 0, 0
    for draws, scores, density in _blocks(name, size):
        found = _columns_refused(draws, scores, density)
        count, without, compared = count + 1, without + found[0], compared + found[1]
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
