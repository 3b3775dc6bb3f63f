import jax
import jax.numpy as jnp

from .._types import Point, PyTree
from ._activation import Activation


def forward_laplacian(
    hidden: PyTree, activation: Activation, residual: bool, x: Point, score: Point
) -> tuple[jax.Array, jax.Array]:
    r"""The hidden units' derivatives along the score, and their Laplacians, in one forward pass.

    With $a = W h + b$ and $J$ the Jacobian of $h$, the Laplacian of $\sigma(a)$ is
    $\sigma'(a)\, W \Delta h + \sigma''(a) \operatorname{diag}(W J J^\top W^\top)$, so only
    $C = J J^\top$ is carried, width by width: the cost of a layer does not grow with the dimension.
    """
    slope = jax.vmap(jax.grad(activation))
    bend = jax.vmap(jax.grad(jax.grad(activation)))
    value, along, laplacian, outer = x, score, jnp.zeros_like(x), None
    for i, (weight, bias) in enumerate(hidden):
        a = weight @ value + bias
        first, second = slope(a), bend(a)
        spread = jnp.sum((weight if outer is None else weight @ outer) * weight, axis=1)
        transfer = first[:, None] * weight
        moved = transfer @ laplacian + second * spread
        if residual and i > 0:
            transfer = transfer + jnp.eye(len(a), dtype=a.dtype)
            moved, value = moved + laplacian, value + activation(a)
        else:
            value = activation(a)
        along, laplacian = transfer @ along, moved
        outer = transfer @ transfer.T if outer is None else transfer @ outer @ transfer.T
    return along, laplacian
