from collections.abc import Iterator

import numpy as np

from .._types import AnyArray, Chains
from ..chains import linearised
from ._errors import means_and_errors
from ._identities import Weights, own_identities, standardised

EVIDENCE = (10.0, 3.0)  # by so much must chi squared fall for a column to be thought changed


def choices(
    options: list[tuple[Chains, Chains]], allowed: AnyArray, weights: Weights = None
) -> Iterator[AnyArray]:
    """Which of several draws and scores each dimension needs: (dim,) of option numbers.

    The first option stands in doubt; little doubt is allowed first, then more. A mistake in one
    column does not change the own identities of another, so each is decided alone.

    Args:
        options: draws and scores of all dimensions, the given ones first.
        allowed: which options are open to which dimension, (option, dim) or (option, 1).
        weights: of the draws, where they have some.
    """
    each = np.stack([_misfit(*option, weights) for option in options])
    misfit = np.where(allowed, each, np.inf)
    best, gain = misfit.argmin(axis=0), misfit[0] - misfit.min(axis=0)
    before = np.zeros_like(best)
    for evidence in EVIDENCE:
        chosen = np.where(gain > evidence, best, 0)
        if (chosen != before).any():
            yield chosen
        before = chosen


def _misfit(draws: Chains, scores: Chains, weights: Weights) -> AnyArray:
    """Chi squared of each dimension's own identities: (dim,)."""
    moves = np.ptp(draws, axis=(0, 1)) > 0
    y, scale = standardised(np.where(moves, draws, np.arange(draws.shape[1])[:, None]), weights)
    series = np.concatenate(own_identities(y, scores * scale), axis=2)
    found = means_and_errors(linearised(series, weights))
    chi = (found.mean / np.maximum(found.error, np.finfo(np.float64).tiny)) ** 2
    return np.where(moves, chi.reshape(4, -1).sum(axis=0), np.inf)
