"""Independent runs against each other, on models with a skewed scale parameter."""

from pathlib import Path

import numpy as np

import steinax as sx

from ._sampling import LONGEST, cached, cut

SKEWED = ("overdispersed", "eight_schools", "radon")
SIZES = ((6, 300), (4, 750))  # runs, and draws of each chain


def measure(cache: Path, only: str | None = None) -> list[dict]:
    """A row for each model and size: do the runs differ by as much as their errors say?

    The chains of a run that are longer than needed are cut into pieces far apart, each a run of its own.
    """
    rows = []
    for name in [only] if only else SKEWED:
        chains = cached(name, cache)
        sd = chains["values"].std(axis=(0, 1, 2))
        for count, length in SIZES:
            made = [_estimate(chains, i, length) for i in range(count)]
            value = np.stack([one.value for one in made]) / sd
            mcse = np.stack([one.mcse for one in made]) / sd
            middle = (value / mcse**2).sum(axis=0) / (1 / mcse**2).sum(axis=0)
            z = (((value - middle) / mcse) ** 2).sum(axis=0) / (count - 1)
            worst = int(np.argmax(z))
            rows.append(
                {
                    "model": name,
                    "runs": f"{count} of 4 x {length}",
                    "parameters": len(z),
                    "mean": float(z.mean()),
                    "least": float(z.min()),
                    "most": float(z.max()),
                    "of parameter": worst,
                    "beyond 1 in 1,000": _beyond(z * (count - 1), count - 1),
                }
            )
    return rows


def _estimate(chains: dict[str, np.ndarray], i: int, length: int) -> sx.Estimate:
    """The means of run i: those beyond the runs that there are begin later in the chains."""
    total = len(chains["draws"])
    run, begin = i % total, (i // total) * (LONGEST // 2)
    later = {part: array[:, :, begin:] for part, array in chains.items()}
    values, sample = cut(later, run, length)
    return sx.estimate({"f": values}, sample, audit="off")


def _beyond(chi_squared: np.ndarray, freedom: int) -> int:
    from scipy.stats import chi2

    low, high = chi2.ppf([0.0005, 0.9995], freedom)
    return int(((chi_squared < low) | (chi_squared > high)).sum())
