"""Matrix fields with parameters, for `Diffusion`: each is the identity, or near it, as it is made."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._precision import as_leaf
from .._types import AnyArray, Point, Scalar


class GrowingMatrix(eqx.Module):
    r"""The matrix $A(x) = (1 + r |x|^2)\, I$, for tails as heavy as those of Student's $t$.

    For $t$ with $\nu$ degrees of freedom and scale 1, $r = 1 / \nu$ makes $A \nabla \log \pi$ linear in $x$.

    Args:
        rate: $r$. What is trained is its logarithm, so that it stays positive.

    >>> GrowingMatrix(0.5)(jnp.array([1.0, 1.0])).tolist()
    [2.0, 2.0]
    """

    log_rate: Scalar

    def __init__(self, rate: float = 0.1):
        if not rate > 0:
            raise ValueError(f"GrowingMatrix({rate}): the rate must be positive.")
        self.log_rate = as_leaf(np.log(rate))

    def __call__(self, x: Point) -> jax.Array:
        rate = jnp.exp(jnp.asarray(self.log_rate, x.dtype))
        return jnp.full(x.shape, 1 + rate * jnp.sum(x**2))


class TriangularMatrix(eqx.Module):
    r"""A constant matrix $A = L L^\top$ with $L$ lower triangular, the identity as it is made.

    Args:
        dim: the dimension of the draws.

    >>> TriangularMatrix(2)(jnp.zeros(2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    root: Float[AnyArray, "dim dim"]

    def __init__(self, dim: int):
        self.root = np.eye(dim)

    def __call__(self, x: Point) -> jax.Array:
        lower = jnp.tril(jnp.asarray(self.root, x.dtype))
        return lower @ lower.T


class NetworkMatrix(eqx.Module):
    r"""A diagonal $A(x) = \operatorname{diag}\, e^{W \tanh(V x + b) + c}$, the identity as it is made.

    Args:
        dim: the dimension of the draws.
        width: how many hidden units.
        seed: of $V$.

    >>> NetworkMatrix(2)(jnp.ones(2)).tolist()
    [1.0, 1.0]
    """

    inner: Float[AnyArray, "width dim"]
    bias: Float[AnyArray, " width"]
    outer: Float[AnyArray, "dim width"]
    level: Float[AnyArray, " dim"]

    def __init__(self, dim: int, width: int = 8, seed: int = 0):
        self.inner = np.random.default_rng(seed).normal(size=(width, dim)) / np.sqrt(dim)
        self.bias, self.outer, self.level = np.zeros(width), np.zeros((dim, width)), np.zeros(dim)

    def __call__(self, x: Point) -> jax.Array:
        inner, bias, outer, level = (
            jnp.asarray(leaf, x.dtype) for leaf in (self.inner, self.bias, self.outer, self.level)
        )
        return jnp.exp(outer @ jnp.tanh(inner @ x + bias) + level)
