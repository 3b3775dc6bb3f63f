"""Modules to and from one npz file, without pickle: loading a file runs nothing that is in it."""

import dataclasses
import json
import os
from collections.abc import Callable

import equinox as eqx
import jax
import numpy as np

from ._types import PyTree

FORMAT = 1


def write(path: str | os.PathLike[str], module: eqx.Module) -> None:
    """Save a module: its arrays as they are, its structure as a JSON text of names."""
    arrays: dict[str, np.ndarray] = {}
    structure = {"format": FORMAT, "module": _encode(module, arrays)}
    with open(path, "wb") as file:
        np.savez(file, structure=np.array(json.dumps(structure)), **arrays)  # type: ignore[arg-type]


def read(path: str | os.PathLike[str]) -> PyTree:
    """Load what `write` saved.

    A class is looked up by name among the modules that are already imported; nothing is imported
    or executed on the file's behalf.
    """
    with np.load(path, allow_pickle=False) as file:
        structure = json.loads(str(file["structure"]))
        if structure.get("format") != FORMAT:
            raise ValueError(f"{path} is of another format: save it again with this version.")
        return _decode(structure["module"], file)


def _encode(node: PyTree, arrays: dict[str, np.ndarray]) -> PyTree:
    if isinstance(node, eqx.Module):
        fields = {f.name: _encode(getattr(node, f.name), arrays) for f in dataclasses.fields(node)}
        return {"class": _class_name(type(node)), "fields": fields}
    if isinstance(node, (np.ndarray, jax.Array, np.generic)):
        name = f"array{len(arrays)}"
        arrays[name] = np.asarray(node)
        return {"array": name}
    if isinstance(node, (tuple, list)):
        kind = "tuple" if isinstance(node, tuple) else "list"
        return {kind: [_encode(item, arrays) for item in node]}
    if node is None or isinstance(node, (bool, int, float, str)):
        return {"value": node}
    name = getattr(node, "__name__", "")
    if callable(node) and _FUNCTIONS.get(name) is node:
        return {"function": name}
    raise ValueError(
        f"{node!r} cannot be saved: a saved network's activation must be one of "
        f"{', '.join(sorted(_FUNCTIONS))}."
    )


def _decode(node: PyTree, arrays: PyTree) -> PyTree:
    match node:
        case {"class": name, "fields": fields}:
            cls = _classes().get(name)
            if cls is None:
                raise ValueError(f"the file uses {name}: import the package that defines it first.")
            module = object.__new__(cls)
            for key in (f.name for f in dataclasses.fields(cls)):
                object.__setattr__(module, key, _decode(fields[key], arrays))
            return module
        case {"array": name}:
            return arrays[name]
        case {"tuple": items}:
            return tuple(_decode(item, arrays) for item in items)
        case {"list": items}:
            return [_decode(item, arrays) for item in items]
        case {"function": name} if name in _FUNCTIONS:
            return _FUNCTIONS[name]
        case {"value": None | bool() | int() | float() | str() as value}:
            return value
    raise ValueError(f"the file holds something that was not saved by steinax: {str(node)[:80]}")


def _class_name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _classes() -> dict[str, type]:
    found, waiting = {}, [eqx.Module]
    while waiting:
        for cls in waiting.pop().__subclasses__():
            found[_class_name(cls)] = cls
            waiting.append(cls)
    return found


def _activations() -> dict[str, Callable]:
    names = ("relu", "silu", "gelu", "tanh", "softplus", "sigmoid", "elu", "leaky_relu", "selu")
    functions = {name: getattr(jax.nn, name) for name in names}
    return functions | {"sin": jax.numpy.sin, "cos": jax.numpy.cos, "square": jax.numpy.square}


_FUNCTIONS = _activations()
