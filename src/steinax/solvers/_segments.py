"""Unbroken pieces of chains, for objectives to which the order of draws matters."""

import jax
import jax.numpy as jnp
import numpy as np

from .._types import AnyArray, Key


def of_chains(chains: int, length: int) -> np.ndarray:
    """The number of its chain at every draw, chains one after the other: (n,).

    >>> of_chains(2, 3).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    return np.repeat(np.arange(chains), length)


def cut(segment: AnyArray, index: np.ndarray) -> np.ndarray:
    """The pieces of some of the draws: a new one begins where the draws before are left out.

    >>> cut(of_chains(2, 3), np.array([0, 2, 3, 4])).tolist()
    [0, 1, 2, 2]
    """
    index = np.asarray(index)
    own = np.asarray(segment)[index]
    return np.cumsum(np.r_[0, (np.diff(index) != 1) | (np.diff(own) != 0)])


def draw_batch(key: Key, n: int, size: int, run: int | None) -> jax.Array:
    """The draws of a random batch: single ones, or a run of `size + run` of them in a row.

    Args:
        key: for the random numbers.
        n: how many draws there are.
        size: of the batch.
        run: the objective's reach.
    """
    if run is None:
        return jax.random.randint(key, (size,), 0, n)
    length = min(size + run, n)
    return jax.random.randint(key, (), 0, n - length + 1) + jnp.arange(length)
