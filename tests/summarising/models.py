"""Targets whose means and standard deviations are known."""

import arviz_base
import numpy as np

import steinax as sx

HEIGHT_SD = 1.5**0.5
TAU_MEAN = np.exp(0.125)
TAU_SD = np.sqrt((np.exp(0.25) - 1) * np.exp(0.25))
TRUTH = {"a": (0.0, 1.0), "height": (0.5, HEIGHT_SD), "tau": (TAU_MEAN, TAU_SD)}


def banana(seed: int, length: int = 500) -> sx.Sample:
    """A banana, four chains of independent draws; `tau` is exp(a / 2)."""
    a, b = np.random.default_rng(seed).normal(size=(2, 4, length))
    draws = np.stack([a, b + a**2 / 2], axis=-1)
    scores = np.stack([a * b - a, -b], axis=-1)
    posterior = {"a": a, "height": draws[..., 1], "tau": np.exp(a / 2)}
    variables = arviz_base.from_dict({"posterior": posterior})
    return sx.Sample(draws, scores, ["a", "height"], variables=variables)


def odd(length: int = 100) -> sx.Sample:
    """What a model may hold beside numbers that vary: constants, flags, counts, and no number."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(4, length, 2))
    cholesky = np.zeros((4, length, 2, 2))
    cholesky[..., 0, 0] = 1.0
    cholesky[..., 1, 0] = np.tanh(x[..., 0])
    cholesky[..., 1, 1] = 1 / np.cosh(x[..., 0])
    broken = x[..., 1].copy()
    broken[0, 3] = np.nan
    posterior = {
        "L": cholesky,
        "flag": x[..., 1] > 0,
        "count": rng.integers(0, 4, size=(4, length)),
        "broken": broken,
        "theta": x,
    }
    tree = arviz_base.from_dict(
        {"posterior": posterior},
        dims={"L": ["row", "column"], "theta": ["school"]},
        coords={"row": ["p", "q"], "column": ["p", "q"], "school": ["Choate", "Deerfield"]},
    )
    return sx.Sample(x, -x, ["z[0]", "z[1]"], variables=tree)
