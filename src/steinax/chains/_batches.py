import numpy as np

from .._types import Series

BATCHES = 100  # at most, of all chains together, or a few more


def batch_means(series: Series) -> np.ndarray:
    r"""Means of consecutive draws less the mean of all, (batch, k), for correlations of averages.

    Chains of $L$ draws give $\sqrt L$ batches each, fewer where chains are many. What is left over
    at the start of a chain is left out.

    >>> batch_means(np.random.default_rng(0).normal(size=(4, 250, 3))).shape
    (60, 3)
    """
    chains, length, k = series.shape
    each = max(min(int(np.sqrt(length)), -(-BATCHES // chains)), 1)
    size = length // each
    cut = np.asarray(series)[:, length - each * size :]
    means = cut.reshape(chains, each, size, k).mean(axis=2).reshape(chains * each, k)
    return means - means.mean(axis=0)


def correlation(batches: np.ndarray) -> np.ndarray:
    """Correlations of averages, (k, k), from the batches of their series.

    Averages that do not vary are taken to be independent of all others.

    >>> correlation(np.array([[1.0, -2.0], [-1.0, 2.0]])).round(1).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    size = np.sqrt((batches**2).sum(axis=0))
    unit = batches / np.where(size > 0, size, 1.0)
    found = np.clip(unit.T @ unit, -1.0, 1.0)
    np.fill_diagonal(found, 1.0)
    return found
