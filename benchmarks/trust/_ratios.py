"""Ratios of root mean squared errors from replicates, with bootstrap errors."""

import numpy as np

from ._catalogue_replicate import MUTANT
from ._catalogued import CATALOGUE, Drawn

LIMIT = 1.05
ALLOWED = 2.0  # standard errors of a ratio, beyond the limit
BOOTSTRAP = 400


def ratio_of(ours: np.ndarray, plain: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of squared errors (replicate, k): the ratio of their roots' means, and its bootstrap error."""
    rng = np.random.default_rng(0)
    counts = rng.multinomial(len(ours), np.full(len(ours), 1 / len(ours)), size=BOOTSTRAP)
    again = np.sqrt((counts @ ours) / (counts @ plain))
    return np.sqrt(ours.mean(axis=0) / plain.mean(axis=0)), again.std(axis=0)


def passes(row: dict) -> bool:
    """At most the limit, give or take two standard errors."""
    return row["ratio"] <= LIMIT + ALLOWED * row["ratio_error"]


def integrand_rows(cell: str, found: dict[str, np.ndarray]) -> list[dict]:
    """A row of figures for every integrand of a cell."""
    target, n = cell.split(" | ")
    truth, error = found["truth"], found["truth_error"]
    ratio, ratio_error = ratio_of(
        (found["value"] - truth) ** 2, (found["plain_value"] - truth) ** 2
    )
    ours, plain = _held(found, ""), _held(found, "plain_")
    z = np.sqrt(np.mean((found["value"] - truth) ** 2 / (found["mcse"] ** 2 + error**2), axis=0))
    rows = [
        {
            "target": target,
            "n": int(n),
            "integrand": name,
            "replicates": len(truth),
            "ratio": float(ratio[i]),
            "ratio_error": float(ratio_error[i]),
            "plain_chosen": float(found["plain_chosen"][:, i].mean()),
            "coverage": float(ours[:, i].mean()),
            "coverage_error": float(ours[:, i].std() / np.sqrt(len(ours))),
            "plain_coverage": float(plain[:, i].mean()),
            "z": float(z[i]),
            "seconds": float(np.median(found["seconds"])),
        }
        for i, name in enumerate(names_of(target, int(n)))
    ]
    return [row | {"passes": passes(row)} for row in rows]


def names_of(target: str, n: int) -> tuple[str, ...]:
    """The names of a target's integrands."""
    drawn: Drawn = CATALOGUE["t(3)" if target == MUTANT else target](0, n)
    return tuple(drawn.f)


def _held(found: dict[str, np.ndarray], kind: str) -> np.ndarray:
    """Which intervals hold the truth, the truth's own error counted."""
    middle = (found[f"{kind}low"] + found[f"{kind}high"]) / 2
    half = (found[f"{kind}high"] - found[f"{kind}low"]) / 2
    return np.abs(middle - found["truth"]) <= np.hypot(half, 1.96 * found["truth_error"])
