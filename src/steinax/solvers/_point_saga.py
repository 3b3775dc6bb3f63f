"""Point-SAGA on a whitened linear problem: stochastic, with no rate to set and no noise left."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from .._types import AnyArray, Key
from ._whitening import Whitened

# The step is this many times one over the number of batches. From 1.5 to 6 all problems of
# the tests converge alike; from 12 some do not.
STEP = 5.0


class Batches(NamedTuple):
    """The draws, dealt at random into batches of one size, the last filled up with zeros."""

    order: jax.Array  # of the draws
    z: jax.Array  # (batch, draw, r)
    f: jax.Array  # (batch, draw) or (batch, draw, k)
    visits: jax.Array  # which batch each step takes: all of them, in a new order, every epoch
    step: AnyArray
    share: AnyArray  # of the step that falls to one draw of a batch


def deal(white: Whitened, f: AnyArray, key: Key, batch_size: int, epochs: int) -> Batches:
    """Deal the draws into batches and decide in which order these are visited."""
    n = f.shape[0]
    count = -(-n // batch_size)
    first, second = jax.random.split(key)
    order = jax.random.permutation(first, n)
    gap = count * batch_size - n

    def batched(rows: jax.Array) -> jax.Array:
        padded = jnp.pad(rows[order], [(0, gap)] + [(0, 0)] * (rows.ndim - 1))
        return padded.reshape(count, batch_size, *rows.shape[1:])

    keys = jax.random.split(second, epochs)
    visits = jax.vmap(lambda one: jax.random.permutation(one, count))(keys).ravel()
    step = jnp.minimum(0.5, STEP / count)
    return Batches(order, batched(white.z), batched(f), visits, step, step * count / n)


def point_saga(white: Whitened, f: AnyArray, batches: Batches) -> jax.Array:
    r"""Minimise $\frac1m \|f - Z v\|^2 + \sum_j \gamma_j v_j^2$ (Defazio, 2016).

    It starts from $Z^\top f / m$, which is the minimum itself where the coordinates are exact. A step
    solves for the residuals of its batch implicitly, so it is stable at any length, and is
    corrected by the residuals that every batch had when last visited, so its noise dies out.

    Args:
        white: the features $Z$, whose Hessian is the identity, and $\gamma$.
        f: the integrands, centred, (n, k); or (n,) for one, which is faster.
        batches: of the draws.
    """
    n, size = f.shape[0], batches.z.shape[1]
    inner = jnp.einsum("nir,njr->nij", batches.z, batches.z)
    implicit = jnp.linalg.inv(jnp.eye(size, dtype=f.dtype) + batches.share * inner)
    keep = 1 - batches.step * _like(white.shrink, f)
    first = white.z.T @ f / n
    mean = white.z.T @ (f - white.z @ first) / n  # of the stored gradients

    def step(carry: tuple, i: jax.Array) -> tuple[tuple, None]:
        v, mean, fitted = carry  # v has been shrunk and moved along the mean gradient already
        z = batches.z[i]
        change = implicit[i] @ (fitted[i] - z @ v)
        pull = change @ z if f.ndim == 1 else z.T @ change
        mean = mean + pull / n
        v = (v + batches.share * pull) * keep + batches.step * mean
        return (v, mean, fitted.at[i].add(-change)), None

    fitted = batches.z @ first
    start = (first * keep + batches.step * mean, mean, fitted)
    return jax.lax.scan(step, start, batches.visits)[0][0]


def point_saga_with_rest(
    white: Whitened, rest: AnyArray, f: AnyArray, batches: Batches
) -> tuple[jax.Array, jax.Array]:
    r"""The same for $f \approx Z v + R \beta$, with the penalty $\frac1m \beta^\top R \beta$ beside.

    $R$ is what the landmarks leave of the kernel, and $\beta$ has one entry per draw. Its share
    of the Hessian is taken to be the mean eigenvalue of $R$ beyond the landmarks' span.

    Returns:
        $v$, and $\beta$ in the order of the draws.
    """
    n = f.shape[0]
    count, size = batches.z.shape[:2]
    gap = count * size - n
    rest = jnp.pad(rest[batches.order][:, batches.order], ((0, gap), (0, gap)))
    rows = rest.reshape(count, size, count * size)
    blocks = jax.vmap(lambda r, i: jax.lax.dynamic_slice(r, (0, i * size), (size, size)))(
        rows, jnp.arange(count)
    )
    tail = 1 / (white.tail + 1 / n)
    inner = jnp.einsum("nir,njr->nij", batches.z, batches.z) + tail * blocks
    implicit = jnp.linalg.inv(jnp.eye(size, dtype=f.dtype) + batches.share * inner)
    keep = 1 - batches.step * _like(white.shrink, f)

    def step(carry: tuple, i: jax.Array) -> tuple[tuple, None]:
        v, mean, stored, beta = carry
        z = batches.z[i]
        v = v * keep + batches.step * mean
        beta = beta + batches.step * tail / n * (stored - beta)
        flat = beta.reshape(count * size, *f.shape[1:])
        change = implicit[i] @ (batches.f[i] - z @ v - rows[i] @ flat - stored[i])
        pull = change @ z if f.ndim == 1 else z.T @ change
        beta = beta.at[i].add(batches.share * tail * change)
        return (v + batches.share * pull, mean + pull / n, stored.at[i].add(change), beta), None

    first = white.z.T @ f / n
    stored = batches.f - batches.z @ first
    mean = white.z.T @ (f - white.z @ first) / n
    start = (first, mean, stored, jnp.zeros_like(batches.f))
    v, _, _, beta = jax.lax.scan(step, start, batches.visits)[0]
    beta = beta.reshape(count * size, *f.shape[1:])[:n]
    return v, jnp.zeros_like(f).at[batches.order].set(beta)


def _like(vector: AnyArray, f: AnyArray) -> AnyArray:
    return vector if f.ndim == 1 else vector[:, None]
