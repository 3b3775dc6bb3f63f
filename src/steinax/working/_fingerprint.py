"""Fingerprints of data and functions: whether a kept result is of the same work."""

import dataclasses
import dis
import inspect
import platform
import sys
import sysconfig
import types
from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

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
    in_c = not isinstance(inspect.getattr_static(kind, "__call__", None), types.FunctionType)
    return getattr(value, "__wrapped__", None) if callable(value) and in_c else None


PACKAGE = __name__.partition(".")[0]
INSTALLED = {"site-packages", "dist-packages"}  # folders
STANDARD = tuple(sysconfig.get_path(one) for one in ("stdlib", "platstdlib"))
UFUNCS = ("numpy", "scipy.special")  # whose functions do not all say where they are from
GLOBAL = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"}
CLOSED_OVER = {"LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"}
ATTRIBUTE = {"LOAD_ATTR", "LOAD_METHOD"}


class Reference(NamedTuple):
    """A name that a function uses, the attributes that it asks of it at once, and the value."""

    name: str
    attributes: tuple[str, ...]
    value: object


def references(f: types.FunctionType) -> list[Reference]:
    """The globals that a function uses, what it closes over and what it imports, sorted by name.

    >>> import math
    >>> [one[:2] for one in references(lambda x: math.sin(x))]
    [('math', ('sin',))]
    """
    cells, uses = closed_over(f), set(_uses(f.__code__))
    unused = cells.keys() - {name for kind, name, _ in uses if kind == "cell"}
    found: dict[tuple[str, tuple[str, ...]], Any] = {(name, ()): cells[name] for name in unused}
    for kind, name, attributes in uses:
        if kind == "import":
            known = version_of(name) is not None
            found[f"import {name}", ()] = (
                sys.modules.get(name, name) if known else types.ModuleType(name)
            )
        elif kind == "global":
            found[name, attributes] = _global(f, name)
        elif name in cells:  # others are variables of the function itself
            found[name, attributes] = cells[name]
    return [Reference(*key, found[key]) for key in sorted(found)]


def closed_over(f: types.FunctionType) -> dict[str, Any]:
    """What a function closes over, by name."""
    cells = zip(f.__code__.co_freevars, f.__closure__ or (), strict=True)
    return {name: _content(cell) for name, cell in cells}


def _content(cell: types.CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return NotImplemented


def _global(f: types.FunctionType, name: str) -> object:
    if name in f.__globals__:
        return f.__globals__[name]
    return f.__builtins__.get(name, NotImplemented)  # type: ignore[attr-defined]


def _uses(code: types.CodeType) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """The names that code, and the code inside it, loads or imports."""
    steps = list(dis.get_instructions(code))
    for place, step in enumerate(steps):
        if step.opname == "IMPORT_NAME":
            level = steps[place - 2].argval
            yield "import", step.argval if level == 0 else f"{'.' * level}{step.argval}", ()
        elif step.opname in GLOBAL | CLOSED_OVER:
            end = place + 1
            while steps[end].opname in ATTRIBUTE:
                end += 1
            attributes = tuple(one.argval for one in steps[place + 1 : end])
            yield "global" if step.opname in GLOBAL else "cell", step.argval, attributes
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _uses(inner)


def in_package(value: Any) -> tuple[str, ...] | None:
    """The module, the name and the version of what an installed package defines; else None.

    >>> import math
    >>> in_package(math.sin)[:2]
    ('math', 'sin')
    """
    if isinstance(value, types.ModuleType):
        known = version_of(value.__name__)
        return None if known is None else (value.__name__, "", known)
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    home = getattr(value, "__module__", None)
    for module in UFUNCS if home is None and isinstance(value, np.ufunc) else (home,):
        if not isinstance(name, str) or not isinstance(module, str):
            return None
        found: Any = sys.modules.get(module)
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is value and (known := version_of(module)) is not None:
            return module, name, known
    return None


@cache
def version_of(module: str) -> str | None:
    """The version of the installed package, or of the Python, that a module belongs to; else None."""
    package = module.partition(".")[0]
    if package == PACKAGE:
        return version(PACKAGE)
    origin = None if package == "__main__" else _origin(module, package)
    if origin is None:
        return None
    if INSTALLED & set(Path(origin).parts):
        return _package_version(package)
    standard = origin in ("built-in", "frozen") or origin.startswith(STANDARD)
    return platform.python_version() if standard else None


def _origin(module: str, package: str) -> str | None:
    """Where a module's code is; nothing is imported to find out."""
    there = sys.modules.get(module)
    if (file := getattr(there, "__file__", None)) is not None:
        return file
    try:
        spec = find_spec(package) if there is None else there.__spec__
    except (ImportError, ValueError):
        return None
    return None if spec is None else spec.origin


def _package_version(package: str) -> str | None:
    told = getattr(sys.modules.get(package), "__version__", None)
    if isinstance(told, str):
        return told
    for name in (package, *packages_distributions().get(package, ())):
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return None


SIZE = 16  # bytes of a digest
BLOCK = 2**26  # bytes of an array that are read at once: 64 MB
ATOMS = {
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    range,
    types.EllipsisType,
    types.NotImplementedType,
}
METHODS = {types.MethodType, types.BuiltinMethodType, types.MethodWrapperType}
SLOTS = {
    types.ClassMethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
}
UNTOLD = {  # what a class says of itself, and does not compute with
    "__abstractmethods__",
    "__annotations__",
    "__dataclass_params__",
    "__dict__",
    "__doc__",
    "__firstlineno__",
    "__module__",
    "__orig_bases__",
    "__parameters__",
    "__slotnames__",
    "__static_attributes__",
    "__weakref__",
    "_abc_impl",
}


def fingerprint(*things: object) -> str:
    """A digest that changes with whatever could change a result that is computed from these.

    Numbers, texts, arrays and containers count by their content. Functions count by their code, their
    defaults, what they close over and the globals that they use, and so on through all of these; other
    objects by their class and their fields. Modules and what they define count by name and version if
    they are installed packages. Nothing is called or imported for it, and pickle has no part in it.

    Raises:
        TypeError: for what cannot be told from others, such as an open file or a lock.

    >>> def scaled(by):
    ...     return lambda x: by * x
    >>> fingerprint(scaled(1.0)) == fingerprint(scaled(1.0))
    True
    >>> fingerprint(scaled(1.0)) == fingerprint(scaled(2.0))
    False
    """
    walk = _Walk()
    try:
        walk.add(things)
    except RecursionError:
        raise _refusal("something nested too deeply", []) from None
    return walk.digest()


class _Walk:
    """Goes through values in a fixed order, and adds each to a digest, with its kind and its size."""

    def __init__(self) -> None:
        self._digest = blake2b(digest_size=SIZE)
        self._seen: dict[int, int] = {}
        self._held: list[object] = []  # so that no address is used twice
        self._path: list[str] = []  # names on the way to what is added

    def digest(self) -> str:
        return self._digest.hexdigest()

    def _mark(self, *parts: str | bytes) -> None:
        for part in parts:
            held = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
            self._digest.update(b"%d:" % len(held))
            self._digest.update(held)

    def _again(self, value: object) -> bool:
        """Whether a value was met before; then its place is added, and what refers to itself ends."""
        place = self._seen.setdefault(id(value), len(self._seen))
        if place < len(self._held):
            self._mark("again", str(place))
            return True
        self._held.append(value)
        return False

    def add(self, value: Any) -> None:
        kind = type(value)
        if kind in ATOMS:
            self._atom(value)
        elif isinstance(value, np.generic) or kind in (np.ndarray, np.memmap):
            self._array(np.asarray(value), "array")
        elif isinstance(value, jax.Array):
            self._jax_array(value)
        elif (
            kind is tuple or kind is types.CodeType
        ):  # what cannot change: the same wherever it is stored
            self._tuple(value) if kind is tuple else self._code(value)
        elif kind in (set, frozenset):
            self._mark(kind.__name__, *sorted(map(fingerprint, value)))
        elif (named := in_package(value)) is not None:
            self._mark("named", *named)
        elif isinstance(value, types.ModuleType):
            what = (
                f"the module {value.__name__}, imported inside a function or passed on as a whole,"
            )
            raise _refusal(what, self._path)
        elif not self._again(value):
            self._composite(value)

    def _composite(self, value: Any) -> None:
        """What may hold itself, and is therefore added once."""
        kind = type(value)
        if kind is list:
            self._mark("list", str(len(value)))
            self._each(value)
        elif kind is dict or kind is types.MappingProxyType:
            self._mark("dict", str(len(value)))
            self._each(chain.from_iterable(value.items()))
        elif kind is types.FunctionType:
            self._function(value)
        elif kind in METHODS:
            self._mark("method", value.__name__)
            self._each((getattr(value, "__func__", None), value.__self__))
        elif isinstance(value, type):
            self._class(value)
        elif kind in SLOTS:
            self._mark(kind.__name__, value.__name__)
        elif kind in (property, staticmethod, classmethod):
            parts = ("fget", "fset", "fdel", "__func__")
            self._mark(kind.__name__)
            self._each(getattr(value, part, None) for part in parts)
        elif is_stored(value):
            self._stored(value)
        else:
            self._object(value)

    def _each(self, values: Iterable[object]) -> None:
        for value in values:
            self.add(value)

    def _named(self, name: str, value: object) -> None:
        """A value with the name under which it was found."""
        self._mark(name)
        self._path.append(name)
        self.add(value)
        self._path.pop()

    def _atom(self, value: Any) -> None:
        if isinstance(value, (str, bytes)):
            self._mark(type(value).__name__, value)
        else:
            self._mark(type(value).__name__, hex(value) if type(value) is int else repr(value))

    def _tuple(self, value: tuple) -> None:
        self._mark("tuple", str(len(value)))
        self._each(value)

    def _array(self, array: np.ndarray, kind: str) -> None:
        self._mark(kind, repr(array.dtype), str(array.shape))
        if array.dtype.hasobject:
            self._each(array.ravel().tolist())
            return
        flat = array.reshape(1) if array.ndim == 0 else array
        rows = max(1, BLOCK // max(flat.nbytes // max(len(flat), 1), 1))
        for start in range(0, len(flat), rows):
            self._digest.update(flat[start : start + rows].tobytes())

    def _jax_array(self, array: Any) -> None:
        if jax.numpy.issubdtype(array.dtype, jax.dtypes.prng_key):
            self._array(np.asarray(jax.random.key_data(array)), f"key {array.dtype}")
        else:
            weak = "weak " if getattr(array, "weak_type", False) else ""
            self._array(np.asarray(array), f"{weak}jax array")

    def _stored(self, array: Any) -> None:
        """An array of zarr, dask or h5py: every number of it, some rows at a time."""
        self._mark("stored array", str(array.dtype), str(tuple(array.shape)))
        count = array.shape[0] if array.shape else 0
        size = max(1, array.dtype.itemsize * int(np.prod(array.shape[1:], dtype=np.int64)))
        rows = max(1, BLOCK // size)
        parts = (array[i : i + rows] for i in range(0, count, rows)) if count else [array[()]]
        self._each(np.asarray(part) for part in parts)

    def _code(self, code: types.CodeType) -> None:
        """What is executed, and not where it was written."""
        counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        self._mark("code", code.co_code, code.co_exceptiontable)
        self._each((counts, names, code.co_consts))

    def _function(self, f: types.FunctionType) -> None:
        self._mark("function")
        self._path.append(f.__qualname__)
        self._each((f.__code__, f.__defaults__, f.__kwdefaults__, vars(f)))
        home = f.__globals__.get("__name__", "__main__")
        version = version_of(home)
        if version is None:
            used = references(f)
        else:  # what its package defines is known by the version
            self._mark("of", home, version)
            used = [Reference(name, (), value) for name, value in closed_over(f).items()]
        for one in used:
            self._reference(one)
        self._path.pop()

    def _reference(self, one: Reference) -> None:
        """A value that a function uses; of a module that is not installed only the part that it uses."""
        value, attributes = one.value, list(one.attributes)
        while (
            isinstance(value, types.ModuleType)
            and version_of(value.__name__) is None
            and attributes
        ):
            self._mark(value.__name__, attributes[0])
            value = getattr(value, attributes.pop(0), None)
        self._named(".".join((one.name, *one.attributes)), value)

    def _class(self, cls: type) -> None:
        self._mark("class", cls.__qualname__)
        self._each((type(cls), cls.__bases__))
        for name in sorted(vars(cls).keys() - UNTOLD):
            self._named(name, vars(cls)[name])

    def _object(self, value: Any) -> None:
        """An object by its class and its fields, or by what its class says that it is made from."""
        if (made_from := plainer(value)) is not None:
            self._mark("made from", type(value).__name__)
            self.add(made_from)
            return
        try:
            made = value.__reduce_ex__(2)
        except Exception:
            made = ""
        if isinstance(made, str):
            raise _refusal(f"a {type(value).__module__}.{type(value).__qualname__}", self._path)
        make, args, state, items, pairs = (*made, None, None, None)[:5]
        if isinstance(
            state, dict
        ):  # not what was computed from other fields, and may be there or not
            derived = {
                n for n in state if isinstance(getattr(type(value), n, None), cached_property)
            }
            state = {name: one for name, one in state.items() if name not in derived}
        self._mark("object")
        self._path.append(type(value).__qualname__)
        self._each((make, args, state, list(items or ()), list(pairs or ())))
        self._path.pop()


def _refusal(what: str, path: list[str]) -> TypeError:
    where = f" (found by way of {' > '.join(path)})" if path else ""
    return TypeError(
        f"`keep` has to tell this run from others, and {what}{where} cannot be compared between runs. "
        "Let the function use numbers and arrays instead, as arguments with defaults or as global "
        "variables, or leave `keep` out."
    )
