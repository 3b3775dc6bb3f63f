"""Serialise results and modules as npz bytes, without pickle: loading executes no stored code."""

import dataclasses
import io
import json
import sys
import zipfile
from collections.abc import Callable
from functools import cache
from typing import Any

import equinox as eqx
import numpy as np

FORMAT = 2

type Arrays = dict[str, np.ndarray]


def to_bytes(result: object) -> bytes:
    """Write the arrays of `result`, and a JSON description of their nesting, as the bytes of an npz file.

    >>> from_bytes(to_bytes({"mean": np.arange(2.0), "parts": (1, "a", None)}))
    {'mean': array([0., 1.]), 'parts': (1, 'a', None)}
    """
    arrays: Arrays = {}
    structure = json.dumps({"format": FORMAT, "content": _encode(result, arrays)})
    buffer = io.BytesIO()
    np.savez(buffer, structure=np.array(structure), **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def from_bytes(content: bytes) -> Any:
    """Read the result that `to_bytes` wrote; jax arrays become NumPy arrays.

    A class is looked up by name among the modules that are already imported; nothing is imported
    or executed because of the file.
    """
    with _opened(content) as file:
        structure = json.loads(str(file["structure"]))
        if structure.get("format") != FORMAT:
            raise ValueError(
                "the file has another format: save it again with this version of steinax."
            )
        return _decode(structure["content"], file)


def _opened(content: bytes) -> Any:
    """Open the bytes of an npz file that has a structure."""
    if zipfile.is_zipfile(io.BytesIO(content)):
        file = np.load(io.BytesIO(content), allow_pickle=False)
        if "structure" in file:
            return file
    raise ValueError("this is not a file that steinax wrote: give the path that was given to save.")


def _encode(node: Any, arrays: Arrays) -> Any:
    if node is None or type(node) in {bool, int, float, str}:
        return {"value": node}
    if hasattr(node, "__array__"):
        return _encode_array(node, arrays)
    if isinstance(node, dict):
        pairs = [[_encode(key, arrays), _encode(value, arrays)] for key, value in node.items()]
        return {"dict": pairs}
    names = _fields(type(node))
    if names is not None:
        fields = {name: _encode(getattr(node, name), arrays) for name in names}
        return {"class": [type(node).__module__, type(node).__qualname__], "fields": fields}
    if type(node) in {tuple, list}:
        return {type(node).__name__: [_encode(item, arrays) for item in node]}
    name = getattr(node, "__name__", "")
    if callable(node) and _activations().get(name) is node:
        return {"activation": name}
    raise _unwritable(node)


def _encode_array(node: Any, arrays: Arrays) -> Any:
    array = np.asarray(node)
    if array.dtype.hasobject:
        raise _unwritable(node)
    name = f"array{len(arrays)}"
    arrays[name] = array
    return {"array": name, "scalar": isinstance(node, np.generic)}


def _decode(node: Any, arrays: Any) -> Any:
    match node:
        case {"value": None | bool() | int() | float() | str() as value}:
            return value
        case {"array": name, "scalar": scalar}:
            return arrays[name][()] if scalar else arrays[name]
        case {"dict": pairs}:
            return {_decode(key, arrays): _decode(value, arrays) for key, value in pairs}
        case {"tuple": items} | {"list": items}:
            values = [_decode(item, arrays) for item in items]
            return values if "list" in node else tuple(values)
        case {"class": [module, name], "fields": fields}:
            return _build(module, name, {k: _decode(v, arrays) for k, v in fields.items()})
        case {"activation": name} if name in _activations():
            return _activations()[name]
    raise ValueError(f"the file contains an entry that was not saved by steinax: {str(node)[:80]}")


def _build(module: str, name: str, fields: dict[str, Any]) -> Any:
    cls = _class(module, name)
    if cls is None or _fields(cls) != tuple(fields):
        raise ValueError(
            f"the file contains a {module}.{name}: import the package that defines it first, in the "
            "version that wrote the file."
        )
    if issubclass(cls, tuple):
        return cls(*fields.values())
    built = object.__new__(cls)
    for key, value in fields.items():
        object.__setattr__(built, key, value)
    return built


def _class(module: str, name: str) -> type | None:
    """Look up an imported class by its path, or, if a function defined it, among all equinox modules."""
    target: Any = sys.modules.get(module)
    for attribute in name.split("."):
        target = getattr(target, attribute, None)
    if isinstance(target, type):
        return target
    parents = [eqx.Module]
    while parents:
        for cls in parents.pop().__subclasses__():
            if (cls.__module__, cls.__qualname__) == (module, name):
                return cls
            parents.append(cls)
    return None


def _fields(cls: type) -> tuple[str, ...] | None:
    if dataclasses.is_dataclass(cls):
        return tuple(field.name for field in dataclasses.fields(cls))
    return getattr(cls, "_fields", None) if issubclass(cls, tuple) else None


@cache
def _activations() -> dict[str, Callable]:
    import jax

    names = ("relu", "silu", "gelu", "tanh", "softplus", "sigmoid", "elu", "leaky_relu", "selu")
    functions = {name: getattr(jax.nn, name) for name in names}
    return functions | {"sin": jax.numpy.sin, "cos": jax.numpy.cos, "square": jax.numpy.square}


def _unwritable(node: object) -> TypeError:
    return TypeError(
        f"a {type(node).__name__} cannot be written to a file: results are numbers, texts and arrays "
        "in tuples, lists, dicts, named tuples or dataclasses, and a network's activation is one of "
        f"{', '.join(sorted(_activations()))}."
    )
