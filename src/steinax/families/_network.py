"""Neural control variates: multilayer perceptrons under a Stein operator."""

from collections.abc import Callable
from functools import cache
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._types import AnyArray, Key, Point, Points, PyTree
from ..operators import AbstractOperator, Langevin, ScalarLangevin
from ._base import AbstractFamily

type Activation = Callable[[jax.Array], jax.Array]

RANGE, POINTS, HALVINGS, JUMP = 10.0, 2001, 40, 1e-3


@cache
def kink(activation: Activation) -> float | None:
    """Find a point in [-10, 10] at which an activation's derivative jumps, or None if it is continuous.

    Intervals are halved repeatedly, keeping the half over which the derivative changes more. The change
    of a continuous derivative shrinks with the interval, a jump does not.
    """
    slope = jax.vmap(jax.grad(lambda t: jnp.sum(activation(t))))
    # avoid round numbers, where the value of a subgradient is a convention
    grid = jnp.linspace(-RANGE, RANGE + 1e-3 * np.pi, POINTS)
    left, right = grid[:-1], grid[1:]
    for _ in range(HALVINGS):
        middle = (left + right) / 2
        low, mid, high = slope(left), slope(middle), slope(right)
        in_left = jnp.abs(mid - low) >= jnp.abs(high - mid)
        left, right = jnp.where(in_left, left, middle), jnp.where(in_left, middle, right)
    jump = jnp.abs(slope(right) - slope(left))
    worst = int(jnp.argmax(jump))
    return float(left[worst]) if float(jump[worst]) > JUMP else None


def forward_laplacian(
    hidden: PyTree, activation: Activation, residual: bool, x: Point, score: Point
) -> tuple[jax.Array, jax.Array]:
    r"""Compute the hidden units' derivatives along the score and their Laplacians in one forward pass.

    With $a = W h + b$ and $J$ the Jacobian of $h$, the Laplacian of $\sigma(a)$ is
    $\sigma'(a)\, W \Delta h + \sigma''(a) \operatorname{diag}(W J J^\top W^\top)$, so only
    $C = J J^\top$, (width, width), is propagated: the cost of a layer does not grow with the dimension.
    In the first layer $W J J^\top W^\top = W W^\top$, the same at every point.
    """
    slope = jax.vmap(jax.grad(activation))
    curvature = jax.vmap(jax.grad(jax.grad(activation)))
    (weight, bias), *deeper = hidden
    a = weight @ x + bias
    first, outer = slope(a), weight @ weight.T
    value, along = activation(a), first * (weight @ score)
    laplacian = curvature(a) * jnp.diagonal(outer)
    outer = first[:, None] * outer * first
    for weight, bias in deeper:
        a = weight @ value + bias
        first, half = slope(a), weight @ outer
        new_laplacian = first * (weight @ laplacian) + curvature(a) * jnp.sum(half * weight, axis=1)
        new_along, new_value = first * (weight @ along), activation(a)
        half = first[:, None] * half  # the layer's Jacobian times C
        if residual:
            value, along, laplacian = (
                value + new_value,
                along + new_along,
                laplacian + new_laplacian,
            )
            half = outer + half
            outer = half + (half @ weight.T) * first
        else:
            value, along, laplacian = new_value, new_along, new_laplacian
            outer = (half @ weight.T) * first
    return along, laplacian


class Network(AbstractFamily):
    r"""A fully connected network as $u_\theta$: neural control variates.

    The network is a vector field under `Langevin()`, a potential under `ScalarLangevin()`. The hidden
    layers are shared by all integrands, each of which has its own output. A residual network adds each hidden
    layer to the one before. A potential needs an activation with a continuous derivative: with
    ReLU its Laplacian is missing at the kinks, the control variate does not have mean zero, and
    the estimate is wrong with a small error bar.

    Args:
        width: the number of units of each hidden layer.
        depth: the number of hidden layers.
        activation: the nonlinearity of the hidden layers.
        residual: whether hidden layers are added to their input.
        operator: the Stein operator $\mathcal{L}$.

    >>> import jax
    >>> family = Network(width=50, depth=2, activation=jax.nn.relu)  # a field: kinks are allowed
    """

    references: ClassVar[tuple[str, ...]] = ("zhu2018neural",)
    width: int = eqx.field(static=True, default=32)
    depth: int = eqx.field(static=True, default=2)
    activation: Activation = eqx.field(static=True, default=jax.nn.silu)
    residual: bool = eqx.field(static=True, default=False)
    operator: AbstractOperator = eqx.field(default_factory=Langevin)

    def __check_init__(self) -> None:
        sizes = self.width, self.depth
        if not all(isinstance(size, int | np.integer) and size > 0 for size in sizes):
            raise ValueError(
                f"Network(width={self.width!r}, depth={self.depth!r}): both must be 1 or more, and whole. "
                "The activation is a function, Network(activation=jax.nn.relu)."
            )
        if not callable(self.activation):
            raise TypeError(
                f"Network: activation={self.activation!r} is not a function: give one, such as jax.nn.relu."
            )
        if self.operator.acts_on_fields:
            return
        place = kink(self.activation)
        if place is not None:
            raise ValueError(
                f"the activation's derivative jumps near {place:.3g}, so a potential made of it has "
                "no Laplacian there and its control variate does not have mean zero: the estimate "
                "would be biased. Use a smooth activation (jax.nn.silu, jnp.tanh), or a vector "
                "field: operator=Langevin()."
            )

    def setup(self, x: Points, score: Points) -> None:
        return None

    def init(self, state: None, x: Points, k: int, key: Key) -> PyTree:
        dim, dtype = x.shape[1], jnp.asarray(x).dtype
        sizes = [dim] + [self.width] * self.depth
        keys = jax.random.split(key, self.depth)
        hidden = [
            (
                jax.random.normal(layer_key, (out, size), dtype) / np.sqrt(size),
                jnp.zeros(out, dtype),
            )
            for layer_key, size, out in zip(keys, sizes[:-1], sizes[1:], strict=True)
        ]
        shape = (k, dim) if self.operator.acts_on_fields else (k,)
        return hidden, jnp.zeros((*shape, self.width), dtype), jnp.zeros(shape, dtype)

    def evaluate(self, state: None, params: PyTree, x: Point, score: Point) -> jax.Array:
        hidden, weight, bias = params
        match self.operator:
            case Langevin():
                value, jacobian = self._trunk(hidden, x), jax.jacfwd(self._trunk, 1)(hidden, x)
                divergence = jnp.einsum("kdw,wd->k", weight, jacobian)
                return divergence + (weight @ value + bias) @ score
            case ScalarLangevin():
                derivative, laplacian = forward_laplacian(
                    hidden, self.activation, self.residual, x, score
                )
                return weight @ (derivative + laplacian)
        return self.operator(lambda z: self.potential(params, z), x, score)

    def rescale(self, params: PyTree, factor: Float[AnyArray, " k"]) -> PyTree:
        hidden, weight, bias = params
        return hidden, (weight.T * factor).T, (bias.T * factor).T

    def potential(self, params: PyTree, x: Point) -> jax.Array:
        """Evaluate the outputs of the network: potentials (k,), or fields (k, dim) under `Langevin()`."""
        hidden, weight, bias = params
        return weight @ self._trunk(hidden, x) + bias

    def _trunk(self, hidden: PyTree, x: Point) -> jax.Array:
        """Evaluate the last hidden layer: (width,)."""
        for i, (weight, bias) in enumerate(hidden):
            h = self.activation(weight @ x + bias)
            x = x + h if self.residual and i > 0 else h
        return x
