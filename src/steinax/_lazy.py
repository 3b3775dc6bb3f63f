"""Names of a package that are imported when they are asked for: each class of equinox takes milliseconds."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def lazily(package: str, homes: Mapping[str, tuple[str, ...]]) -> Callable[[str], object]:
    """The `__getattr__` of a package.

    Args:
        package: its name.
        homes: the names of each of its modules.

    >>> getattr(lazily("steinax.operators", {"_langevin": ("Langevin",)})("Langevin"), "__name__")
    'Langevin'
    """
    home = {name: module for module, names in homes.items() for name in names}

    def find(name: str) -> object:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(f".{home[name]}", package), name)
        setattr(sys.modules[package], name, found)  # found at once from now on
        return found

    return find
