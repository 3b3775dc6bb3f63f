"""Names of a package that are imported when they are asked for: each class of equinox takes milliseconds."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def lazily(
    package: str, homes: Mapping[str, tuple[str, ...]]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The `__getattr__` and the `__dir__` of a package.

    Args:
        package: its name.
        homes: the names of each of its modules.

    >>> find, names = lazily("steinax.operators", {"_langevin": ("Langevin",)})
    >>> getattr(find("Langevin"), "__name__"), "Langevin" in names()
    ('Langevin', True)
    """
    home = {name: module for module, names in homes.items() for name in names}

    def find(name: str) -> object:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(f".{home[name]}", package), name)
        setattr(sys.modules[package], name, found)  # found at once from now on
        return found

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home})

    return find, names
