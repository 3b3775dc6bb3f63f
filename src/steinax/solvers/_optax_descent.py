import jax
import jax.numpy as jnp

from .._types import AnyArray, Key
from ._optimiser import Optimiser
from ._whitening import Whitened


def optax_descent(
    white: Whitened,
    f: AnyArray,
    key: Key,
    optimiser: Optimiser,
    batch_size: int,
    epochs: int,
    averaging: bool,
) -> jax.Array:
    """A whitened linear problem by any optimiser of optax, batches re-drawn for each step.

    With `averaging` the mean of the second half's iterates comes back, else the last one.
    """
    n = f.shape[0]
    steps = epochs * -(-n // batch_size)

    def loss(v: jax.Array, batch: jax.Array) -> jax.Array:
        rest = f[batch] - white.z[batch] @ v
        return jnp.sum(jnp.mean(rest**2, axis=0)) + jnp.sum(white.shrink[:, None] * v**2)

    def step(carry: tuple, index: jax.Array) -> tuple[tuple, None]:
        v, memory, mean = carry
        batch = jax.random.randint(jax.random.fold_in(key, index), (batch_size,), 0, n)
        updates, memory = optimiser.update(jax.grad(loss)(v, batch), memory, v)
        v = v + jnp.asarray(updates)
        mean = mean + (v - mean) / jnp.maximum(index - steps // 2 + 1, 1)
        return (v, memory, mean), None

    start = jnp.zeros((white.z.shape[1], f.shape[1]), f.dtype)
    carry = (start, optimiser.init(start), start)
    (v, _, mean), _ = jax.lax.scan(step, carry, jnp.arange(steps))
    return mean if averaging else v
