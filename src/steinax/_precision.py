"""Double precision for estimates, without touching the user's jax settings."""

from contextlib import AbstractContextManager
from typing import Any

import jax
import numpy as np
from numpy.typing import DTypeLike

from ._types import AnyArray, PyTree


def precision(dtype: DTypeLike) -> AbstractContextManager[Any]:
    """A scope in which jax computes in `dtype` (float64 or float32), in this thread only."""
    return jax.enable_x64(np.dtype(dtype) == np.float64)


def to_numpy(tree: PyTree) -> PyTree:
    """Move every jax array of a tree to NumPy, so that it keeps its precision outside the scope."""
    return jax.tree.map(
        lambda leaf: np.asarray(leaf) if isinstance(leaf, jax.Array) else leaf, tree
    )


def as_leaf(value: float | np.number | AnyArray) -> AnyArray:
    """A hyper-parameter as an array: traced by jit, so a grid of values shares one compilation."""
    return np.asarray(value, dtype=np.float64)


__all__ = ["as_leaf", "precision", "to_numpy"]
