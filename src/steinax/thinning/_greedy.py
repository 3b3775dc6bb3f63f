"""The draws that lower the discrepancy most, one after the other."""

import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import Points
from ._stein_kernel import SteinKernel

TIE = 1e-12  # relative: copies of a draw are equal but for rounding, and the first is meant


@eqx.filter_jit
def select(stein: SteinKernel, x: Points, score: Points, m: int) -> tuple[jax.Array, jax.Array]:
    r"""The places of m draws, and the discrepancy of the first, the first two, ... of them.

    With $j_1, \dots, j_t$ chosen, the next is the draw $i$ with the least

    $$ k_0(x_i, x_i) + 2 \sum_{s \le t} k_0(x_i, x_{j_s}) , $$

    which is what it adds to the sum over all pairs. The sums are kept: a step costs n values of $k_0$.
    """
    own = stein.own(x, score)

    def step(carry: tuple[jax.Array, jax.Array], count: jax.Array) -> tuple:
        added, square = carry
        least = jnp.argmin(added)
        room = TIE * (jnp.abs(added[least]) + own[least])
        chosen = jnp.argmax(added <= added[least] + room)
        square = square + added[chosen]
        added = added + 2 * stein.to(x, score, x[chosen], score[chosen])
        return (added, square), (chosen, jnp.sqrt(jnp.maximum(square, 0.0)) / count)

    return jax.lax.scan(step, (own, jnp.zeros((), own.dtype)), jnp.arange(1.0, m + 1))[1]
