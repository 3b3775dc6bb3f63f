"""Sonar: a logistic regression in 61 dimensions, 4 x 250 NUTS draws, ten predictive probabilities.

`python -m benchmarks.posteriors.sonar` prints one line and writes `sonar.json` into docs/benchmarks. The
draws are those of `$STEINAX_DATA/sonar` (4 chains of 5,000); every stretch of 250 is a replicate, and its
reference the average of the estimates from the other nineteen, its own error counted.
"""

import json
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np

import steinax as sx

from .._data import data_folder
from .._pinned import ROOT, pin
from .._provenance import provenance
from ._score import against_the_others, score

LENGTH, REPLICATES, POINTS = 250, 20, 10


def load(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draws, their scores, and the probabilities that the first ten points are mines."""
    with np.load(path) as stored:
        draws, x, y, prior = (stored[name] for name in ("beta", "X", "y", "prior_sd"))
    mine = 1 / (1 + np.exp(-draws @ x.T))
    return draws, (y - mine) @ x - draws / prior**2, mine[..., :POINTS]


def run() -> dict:
    """Estimate every replicate with no options, and score them."""
    draws, scores, f = load(data_folder("sonar") / "sonar_generated_nuts.npz")
    found, seconds = [], []
    for i in range(REPLICATES):
        part = (slice(None), slice(LENGTH * i, LENGTH * (i + 1)))
        start = time.process_time()
        found.append(sx.estimate(f[part], sx.Sample(draws[part], scores[part])))
        seconds.append(time.process_time() - start)
    names = [f"point {i}" for i in range(POINTS)]
    figures = score(against_the_others(found), names, {"all": range(POINTS)})
    return asdict(figures) | {"seconds": float(np.median(seconds[1:]))} | provenance()


def main() -> None:
    """Run on one core, print and write."""
    pin()
    figures = run()
    gain, worst = figures["gain"]["all"], figures["worst_gain"]
    print(
        f"Sonar, {REPLICATES} x 4 x {LENGTH} draws: gain {gain:.3g}, worst {worst:.3g}, calibration "
        f"{figures['calibration']:.2f}, {figures['seconds']:.1f} CPU s"
    )
    out = ROOT / "docs" / "benchmarks"
    out.mkdir(exist_ok=True)
    (out / "sonar.json").write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
