"""Counts and binary vectors: what the choice among the families of their spaces gains over plain averages.

Every round has four new chains. The gain is the ratio of mean squared errors, about exact expectations, over
all rounds; coverage is that of the intervals of 1.96 standard errors. Beside it the one family of the space
that serves all integrands, as in `weigh`.
"""

from functools import partial

import numpy as np

import steinax as sx

from ._discrete import CHAINS, Problem, abundance, ising, selection

ROUNDS, LENGTH = 40, 250
PROBLEMS = {
    "abundance": abundance,
    **{f"Ising {coupling}": partial(ising, coupling) for coupling in (0.1, 0.25, 0.4, 0.6)},
    "selection": selection,
}


def measure(only: str | None = None, rounds: int | None = None) -> list[dict]:
    """A row for every problem and integrand."""
    chosen = [make for name, make in PROBLEMS.items() if only is None or only in name]
    return [row for make in chosen for row in _rows(make(), rounds or ROUNDS)]


def _rows(problem: Problem, rounds: int) -> list[dict]:
    samples = problem.samples(0, rounds, LENGTH)
    states = int(np.mean([len(np.unique(one.x, axis=0)) for one in samples]))
    found = [sx.estimate(problem.integrands, one) for one in samples]
    single = [sx.estimate(problem.integrands, one, _one_family(one)) for one in samples]
    truth = np.array(list(problem.exact.values()))
    square, covered = _errors([(est.value, est.mcse) for est in found], truth)
    single_square, single_covered = _errors([(est.value, est.mcse) for est in single], truth)
    plain, plainly = _errors([(est.plain_value, est.plain_mcse) for est in found], truth)
    return [
        {
            "problem": problem.name,
            "integrand": name,
            "exact": round(problem.exact[name], 4),
            "draws": CHAINS * LENGTH,
            "distinct": states,
            "plain coverage": float(plainly[j]),
            "gain": float(plain[j] / square[j]),
            "coverage": float(covered[j]),
            "gain of one family": float(plain[j] / single_square[j]),
            "its coverage": float(single_covered[j]),
        }
        for j, name in enumerate(problem.integrands)
    ]


def _one_family(sample: sx.Sample) -> sx.families.AbstractFamily:
    """A polynomial, or products of coordinates, of the degree that the distinct states allow."""
    assert sample.space is not None
    return sample.space.family(len(np.unique(sample.x, axis=0)), sample.dim)


def _errors(pairs: list[tuple[np.ndarray, np.ndarray]], truth: np.ndarray) -> np.ndarray:
    """The mean square of the errors, and how often 1.96 standard errors cover them: (2, k)."""
    value, mcse = (np.array(part) for part in zip(*pairs, strict=True))
    error = value - truth
    return np.stack([np.mean(error**2, axis=0), np.mean(np.abs(error) <= 1.96 * mcse, axis=0)])
