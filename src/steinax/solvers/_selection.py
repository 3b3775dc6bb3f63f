"""Landmarks that are spread over the draws: the seeding of k-means++."""

import jax
import jax.numpy as jnp
import numpy as np

from .._types import AnyArray, Key
from ..families import Landmarks

CANDIDATES = 10  # draws looked at for every landmark


def spread_out(x: AnyArray, count: int, key: Key) -> np.ndarray:
    r"""The indices of `count` draws, each found with a chance that grows with its squared distance.

    The distance is that to the landmarks before it (Arthur and Vassilvitskii, 2007). Up to ten draws
    per landmark are looked at, evenly spaced, so that the cost, $O(10\, M^2 d)$, is not one of $n$.
    """
    n = len(x)
    if n <= count:
        return np.arange(n)
    looked_at = Landmarks(CANDIDATES * count).choose(n)
    found = _seeds(jnp.asarray(x)[looked_at], count, key)
    return np.sort(looked_at[np.asarray(found)])


@jax.jit(static_argnums=1)
def _seeds(x: jax.Array, count: int, key: Key) -> jax.Array:
    chance = jax.random.uniform(key, (count,), x.dtype)
    first = jnp.zeros((), int)

    def add(distance: jax.Array, at: jax.Array) -> tuple[jax.Array, jax.Array]:
        below = jnp.cumsum(distance)
        chosen = jnp.searchsorted(below, at * below[-1], side="right").clip(0, len(x) - 1)
        return jnp.minimum(distance, jnp.sum((x - x[chosen]) ** 2, axis=1)), chosen

    distance = jnp.sum((x - x[first]) ** 2, axis=1)
    _, chosen = jax.lax.scan(add, distance, chance[1:])
    return jnp.concatenate([first[None], chosen])
