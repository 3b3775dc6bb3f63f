"""New data of three of the models: simulated for each draw, or averaged given its parameters.

`python -m benchmarks.everyday predictive` takes 4 x 500 draws of each of four runs. The truth for a run is
what control variates make of the 60,000 draws of the other three.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import special, stats

import steinax as sx

from ._sampling import LONGEST, RUNS, cached, cut

LENGTH, NEW = 500, 20  # draws of a chain, and new data


class Prediction(NamedTuple):
    """The distribution of new data given parameters, (..., k), and what to ask of it.

    The truth is by a family of control variates, chosen from the draws if None.
    """

    conditional: Callable[[np.ndarray], Any]
    above: float
    truth: sx.Polynomial | None


def _radon(values: np.ndarray) -> Any:
    """A new house in each county; parameters are mu, sigma, slope, standard (22) and tau."""
    mean = values[..., :1] + values[..., -1:] * values[..., 3:-1]
    return stats.norm(mean[..., :NEW], values[..., 1:2])


def _poisson(values: np.ndarray) -> Any:
    """A count at new covariates; parameters are beta (7) and the intercept."""
    x = np.random.default_rng(0).normal(size=(NEW, 7))
    return stats.poisson(np.exp(values[..., :-1] @ x.T + values[..., -1:]))


def _logistic(values: np.ndarray) -> Any:
    """Yes or no at new covariates; parameters are beta (20) and the intercept."""
    x = np.random.default_rng(0).normal(size=(NEW, 20))
    return stats.bernoulli(special.expit(values[..., :-1] @ x.T + values[..., -1:]))


PREDICTIONS = {
    "poisson": Prediction(_poisson, 3.0, None),
    "logistic": Prediction(_logistic, 0.0, sx.Polynomial(2)),
    "radon": Prediction(_radon, 2.0, sx.Polynomial(2)),
}
ASKED = {"mean": lambda d, above: d.mean(), "probability": lambda d, above: d.sf(above)}


def measure(cache: Path) -> list[dict]:
    """A row for each model and each kind of expectation."""
    return [row for name in PREDICTIONS for row in _of_model(name, cached(name, cache))]


def _of_model(name: str, chains: dict[str, np.ndarray]) -> list[dict]:
    conditional, above, truth = PREDICTIONS[name]
    rng, found = np.random.default_rng(1), []
    for run in range(RUNS):
        values, sample = cut(chains, run, LENGTH)
        given = conditional(values)
        y = given.rvs(random_state=rng)
        simulated = {"mean": y, "probability": y > above}
        long_values, long = cut(chains, run, LONGEST)
        wanted = conditional(long_values)
        found.append(
            {
                what: (
                    sx.estimate({what: simulated[what]}, sample, audit="off"),
                    sx.estimate({what: f(given, above)}, sample, audit="off"),
                    sx.estimate({what: f(wanted, above)}, long, truth, audit="off").value,
                )
                for what, f in ASKED.items()
            }
        )
    kinds = ASKED if name != "logistic" else ["mean"]  # the same as P(y > 0)
    return [_row(name, what, [one[what] for one in found]) for what in kinds]


def _row(name: str, what: str, runs: list[tuple[sx.Estimate, sx.Estimate, np.ndarray]]) -> dict:
    simulated, given, long = zip(*runs, strict=True)
    truth = (np.sum(long, axis=0) - np.array(long)) / (RUNS - 1)

    def error(values: list) -> float:
        return float(np.sqrt(np.mean((np.array(values) - truth) ** 2)))

    errors = [
        error([one.plain_value for one in simulated]),
        error([one.value for one in simulated]),
        error([one.plain_value for one in given]),
        error([one.value for one in given]),
    ]
    mcse = float(np.sqrt(np.mean([one.mcse**2 for one in given])))
    names = ("simulated", "and controlled", "conditional", "both")
    return {
        "model": name,
        "expectation": what,
        **{f"error, {key}": value for key, value in zip(names, errors, strict=True)},
        "reported": mcse,
        "gain of conditioning": (errors[0] / errors[2]) ** 2,
        "gain of both": (errors[0] / errors[3]) ** 2,
    }
