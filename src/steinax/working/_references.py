"""What a function refers to, found in its code, and what of it an installed package defines."""

import dis
import platform
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from importlib.util import find_spec
from pathlib import Path
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

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


def references(f: FunctionType) -> list[Reference]:
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
            found[f"import {name}", ()] = sys.modules.get(name, name) if known else ModuleType(name)
        elif kind == "global":
            found[name, attributes] = _global(f, name)
        elif name in cells:  # others are variables of the function itself
            found[name, attributes] = cells[name]
    return [Reference(*key, found[key]) for key in sorted(found)]


def closed_over(f: FunctionType) -> dict[str, Any]:
    """What a function closes over, by name."""
    cells = zip(f.__code__.co_freevars, f.__closure__ or (), strict=True)
    return {name: _content(cell) for name, cell in cells}


def _content(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return NotImplemented


def _global(f: FunctionType, name: str) -> object:
    if name in f.__globals__:
        return f.__globals__[name]
    return f.__builtins__.get(name, NotImplemented)  # type: ignore[attr-defined]


def _uses(code: CodeType) -> Iterator[tuple[str, str, tuple[str, ...]]]:
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
        if isinstance(inner, CodeType):
            yield from _uses(inner)


def in_package(value: Any) -> tuple[str, ...] | None:
    """The module, the name and the version of what an installed package defines; else None.

    >>> import math
    >>> in_package(math.sin)[:2]
    ('math', 'sin')
    """
    if isinstance(value, ModuleType):
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
