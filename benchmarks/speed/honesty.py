"""What the audit and the error bars cost, beside the fit: 1,000 draws in 10 dimensions."""

from functools import partial

import numpy as np

import steinax as sx

from .._pinned import best
from ._problems import skewed_sample

N, DIM = 1000, 10
BOUND = 0.25
FAMILIES = {
    "automatic": None,
    "Polynomial(2) + KernelTranslates()": sx.Polynomial(2) + sx.KernelTranslates(),
    "Polynomial(2)": sx.Polynomial(2),
}


def measure(rounds: int = 10) -> list[dict]:
    """The CPU times of estimates of all means, and of the audit and the statistics in them."""
    sample, _ = skewed_sample(N, DIM)
    values = np.asarray(sx.data.integrands("x", sample).values)

    def honesty() -> None:
        sx.audit(sample)
        for _ in range(2):  # of f, and of what is left of it
            sx.chains.chain_statistics(values)

    estimates = {name: partial(sx.estimate, "x", sample, one) for name, one in FAMILIES.items()}
    for estimate in estimates.values():
        estimate()
    times = best(rounds, honesty=honesty, **estimates)
    return [
        {
            "measure": "(audit + error bars) / the rest of the estimate, CPU ms",
            "family": name,
            "honesty": 1e3 * times["honesty"],
            "estimate": 1e3 * times[name],
            "ratio": times["honesty"] / (times[name] - times["honesty"]),
            "at most": BOUND,
        }
        for name in FAMILIES
    ]
