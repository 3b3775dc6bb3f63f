"""Is an activation smooth enough for the second-order operator?"""

from collections.abc import Callable
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

type Activation = Callable[[jax.Array], jax.Array]

RANGE, POINTS, HALVINGS, JUMP = 10.0, 2001, 40, 1e-3


@cache
def kink(activation: Activation) -> float | None:
    """A place in [-10, 10] at which the derivative jumps, or None where there is none.

    The interval over which the derivative changes most is halved again and again: over a shrinking
    interval a continuous derivative changes ever less, one that jumps does not.
    """
    slope = jax.vmap(jax.grad(lambda t: jnp.sum(activation(t))))
    # off the round numbers, where subgradients are a matter of convention
    grid = jnp.linspace(-RANGE, RANGE + 1e-3 * np.pi, POINTS)
    left, right = grid[:-1], grid[1:]
    for _ in range(HALVINGS):
        middle = (left + right) / 2
        low, mid, high = slope(left), slope(middle), slope(right)
        first = jnp.abs(mid - low) >= jnp.abs(high - mid)
        left, right = jnp.where(first, left, middle), jnp.where(first, middle, right)
    jump = jnp.abs(slope(right) - slope(left))
    worst = int(jnp.argmax(jump))
    return float(left[worst]) if float(jump[worst]) > JUMP else None
