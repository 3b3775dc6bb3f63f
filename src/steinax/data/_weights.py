"""What importance weights are worth, and smoother ones."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._types import AnyArray
from ._arrays import as_reals
from ._sample import Sample


class Smoothed(NamedTuple):
    """Logarithms of smoothed weights, and the tail index of those that were given."""

    log_weights: np.ndarray
    khat: float


def pareto_smoothed(log_weights: ArrayLike) -> Smoothed:
    r"""Importance weights with their largest ones replaced by quantiles of a fitted Pareto tail (PSIS).

    A handful of huge weights makes a weighted average jump from run to run. Smoothing them trades that for a
    little bias, and tells by $\hat k$ whether the weights can be used at all: above 0.7 they cannot be
    relied on (Vehtari, Simpson, Gelman, Yao and Gabry, 2024). arviz-stats does the work.

    Args:
        log_weights: (chain, draw), or (draw,) for one chain; any constant may be added to all.

    >>> rng = np.random.default_rng(0)
    >>> x = 2 * rng.normal(size=1000)
    >>> found = pareto_smoothed(-(x**2) / 2 + x**2 / 8)
    >>> found.log_weights.shape, found.khat < 0.7
    ((1000,), True)
    """
    from arviz_stats.base.array import array_stats

    logs = np.asarray(as_reals(log_weights, "log_weights"), np.float64)
    if logs.size < 5 or not np.isfinite(logs).all():
        raise ValueError(
            f"log_weights of shape {logs.shape} cannot be smoothed: give five or more, all finite, and leave "
            "out draws whose weight is zero."
        )
    smooth, khat = array_stats.psislw(
        -logs.ravel()
    )  # it takes the logarithms with their sign changed
    return Smoothed(np.asarray(smooth).reshape(logs.shape), float(khat))


def refuse_weights(sample: object, what: str) -> None:
    """Refuse a sample whose weights would be ignored."""
    if isinstance(sample, Sample) and sample.weights is not None:
        raise ValueError(
            f"the draws have importance weights, and {what} knows of none: use estimate, fit or audit, or "
            "resample the draws by their weights first."
        )


def of_draws(weights: AnyArray | None, part: slice) -> np.ndarray | None:
    """The logarithms of the weights of some consecutive draws of every chain."""
    return None if weights is None else np.log(weights[:, part])
