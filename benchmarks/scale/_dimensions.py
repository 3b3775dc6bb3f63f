"""One estimate in many dimensions, in a process that does nothing else."""

import time

import numpy as np

import steinax as sx

from .._pinned import peak_megabytes

N = 400
FAMILIES = {
    "Polynomial(1)": sx.Polynomial(1),
    "Polynomial(2)": sx.Polynomial(2),
    "automatic": None,
}


def measure(dim: int, family: str) -> list[dict]:
    """CPU seconds, compilation among them, peak memory, and the worth of two integrands.

    The target is a Gaussian; the integrands are one coordinate, and the mean of all squares.
    """
    x = np.random.default_rng(0).normal(size=(4, N // 4, dim))
    f = {"coordinate": "x[0]", "mean square": (x**2).mean(axis=-1)}
    start = time.process_time()
    est = sx.estimate(f, sx.Sample(x, -x), FAMILIES[family])
    return [
        {
            "d": dim,
            "family": family,
            "coefficients": {"Polynomial(1)": dim, "Polynomial(2)": dim * (dim + 3) // 2}.get(
                family
            ),
            "CPU s": time.process_time() - start,
            "MB": peak_megabytes(),
            "draws (MB)": 16e-6 * N * dim,
            "worth of a coordinate": float(est["coordinate"].worth),
            "worth of the mean square": float(est["mean square"].worth),
        }
    ]
