"""One result to and from bytes, without pickle: nested tuples, dataclasses and dicts of arrays."""

import dataclasses
import io
import json
import sys
from typing import Any

import numpy as np

type Arrays = dict[str, np.ndarray]


def to_bytes(result: object) -> bytes:
    """An npz file of the arrays in `result`, and a JSON text of how they were nested.

    >>> from_bytes(to_bytes({"mean": np.arange(2.0), "parts": (1, "a", None)}))
    {'mean': array([0., 1.]), 'parts': (1, 'a', None)}
    """
    arrays: Arrays = {}
    structure = json.dumps(_encode(result, arrays))
    buffer = io.BytesIO()
    np.savez(buffer, structure=np.array(structure), **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def from_bytes(content: bytes) -> Any:
    """The result that `to_bytes` was given, its jax arrays as NumPy arrays.

    A class is looked up by name among the modules that are already imported; nothing is imported
    or executed on the file's behalf.
    """
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        return _decode(json.loads(str(file["structure"])), file)


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
    raise _not_keepable(node)


def _encode_array(node: Any, arrays: Arrays) -> Any:
    array = np.asarray(node)
    if array.dtype.hasobject:
        raise _not_keepable(node)
    name = f"array{len(arrays)}"
    arrays[name] = array
    return {"array": name, "scalar": isinstance(node, np.generic)}


def _decode(node: Any, arrays: Any) -> Any:
    match node:
        case {"value": value}:
            return value
        case {"array": name, "scalar": scalar}:
            return arrays[name][()] if scalar else arrays[name]
        case {"dict": pairs}:
            return {_decode(key, arrays): _decode(value, arrays) for key, value in pairs}
        case {"tuple": items}:
            return tuple(_decode(item, arrays) for item in items)
        case {"list": items}:
            return [_decode(item, arrays) for item in items]
        case {"class": [module, name], "fields": fields}:
            return _build(module, name, {k: _decode(v, arrays) for k, v in fields.items()})
    raise ValueError(f"a kept result holds what steinax did not write: {str(node)[:80]}")


def _build(module: str, name: str, fields: dict[str, Any]) -> Any:
    cls: Any = sys.modules.get(module)
    for part in name.split("."):
        cls = getattr(cls, part, None)
    if not isinstance(cls, type) or _fields(cls) != tuple(fields):
        raise ValueError(f"a kept result is a {module}.{name}, which is not imported or changed.")
    if issubclass(cls, tuple):
        return cls(*fields.values())
    built = object.__new__(cls)
    for key, value in fields.items():
        object.__setattr__(built, key, value)
    return built


def _fields(cls: type) -> tuple[str, ...] | None:
    if dataclasses.is_dataclass(cls):
        return tuple(field.name for field in dataclasses.fields(cls))
    return getattr(cls, "_fields", None) if issubclass(cls, tuple) else None


def _not_keepable(node: object) -> TypeError:
    return TypeError(
        f"a {type(node).__name__} cannot be kept on disk: results are numbers, texts and arrays in "
        "tuples, lists, dicts, named tuples or dataclasses."
    )


__all__ = ["from_bytes", "to_bytes"]
