"""125,750 coefficients from 1,000 draws: the dual fit against the products that it is made of."""

import numpy as np
from scipy.linalg import cholesky

import steinax as sx

from .._pinned import best, peak_megabytes
from ._problems import skewed_sample

N, DIM = 1000, 500
TIME_BOUND, MEMORY_BOUND = 3.0, 1000.0


def measure(rounds: int = 10) -> list[dict]:
    """The CPU time of `fit` after compilation, and the most memory up to then."""
    sample, f = skewed_sample(N, DIM)

    def fit() -> sx.ControlVariate:
        return sx.fit(f, sample, sx.Polynomial(2))

    assert "dual" in fit().note
    fit()
    memory = peak_megabytes()
    x, score = np.array(sample.x), np.array(sample.score)
    definite = x @ x.T + N * np.eye(N)

    def bare() -> None:
        for left, right in ((x, x), (x, score), (score, score)):
            left @ right.T
        cholesky(definite, lower=True, check_finite=False)

    times = best(rounds, fit=fit, bare=bare)
    return [
        {
            "measure": "fit / (3 products + Cholesky), CPU ms",
            "steinax": 1e3 * times["fit"],
            "bare": 1e3 * times["bare"],
            "ratio": times["fit"] / times["bare"],
            "at most": TIME_BOUND,
        },
        {
            "measure": "peak memory, MB",
            "steinax": memory,
            "bare": None,
            "ratio": None,
            "at most": MEMORY_BOUND,
        },
    ]
