"""The chains of several processes, brought together."""

from dataclasses import replace

import jax
import numpy as np

from ._integrands import Integrands
from ._sample import Sample
from ._weights import refuse_weights


def gather_chains[T: (Sample, Integrands)](part: T) -> T:
    """The chains that all processes have, in the order of the processes: the same in each of them.

    For programs that run as several processes (`jax.distributed.initialize`), each with chains of
    its own, as many and as long as the others'. It is a copy of draws and scores, (n, dim) each, not of
    anything larger; `Spread` then computes on every device with its share of them. The model's variables
    are not collected: evaluate integrands that need them on the own chains, and collect those.

    Args:
        part: the sample of this process, or `integrands(f, sample)` on it.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 100, 2))
    >>> gather_chains(sx.Sample(x, -x))  # of one process
    Sample(4 chains x 100 draws, 2 dimensions: x[0], x[1])
    """
    if jax.process_count() == 1:
        return part
    if isinstance(part, Integrands):
        return replace(part, values=_gathered(part.values))
    refuse_weights(part, "gather_chains")  # each process has them up to a constant of its own
    draws, scores = _gathered(part.draws), _gathered(part.scores)
    flags = None if part.diverging is None else _gathered(part.diverging)
    density = None if part.log_density is None else _gathered(part.log_density)
    return Sample(draws, scores, part.names, part.dtype, flags, log_density=density)


def _gathered(local: np.ndarray) -> np.ndarray:
    """All processes' arrays, one below the other; bytes travel, so that no bit is rounded."""
    from jax.experimental.multihost_utils import process_allgather

    local = np.ascontiguousarray(local)
    shapes = np.asarray(process_allgather(np.array(local.shape, np.int32)))
    if (shapes != shapes[0]).any():
        raise ValueError(
            f"the processes have chains of different numbers or lengths, {shapes.tolist()}: give each "
            "process as many chains, of equal length."
        )
    whole = np.asarray(process_allgather(local.view(np.uint8).reshape(-1)))
    return whole.reshape(-1).view(local.dtype).reshape(-1, *local.shape[1:])
