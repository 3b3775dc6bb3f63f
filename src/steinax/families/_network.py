import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._types import AnyArray, Key, Point, Points, PyTree
from ..operators import AbstractOperator, Langevin, ScalarLangevin
from ._activation import Activation, kink
from ._base import AbstractFamily
from ._forward_laplacian import forward_laplacian


class Network(AbstractFamily):
    r"""A fully connected network as $u_\theta$: neural control variates.

    A vector field under `Langevin()`, a potential under `ScalarLangevin()`. The hidden layers are
    shared by all integrands, each of which has its own output. A residual network adds each hidden
    layer to the one before. A potential needs an activation with a continuous derivative: with
    ReLU its Laplacian is missing at the kinks, the control variate does not have mean zero, and
    the estimate is wrong with a small error bar.

    Args:
        width: of each hidden layer.
        depth: the number of hidden layers.
        activation: between the layers.
        residual: whether hidden layers are added to their input.
        operator: $\mathcal{L}$.

    >>> import jax
    >>> family = Network(width=50, depth=2, activation=jax.nn.relu)  # a field: kinks are allowed
    """

    width: int = eqx.field(static=True, default=32)
    depth: int = eqx.field(static=True, default=2)
    activation: Activation = eqx.field(static=True, default=jax.nn.silu)
    residual: bool = eqx.field(static=True, default=False)
    operator: AbstractOperator = eqx.field(default_factory=Langevin)

    def __check_init__(self) -> None:
        if self.width < 1 or self.depth < 1:
            raise ValueError(
                f"Network(width={self.width}, depth={self.depth}): both must be 1 or more."
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
            (jax.random.normal(one, (out, size), dtype) / np.sqrt(size), jnp.zeros(out, dtype))
            for one, size, out in zip(keys, sizes[:-1], sizes[1:], strict=True)
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
        """The network's outputs: potentials (k,), or fields (k, dim) under `Langevin()`."""
        hidden, weight, bias = params
        return weight @ self._trunk(hidden, x) + bias

    def _trunk(self, hidden: PyTree, x: Point) -> jax.Array:
        for i, (weight, bias) in enumerate(hidden):
            h = self.activation(weight @ x + bias)
            x = x + h if self.residual and i > 0 else h
        return x
