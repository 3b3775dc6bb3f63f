"""Stochastic optimisation of a whitened linear problem: one compiled scan."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from .._types import AnyArray, Key, Values


@eqx.filter_jit
def point_saga(
    z: AnyArray, f: Values, shrink: AnyArray, key: Key, batch_size: int, epochs: int
) -> jax.Array:
    r"""Point-SAGA: $\min_v \frac1m \|f - Z v\|^2 + \sum_j \gamma_j v_j^2$ without a rate to set.

    Each step solves for the residuals of one batch exactly (an implicit step, stable for any
    length), and corrects it by the residuals that all batches had when last visited, so the noise
    dies out and no rate needs to fall. The draws are dealt into batches at random once, and the
    batches visited in a new random order every epoch (Defazio, 2016).

    Args:
        z: the whitened features, (n, r); their Hessian is the identity.
        f: the integrands, centred, (n, k).
        shrink: $\gamma$.
        key: of the random order.
        batch_size: draws in a batch.
        epochs: visits to each batch.
    """
    n, r = z.shape
    k = f.shape[1]
    count = -(-n // batch_size)
    deal, visit = jax.random.split(key)
    order = jax.random.permutation(deal, n)
    gap = count * batch_size - n
    batches = jnp.pad(z[order], ((0, gap), (0, 0))).reshape(count, batch_size, r)
    length = jnp.minimum(0.5, 5.0 / count)
    scale = length / batch_size * (count * batch_size / n)
    inner = jnp.einsum("nir,njr->nij", batches, batches)
    implicit = jnp.linalg.inv(jnp.eye(batch_size, dtype=z.dtype) + scale * inner)
    keep = (1 - length * shrink)[:, None]
    # the table of residuals starts where v = 0 leaves them, at f
    mean = z.T @ f / n
    table = jnp.zeros((count, batch_size, k), z.dtype)

    def step(carry: tuple, i: jax.Array) -> tuple[tuple, None]:
        v, mean, table = carry  # v is already shrunk and moved along the mean gradient
        batch = batches[i]
        change = implicit[i] @ (table[i] - batch @ v)
        pull = batch.T @ change
        mean = mean + pull / n
        v = (v + scale * pull) * keep + length * mean
        return (v, mean, table.at[i].add(-change)), None

    def epoch(carry: tuple, key: Key) -> tuple[tuple, None]:
        return jax.lax.scan(step, carry, jax.random.permutation(key, count))

    start = (length * mean, mean, table)
    (v, _, _), _ = jax.lax.scan(epoch, start, jax.random.split(visit, epochs))
    return v


@eqx.filter_jit
def optax_descent(
    z: AnyArray,
    f: Values,
    shrink: AnyArray,
    key: Key,
    optimiser: optax.GradientTransformation,
    batch_size: int,
    epochs: int,
    averaging: bool,
) -> jax.Array:
    """The same by any optimiser of optax, batches re-drawn each step, later iterates averaged."""
    n = z.shape[0]
    steps = epochs * -(-n // batch_size)

    def loss(v: jax.Array, batch: jax.Array) -> jax.Array:
        rest = f[batch] - z[batch] @ v
        return jnp.sum(jnp.mean(rest**2, axis=0)) + jnp.sum(shrink[:, None] * v**2)

    def step(carry: tuple, index: jax.Array) -> tuple[tuple, None]:
        v, memory, mean = carry
        batch = jax.random.randint(jax.random.fold_in(key, index), (batch_size,), 0, n)
        updates, memory = optimiser.update(jax.grad(loss)(v, batch), memory, v)
        v = optax.apply_updates(v, updates)
        mean = mean + (v - mean) / jnp.maximum(index - steps // 2 + 1, 1)
        return (v, memory, mean), None

    start = jnp.zeros((z.shape[1], f.shape[1]), z.dtype)
    carry = (start, optimiser.init(start), start)
    (v, _, mean), _ = jax.lax.scan(step, carry, jnp.arange(steps))
    return mean if averaging else v
