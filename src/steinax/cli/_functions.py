"""Functions that are named on the command line, as `module:function`."""

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path


def load_functions(named: Sequence[str]) -> dict[str, Callable]:
    """Each function under its own name, or under all that was typed where two have one name.

    Args:
        named: `"module:function"`, or `"path/to/file.py:function"`.
    """
    sys.path.insert(0, str(Path.cwd()))
    try:
        found = {one: _load(one) for one in named}
    finally:
        sys.path.remove(str(Path.cwd()))
    short = [one.rpartition(":")[2] for one in found]
    return {
        name if short.count(name) == 1 else one: found[one]
        for one, name in zip(found, short, strict=True)
    }


def _load(named: str) -> Callable:
    module_name, colon, name = named.rpartition(":")
    if not colon or not module_name or not name:
        raise ValueError(
            f"--fn {named} names no function of a module: give both, such as functions:share for the "
            "function share of functions.py."
        )
    module = _import_file(module_name) if module_name.endswith(".py") else _import(module_name)
    function = getattr(module, name, None)
    if not callable(function):
        own = [key for key, one in vars(module).items() if callable(one) and key[0] != "_"]
        what = "is no function" if function is not None else "is not there"
        raise ValueError(
            f"--fn {named}: {name} {what}; {module_name} has {', '.join(own[:8]) or 'no functions'}. "
            "Name one of its functions."
        )
    return function


def _import(name: str) -> object:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # the module is there, and what it imports is not
        file = f"{name.partition('.')[0]}.py"
        raise ValueError(
            f"there is no module {name!r}: run steinax in the folder of {file}, or name the file, as in "
            f"--fn path/to/{file}:function."
        ) from None


def _import_file(name: str) -> object:
    from importlib.util import module_from_spec, spec_from_file_location

    path = Path(name)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}: check the path after --fn.")
    sys.path.insert(0, str(path.parent.resolve()))  # its neighbours can be imported
    try:
        spec = spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent.resolve()))
    return module


__all__ = ["load_functions"]
