"""What a standard error cannot be below, whatever the series shows."""

import numpy as np

from .._types import AnyArray

# Rounding leaves about this much of a sum's relative error: below it a standard error says
# nothing. It is the floor that a perfect control variate is reported with.
FLOOR = 4.0


def floor_of(size: AnyArray) -> np.ndarray:
    """The standard error that rounding leaves of a mean of numbers of this size, (k,)."""
    return FLOOR * np.finfo(np.float64).eps * np.maximum(size, np.finfo(np.float64).tiny)


def between_chain_error(means: AnyArray) -> np.ndarray:
    r"""The standard error that the chains' own means vouch for, (k,): a floor for any other.

    With $S^2$ the variance of the means of $M$ chains, $S^2 / M$ estimates the squared error of
    their average from $M - 1$ degrees of freedom, whatever happens within chains. It is divided by
    the 99% quantile of $\chi^2_{M-1} / (M - 1)$, so that chains which agree are hardly ever charged
    for it. Zero for one chain.

    Args:
        means: of each chain, (chain, k).

    >>> between_chain_error(np.arange(4.0)[:, None]).round(2).tolist()
    [0.33]
    """
    from scipy.special import chdtri

    chains = means.shape[0]
    if chains < 2:
        return np.zeros(means.shape[1])
    unlikely = chdtri(chains - 1, 0.01) / (chains - 1)
    return np.sqrt(means.var(axis=0, ddof=1) / chains / unlikely)
