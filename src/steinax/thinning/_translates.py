import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._types import AnyArray, Coefficients, Points
from ._stein_kernel import SteinKernel

ENTRIES = 2**20  # of the kernel matrix that are in memory at a time


def translates(
    stein: SteinKernel, x: Points, score: Points, centres: AnyArray, coef: Coefficients
) -> np.ndarray:
    r"""The functions $\sum_j \theta_j k_0(\cdot, x_j)$ on all draws, (n, k), some rows at a time.

    Args:
        stein: the kernel $k_0$.
        x: all draws, in its coordinates.
        score: and their scores.
        centres: the places of $x_j$ among them.
        coef: the coefficients $\theta$, (p, k).
    """
    n = len(x)
    rows = min(max(ENTRIES // len(centres), 1), n)
    blocks = -(-n // rows)
    spare = ((0, blocks * rows - n), (0, 0))  # blocks of one shape are compiled once
    parts = (jnp.pad(one, spare).reshape(blocks, rows, -1) for one in (x, score))
    y, score_y, coef = x[centres], score[centres], jnp.asarray(coef)
    found = [
        _block(stein, rows_x, rows_score, y, score_y, coef)
        for rows_x, rows_score in zip(*parts, strict=True)
    ]
    return np.concatenate([np.asarray(one) for one in found])[:n]


@eqx.filter_jit
def _block(
    stein: SteinKernel, x: AnyArray, score: AnyArray, y: AnyArray, score_y: AnyArray, coef: AnyArray
) -> jax.Array:
    return stein.matrix(x, score, y, score_y) @ coef
