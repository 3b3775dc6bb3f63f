"""Importance weights, and the collection of samples from several processes."""

from dataclasses import replace
from typing import NamedTuple

import jax
import numpy as np
from numpy.typing import ArrayLike

from ._integrands import Integrands
from ._sample import Sample, as_reals


class Smoothed(NamedTuple):
    """Logarithms of smoothed weights, and the tail index of the original weights."""

    log_weights: np.ndarray
    khat: float


def pareto_smoothed(log_weights: ArrayLike) -> Smoothed:
    r"""Smooth the largest importance weights by quantiles of a fitted Pareto tail (PSIS).

    A handful of huge weights makes a weighted average vary strongly from run to run. Smoothing trades this
    variance for a little bias, and $\hat k$ tells whether the weights are usable at all: above 0.7 they are
    unreliable (Vehtari, Simpson, Gelman, Yao and Gabry, 2024). The computation is that of arviz-stats.

    Args:
        log_weights: (chain, draw), or (draw,) for one chain; any constant may be added to all.

    >>> rng = np.random.default_rng(0)
    >>> x = 2 * rng.normal(size=1000)
    >>> smoothed = pareto_smoothed(-(x**2) / 2 + x**2 / 8)
    >>> smoothed.log_weights.shape, smoothed.khat < 0.7
    ((1000,), True)
    """
    from arviz_stats.base.array import array_stats

    logs = np.asarray(as_reals(log_weights, "log_weights"), np.float64)
    if logs.size < 5 or not np.isfinite(logs).all():
        raise ValueError(
            f"log_weights of shape {logs.shape} cannot be smoothed: give five or more, all finite, and leave "
            "out draws whose weight is zero."
        )
    smooth, khat = array_stats.psislw(-logs.ravel())  # expects negative log weights
    return Smoothed(np.asarray(smooth).reshape(logs.shape), float(khat))


def refuse_weights(sample: object, what: str) -> None:
    """Refuse a sample whose weights would be ignored."""
    if isinstance(sample, Sample) and sample.weights is not None:
        raise ValueError(
            f"the draws have importance weights, which {what} does not support: use estimate, fit or audit, "
            "or resample the draws by their weights first."
        )


def gather_chains[T: (Sample, Integrands)](part: T) -> T:
    """Gather the chains of all processes, in the order of the processes, in every process.

    For programs that run as several processes (`jax.distributed.initialize`), each with the same number
    of chains of the same length. Only draws and scores, (n, dim) each, are copied; `Spread` then computes
    on every device with its share of the draws. The model's variables are not gathered: evaluate
    integrands that need them on the local chains, and gather those.

    Args:
        part: the sample of this process, or `integrands(f, sample)` on it.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 100, 2))
    >>> gather_chains(sx.Sample(x, -x))  # a single process
    Sample(4 chains x 100 draws, 2 dimensions: x[0], x[1])
    """
    if jax.process_count() == 1:
        return part
    if isinstance(part, Integrands):
        return replace(part, values=_gathered(part.values))
    refuse_weights(part, "gather_chains")  # weights are known up to a constant in each process
    draws, scores = _gathered(part.draws), _gathered(part.scores)
    flags = None if part.diverging is None else _gathered(part.diverging)
    density = None if part.log_density is None else _gathered(part.log_density)
    return Sample(
        draws, scores, part.names, part.dtype, flags, log_density=density, verified=part.verified
    )


def _gathered(local: np.ndarray) -> np.ndarray:
    """Concatenate the arrays of all processes; they are sent as bytes, so that nothing is rounded."""
    from jax.experimental.multihost_utils import process_allgather

    local = np.ascontiguousarray(local)
    shapes = np.asarray(process_allgather(np.array(local.shape, np.int32)))
    if (shapes != shapes[0]).any():
        raise ValueError(
            f"the processes have chains of different numbers or lengths, {shapes.tolist()}: give each "
            "process the same number of chains, of equal length."
        )
    whole = np.asarray(process_allgather(local.view(np.uint8).reshape(-1)))
    return whole.reshape(-1).view(local.dtype).reshape(-1, *local.shape[1:])
