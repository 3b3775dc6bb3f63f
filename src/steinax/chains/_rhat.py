import numpy as np

from .._types import AnyArray, Series


def split_rhat(series: Series) -> np.ndarray:
    """Split R-hat of each series (chain, draw, k): do the halves of all chains agree on the mean?

    Not the rank-normalised one. What a good control variate leaves is tiny on most draws and not
    on a few; ranks see the tiny ones only, whose level differs from fold to fold, and call for
    alarm when the means, which are what is averaged, agree. NaN for a single chain.

    >>> series = np.random.default_rng(0).normal(size=(4, 100, 2))
    >>> bool(np.all(split_rhat(series) < 1.05))
    True
    """
    chains, length, k = series.shape
    if chains < 2 or length < 4:
        return np.full(k, np.nan)
    half = length // 2
    split = np.concatenate([series[:, :half], series[:, -half:]])
    return rhat_of_halves(split.mean(axis=1), split.var(axis=1, ddof=1), half)


def rhat_of_halves(means: AnyArray, variances: AnyArray, half: int) -> np.ndarray:
    """Split R-hat from the means and variances of half chains of `half` draws, each (2 chain, k)."""
    between = half * means.var(axis=0, ddof=1)
    return np.sqrt((between / variances.mean(axis=0) + half - 1) / half)
