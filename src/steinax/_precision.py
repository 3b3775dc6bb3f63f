"""Double precision for estimates, without touching the user's jax settings."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import jax
import numpy as np
from numpy.typing import DTypeLike

from ._types import AnyArray, PyTree


def precision(dtype: DTypeLike) -> AbstractContextManager[Any]:
    """A scope in which jax computes in `dtype` (float64 or float32), in this thread only."""
    return jax.enable_x64(np.dtype(dtype) == np.float64)


def widest[T](compute: Callable[[], T], dtype: DTypeLike) -> T:
    """What `compute` gives in `dtype`, whatever jax was set to before.

    A NumPy array that jax has read in float32, as the data of a model that was sampled so, stays float32 in
    jax's caches, and beside float64 it may fail (seen in jax 0.12). The caches are cleared then, and
    `compute` is called again: what was compiled before is compiled anew when it is next used.
    """
    with precision(dtype):
        try:
            return compute()
        except (TypeError, jax.errors.JaxRuntimeError) as error:
            if not any(text in str(error) for text in _MIXED):
                raise
        jax.clear_caches()
        return compute()


_MIXED = ("requires arguments to have the same dtypes", "but got buffer with incompatible size")


def reads_single(fn: Callable[..., Any], *args: PyTree) -> bool:
    """Whether a function reads NumPy arrays that jax holds in float32, by a trace of it.

    They may be float64 to the user: jax goes on with the float32 copy that it made of an array before,
    without a word. `jax.clear_caches()` makes it read the array itself again.
    """
    return any(
        not isinstance(one, jax.Array) and getattr(one, "dtype", None) == np.float32
        for one in _constants(jax.make_jaxpr(fn)(*args))
    )


def _constants(closed: Any) -> Iterator[Any]:
    """The constants of a program and of the programs in it."""
    yield from getattr(closed, "consts", ())
    for equation in getattr(closed, "jaxpr", closed).eqns:
        yield from (one.val for one in equation.invars if hasattr(one, "val"))
        for inner in jax.tree.leaves(list(equation.params.values()), is_leaf=_is_program):
            if _is_program(inner):
                yield from _constants(inner)


def _is_program(node: object) -> bool:
    return hasattr(node, "eqns") or hasattr(node, "jaxpr")


def to_numpy(tree: PyTree) -> PyTree:
    """Move every jax array of a tree to NumPy, so that it keeps its precision outside the scope."""
    return jax.tree.map(
        lambda leaf: np.asarray(leaf) if isinstance(leaf, jax.Array) else leaf, tree
    )


def as_leaf(value: float | np.number | AnyArray) -> AnyArray:
    """A hyper-parameter as an array: traced by jit, so a grid of values shares one compilation."""
    return np.asarray(value, dtype=np.float64)


__all__ = ["as_leaf", "precision", "reads_single", "to_numpy", "widest"]
