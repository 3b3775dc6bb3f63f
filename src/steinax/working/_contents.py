"""What some objects are made of, where their fields do not tell it."""

import dataclasses
import inspect
from types import FunctionType
from typing import Any

import jax
import numpy as np

LABELLED = ("pandas", "xarray")


def is_stored(value: object) -> bool:
    """Whether it is an array that is read by slices, with no labels for its numbers.

    >>> is_stored(np.zeros(3)), is_stored(memoryview(b""))
    (False, False)
    """
    kind = type(value)
    if issubclass(kind, np.ndarray) or kind.__module__.startswith(LABELLED):
        return False
    return all(hasattr(value, part) for part in ("shape", "dtype", "__getitem__"))


def plainer(value: Any) -> object:
    """Something that tells all that matters of an object; None where its fields do.

    >>> plainer(jax.jit(abs))
    <built-in function abs>
    """
    kind = type(value)
    if kind.__module__.startswith("xarray") and hasattr(value, "to_dict"):
        return value.to_dict() if hasattr(value, "subtree") else value.to_dict(data="array")
    if kind is dataclasses.Field:
        return value.name, value.default, value.default_factory, value.metadata
    if kind is jax.tree_util.PyTreeDef:
        return value.num_leaves, value.node_data(), value.children()
    if value is getattr(np.random.get_state, "__self__", None):  # whoever uses it wants no seed
        return "the random state of NumPy"
    in_c = not isinstance(inspect.getattr_static(kind, "__call__", None), FunctionType)
    return getattr(value, "__wrapped__", None) if callable(value) and in_c else None
