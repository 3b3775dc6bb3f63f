import abc
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._precision import as_leaf
from .._types import AnyArray, Points, PyTree, Scalar

SUBSAMPLE = 500  # draws whose distances are taken: 124,750 pairs


class AbstractHeuristic(eqx.Module):
    """A hyper-parameter that is found from the draws; it stands where the number would.

    >>> class RootDimension(AbstractHeuristic):
    ...     def __call__(self, x):
    ...         return jnp.sqrt(float(x.shape[1]))
    >>> from steinax.kernels import SquaredExponential
    >>> float(resolve(SquaredExponential(RootDimension()), np.zeros((3, 4))).length_scale)
    2.0
    """

    @abc.abstractmethod
    def __call__(self, x: Points) -> jax.Array:
        """The number, given the draws."""


class MedianHeuristic(AbstractHeuristic):
    r"""The median heuristic for a length-scale.

    $$ \ell = a \sqrt{\tfrac12 \operatorname{median}_{i<j} \|x_i - x_j\|^2} , $$

    with the paper's factor of one half. Of a large sample 500 draws are used, at all
    distances from the mean, whatever their order.

    Args:
        factor: $a$.

    >>> import numpy as np
    >>> x = np.array([[0.0], [1.0], [2.0]])
    >>> round(float(MedianHeuristic(2.0)(x)), 4)
    1.4142
    """

    factor: Scalar = eqx.field(converter=as_leaf, default=1.0)

    def __call__(self, x: Points) -> jax.Array:
        n = x.shape[0]
        x = jnp.asarray(x) - jnp.mean(jnp.asarray(x), axis=0)
        size = jnp.sum(x**2, axis=1)
        if n > SUBSAMPLE:  # some at every distance, whatever the order of the draws
            some = jnp.argsort(size)[np.linspace(0, n - 1, SUBSAMPLE).astype(int)]
            x, size = x[some], size[some]
        squared = size[:, None] + size - 2 * x @ x.T  # no array of pairs and dimensions
        pairs = squared[np.triu_indices(x.shape[0], k=1)]
        return self.factor * jnp.sqrt(jnp.median(pairs) / 2)


if TYPE_CHECKING:  # by the time it is used in a formula, a hyper-parameter is a number
    Hyperparameter = Any
else:
    Hyperparameter = Scalar | AbstractHeuristic


def resolve(tree: PyTree, x: Points) -> PyTree:
    """Replace every heuristic in a kernel or a family by the number it gives on the draws.

    >>> import numpy as np
    >>> from steinax.kernels import SquaredExponential
    >>> kernel = resolve(SquaredExponential(), np.array([[0.0], [1.0], [2.0]]))
    >>> round(float(kernel.length_scale), 4)
    0.7071
    """

    def is_heuristic(node: PyTree) -> bool:
        return isinstance(node, AbstractHeuristic) or hasattr(node, "resolved")

    def one(node: PyTree) -> PyTree:
        if hasattr(node, "resolved"):  # it looks at the draws in a way of its own
            return node.resolved(x)
        return node(x) if is_heuristic(node) else node

    return jax.tree.map(one, tree, is_leaf=is_heuristic)


def hyperparameter(value: float | np.number | AnyArray | AbstractHeuristic) -> Hyperparameter:
    """Convert a field: numbers become traced leaves, heuristics wait for the draws."""
    if isinstance(value, (AbstractHeuristic, jax.Array)):
        return value
    return as_leaf(value)
