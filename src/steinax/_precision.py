"""Double precision for estimates, without touching the user's jax settings."""

from collections.abc import Callable
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
    """What `compute` gives in `dtype`, or in float32 where jax cannot.

    A NumPy array that a compiled loop read in float32, as the data of a model that was sampled so, is
    float32 to jax ever after: beside float64 it fails (seen in jax 0.12).
    """
    try:
        with precision(dtype):
            return compute()
    except (TypeError, jax.errors.JaxRuntimeError) as error:
        if not any(text in str(error) for text in _MIXED):
            raise
    with precision(np.float32):
        return compute()


_MIXED = ("requires arguments to have the same dtypes", "but got buffer with incompatible size")


def to_numpy(tree: PyTree) -> PyTree:
    """Move every jax array of a tree to NumPy, so that it keeps its precision outside the scope."""
    return jax.tree.map(
        lambda leaf: np.asarray(leaf) if isinstance(leaf, jax.Array) else leaf, tree
    )


def as_leaf(value: float | np.number | AnyArray) -> AnyArray:
    """A hyper-parameter as an array: traced by jit, so a grid of values shares one compilation."""
    return np.asarray(value, dtype=np.float64)


__all__ = ["as_leaf", "precision", "to_numpy", "widest"]
