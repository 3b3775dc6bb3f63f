r"""Rows of a least-squares problem, scaled by the roots of their weights.

$\sum_i v_i (f_i - c - g_i)^2$ is a plain sum of squares once every row, the intercept's column of ones too,
is multiplied by $\sqrt{v_i}$. Without weights the rows stay as they are.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._types import AnyArray

type Root = Float[AnyArray, " n"] | None


def root_of(weights: AnyArray | None) -> Root:
    r"""The roots of the weights $v_i$ that least squares gives to draws of importance weights $w_i$.

    $\sum_i w_i^2 (f_i - g_i - c)^2 / n^2$ is the variance of the self-normalised average of $f - g$ if its
    limit is $c$, so $v = w^2$, here of mean 1, and its root is $w$ but for a factor.
    """
    if weights is None:
        return None
    flat = np.asarray(weights, np.float64).ravel()
    return flat / np.sqrt(np.mean(flat**2))


def scaled(rows: AnyArray, root: Root) -> AnyArray:
    """Every row times its root: (n, p)."""
    return rows if root is None else root[:, None] * rows


def unscaled(rows: AnyArray, root: Root) -> AnyArray:
    """Every row over its root: (n, p)."""
    return rows if root is None else rows / root[:, None]


def ones(x: AnyArray, root: Root) -> AnyArray:
    """The column of the intercept, one row for each of x: (n, 1)."""
    return scaled(jnp.ones((x.shape[0], 1), x.dtype), root)


def average(values: AnyArray, root: Root) -> AnyArray:
    """The constant that is nearest to each column, by weighted squares: (k,)."""
    if root is None:
        return jnp.mean(values, axis=0)
    return jnp.sum(scaled(values, root**2), axis=0) / jnp.sum(root**2)


def centred(rows: AnyArray, root: Root) -> AnyArray:
    """Scaled rows less what the intercept's column explains of them: (n, p)."""
    if root is None:
        return rows - jnp.mean(rows, axis=0)
    return rows - jnp.outer(root, root @ rows / jnp.sum(root**2))
