"""Fingerprints of data and functions, which tell whether a stored result belongs to the same run."""

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
    """Tell whether a value is an array that is read by slices and has no labels, such as one of zarr.

    >>> is_stored(np.zeros(3)), is_stored(memoryview(b""))
    (False, False)
    """
    kind = type(value)
    if issubclass(kind, np.ndarray) or kind.__module__.startswith(LABELLED):
        return False
    return all(hasattr(value, name) for name in ("shape", "dtype", "__getitem__"))


def plainer(value: Any) -> object:
    """Replace an object by a simpler one that determines it; None if its fields are to be used instead.

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
    if value is getattr(np.random.get_state, "__self__", None):  # its users set no seed
        return "the random state of NumPy"
    in_c = not isinstance(inspect.getattr_static(kind, "__call__", None), types.FunctionType)
    return getattr(value, "__wrapped__", None) if callable(value) and in_c else None


PACKAGE = __name__.partition(".")[0]
INSTALLED = {"site-packages", "dist-packages"}  # folders of installed packages
STANDARD = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib"))
UFUNCS = ("numpy", "scipy.special")  # modules of ufuncs, which may lack __module__
GLOBAL = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"}
CLOSED_OVER = {"LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"}
ATTRIBUTE = {"LOAD_ATTR", "LOAD_METHOD"}


class UsedName(NamedTuple):
    """A name that a function uses, the chain of attributes read from it, and its value."""

    name: str
    attributes: tuple[str, ...]
    value: object


def references(f: types.FunctionType) -> list[UsedName]:
    """List the globals, closure variables and imports of a function, sorted by name.

    >>> import math
    >>> [used[:2] for used in references(lambda x: math.sin(x))]
    [('math', ('sin',))]
    """
    cells, uses = closed_over(f), set(_uses(f.__code__))
    unused = cells.keys() - {name for kind, name, _ in uses if kind == "cell"}
    values: dict[tuple[str, tuple[str, ...]], Any] = {(name, ()): cells[name] for name in unused}
    for kind, name, attributes in uses:
        if kind == "import":
            known = version_of(name) is not None
            values[f"import {name}", ()] = (
                sys.modules.get(name, name) if known else types.ModuleType(name)
            )
        elif kind == "global":
            values[name, attributes] = _global(f, name)
        elif name in cells:  # otherwise a local variable of the function
            values[name, attributes] = cells[name]
    return [UsedName(*key, values[key]) for key in sorted(values)]


def closed_over(f: types.FunctionType) -> dict[str, Any]:
    """Collect the closure variables of a function, by name."""
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
    """Iterate over the names that code, and the code nested in it, loads or imports."""
    steps = list(dis.get_instructions(code))
    for position, step in enumerate(steps):
        if step.opname == "IMPORT_NAME":
            level = steps[position - 2].argval
            yield "import", step.argval if level == 0 else f"{'.' * level}{step.argval}", ()
        elif step.opname in GLOBAL | CLOSED_OVER:
            end = position + 1
            while steps[end].opname in ATTRIBUTE:
                end += 1
            attributes = tuple(load.argval for load in steps[position + 1 : end])
            yield "global" if step.opname in GLOBAL else "cell", step.argval, attributes
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _uses(inner)


def in_package(value: Any) -> tuple[str, ...] | None:
    """Find the module, name and version of an object of an installed package; None for other objects.

    >>> import math
    >>> in_package(math.sin)[:2]
    ('math', 'sin')
    """
    if isinstance(value, types.ModuleType):
        known = version_of(value.__name__)
        return None if known is None else (value.__name__, "", known)
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    origin = getattr(value, "__module__", None)
    for module in UFUNCS if origin is None and isinstance(value, np.ufunc) else (origin,):
        if not isinstance(name, str) or not isinstance(module, str):
            return None
        target: Any = sys.modules.get(module)
        for attribute in name.split("."):
            target = getattr(target, attribute, None)
        if target is value and (known := version_of(module)) is not None:
            return module, name, known
    return None


@cache
def version_of(module: str) -> str | None:
    """Find the version of the installed package, or of Python, that a module belongs to; else None."""
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
    """Find the file of a module without importing it."""
    imported = sys.modules.get(module)
    if (file := getattr(imported, "__file__", None)) is not None:
        return file
    try:
        spec = find_spec(package) if imported is None else imported.__spec__
    except (ImportError, ValueError):
        return None
    return None if spec is None else spec.origin


def _package_version(package: str) -> str | None:
    declared = getattr(sys.modules.get(package), "__version__", None)
    if isinstance(declared, str):
        return declared
    for name in (package, *packages_distributions().get(package, ())):
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return None


SIZE = 16  # bytes of a digest
BLOCK = 2**26  # bytes of an array read at a time: 64 MB
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
UNTOLD = {  # metadata of a class, which does not affect results
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
    """Compute a digest that changes with anything that could change a result computed from `things`.

    Numbers, texts, arrays and containers count by their content. Functions count by their code, their
    defaults, their closure variables and the globals that they use, recursively; other objects by their
    class and their fields. Installed packages, and objects that they define, count by name and version.
    Nothing is called or imported, and pickle is not used.

    Raises:
        TypeError: for objects without comparable content, such as an open file or a lock.

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
    """Traversal of values in a fixed order that adds each to a digest, with its kind and size."""

    def __init__(self) -> None:
        self._digest = blake2b(digest_size=SIZE)
        self._seen: dict[int, int] = {}
        self._held: list[object] = []  # keeps the values alive, so that no id is reused
        self._path: list[str] = []  # names that lead to the current value

    def digest(self) -> str:
        return self._digest.hexdigest()

    def _mark(self, *texts: str | bytes) -> None:
        for text in texts:
            encoded = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
            self._digest.update(b"%d:" % len(encoded))
            self._digest.update(encoded)

    def _again(self, value: object) -> bool:
        """Tell whether a value was met before, and add its number: this ends circular references."""
        number = self._seen.setdefault(id(value), len(self._seen))
        if number < len(self._held):
            self._mark("again", str(number))
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
        elif kind is tuple or kind is types.CodeType:  # immutable: equal content means equal
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
        """Add a value that may contain itself, and is therefore added only once."""
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
            names = ("fget", "fset", "fdel", "__func__")
            self._mark(kind.__name__)
            self._each(getattr(value, name, None) for name in names)
        elif is_stored(value):
            self._stored(value)
        else:
            self._object(value)

    def _each(self, values: Iterable[object]) -> None:
        for value in values:
            self.add(value)

    def _named(self, name: str, value: object) -> None:
        """Add a value with its name."""
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
        """Add all numbers of an array of zarr, dask or h5py, a block of rows at a time."""
        self._mark("stored array", str(array.dtype), str(tuple(array.shape)))
        count = array.shape[0] if array.shape else 0
        size = max(1, array.dtype.itemsize * int(np.prod(array.shape[1:], dtype=np.int64)))
        rows = max(1, BLOCK // size)
        blocks = (array[i : i + rows] for i in range(0, count, rows)) if count else [array[()]]
        self._each(np.asarray(block) for block in blocks)

    def _code(self, code: types.CodeType) -> None:
        """Add the instructions of a code object, without its file name and line numbers."""
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
        else:  # the version determines what its package defines
            self._mark("of", home, version)
            used = [UsedName(name, (), value) for name, value in closed_over(f).items()]
        for reference in used:
            self._reference(reference)
        self._path.pop()

    def _reference(self, used: UsedName) -> None:
        """Add a value that a function uses; of a module that is not installed, only the attribute used."""
        value, attributes = used.value, list(used.attributes)
        while (
            isinstance(value, types.ModuleType)
            and version_of(value.__name__) is None
            and attributes
        ):
            self._mark(value.__name__, attributes[0])
            value = getattr(value, attributes.pop(0), None)
        self._named(".".join((used.name, *used.attributes)), value)

    def _class(self, cls: type) -> None:
        self._mark("class", cls.__qualname__)
        self._each((type(cls), cls.__bases__))
        for name in sorted(vars(cls).keys() - UNTOLD):
            self._named(name, vars(cls)[name])

    def _object(self, value: Any) -> None:
        """Add an object by its class and fields, or by what `plainer` or pickle's protocol reduce it to."""
        if (plain := plainer(value)) is not None:
            self._mark("made from", type(value).__name__)
            self.add(plain)
            return
        try:
            reduced = value.__reduce_ex__(2)
        except Exception:
            reduced = ""
        if isinstance(reduced, str):
            raise _refusal(f"a {type(value).__module__}.{type(value).__qualname__}", self._path)
        make, args, state, items, pairs = (*reduced, None, None, None)[:5]
        if isinstance(state, dict):  # without cached properties, which may or may not be there yet
            state = {
                name: content
                for name, content in state.items()
                if not isinstance(getattr(type(value), name, None), cached_property)
            }
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
