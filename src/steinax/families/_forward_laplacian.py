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
    Of the first layer $W J J^\top W^\top = W W^\top$, which is the same at every point.
    """
    slope = jax.vmap(jax.grad(activation))
    bend = jax.vmap(jax.grad(jax.grad(activation)))
    (weight, bias), *deeper = hidden
    a = weight @ x + bias
    first, outer = slope(a), weight @ weight.T
    value, along = activation(a), first * (weight @ score)
    laplacian = bend(a) * jnp.diagonal(outer)
    outer = first[:, None] * outer * first
    for weight, bias in deeper:
        a = weight @ value + bias
        first, half = slope(a), weight @ outer
        moved = first * (weight @ laplacian) + bend(a) * jnp.sum(half * weight, axis=1)
        carried, step = first * (weight @ along), activation(a)
        half = first[:, None] * half  # what the layer makes of C, from one side
        if residual:
            value, along, laplacian = value + step, along + carried, laplacian + moved
            half = outer + half
            outer = half + (half @ weight.T) * first
        else:
            value, along, laplacian = step, carried, moved
            outer = (half @ weight.T) * first
    return along, laplacian
