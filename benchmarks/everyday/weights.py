"""What one vector of weights is worth for means, standard deviations, quantiles and probabilities.

`python -m benchmarks.everyday weights` weighs the draws of four runs by a polynomial of degree 1 or 2 and by
the automatic choice, and compares probabilities with those of `estimate`.
"""

from pathlib import Path

import numpy as np

import steinax as sx

from ..posteriors._score import geometric_mean
from ._sampling import RUNS, cached, cut
from .models import MODELS

NAMES = ("weibull", "overdispersed", "poisson", "eight_schools", "logistic", "radon")
LENGTHS, PARAMETERS, LEVELS = (250, 500), 6, (0.05, 0.5, 0.95)
FAMILIES = {"Polynomial(1)": sx.Polynomial(1), "Polynomial(2)": sx.Polynomial(2), "none": None}


def measure(cache: Path) -> list[dict]:
    """A row for each model, number of draws and family."""
    return [row for name in NAMES for row in _of_model(name, cached(name, cache))]


def _of_model(name: str, chains: dict[str, np.ndarray]) -> list[dict]:
    values = chains["values"].reshape(-1, chains["values"].shape[-1])
    highest = np.quantile(values[:, :PARAMETERS], LEVELS[-1], axis=0)
    rows = []
    for length in LENGTHS:
        runs = [cut(chains, run, length) for run in range(RUNS)]
        some = [(f[..., :PARAMETERS], sample) for f, sample in runs]
        alone = [sx.estimate({"p": f > highest}, one, audit="off").worth for f, one in some]
        for label, family in FAMILIES.items():
            weighted = [(f, sx.weigh(one, family, audit="off")) for f, one in some]
            means = [w.mean({"f": f}).worth for f, w in weighted]
            sds = [w.sd({"f": f}).worth for f, w in weighted]
            quantiles = [w.quantile({"f": f}, LEVELS).worth for f, w in weighted]
            highs = [w.probability({"p": f > highest}).worth for f, w in weighted]
            rows.append(
                {
                    "model": name,
                    "dimensions": MODELS[name].dim,
                    "draws": 4 * length,
                    "family": label,
                    "means": geometric_mean(np.array(means)),
                    "sds": geometric_mean(np.array(sds)),
                    "quantiles": geometric_mean(np.array(quantiles)),
                    "the worst": float(np.nanmin(quantiles)),
                    "probabilities": geometric_mean(np.array(highs)),
                    "by estimate": geometric_mean(np.array(alone)),
                }
            )
    return rows
