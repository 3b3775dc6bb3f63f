"""100,000 draws in ten dimensions beside 4,000 of the same chains."""

import time
from pathlib import Path

import steinax as sx

from ..posteriors._score import geometric_mean
from ._sampling import LONG, cached, cut

NAME = "poisson_ten"
AT_MOST = 15.0  # CPU seconds


def measure(cache: Path) -> list[dict]:
    """A row for each number of draws: what the means of all parameters are worth, and CPU seconds."""
    chains = cached(NAME, cache)
    rows = []
    for length in (1000, LONG):
        values, sample = cut(chains, 0, length)
        start = time.process_time()
        made = sx.estimate({"f": values}, sample)
        rows.append(
            {
                "draws": f"4 x {length}",
                "d": sample.dim,
                "worth": geometric_mean(made.worth),
                "least": float(made.worth.min()),
                "CPU s": time.process_time() - start,
                "goal": AT_MOST,
            }
        )
    return rows
