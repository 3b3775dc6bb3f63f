"""Import optional packages when they are needed, with an error that says how to install them."""

import importlib
from typing import Any


def require(package: str, extra: str) -> Any:
    """Import an optional package, or say what to install.

    Args:
        package: the name to import, such as `matplotlib` or `matplotlib.pyplot`.
        extra: the extra of steinax that brings it.

    >>> require("json", extra="plots").loads("[1]")
    [1]
    """
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        missing = error.name or package
        if missing.partition(".")[0] != package.partition(".")[0]:
            raise  # the package is installed, but one of its own dependencies is not
        raise ImportError(
            f"this needs {missing}, which is not installed: run pip install 'steinax[{extra}]'.",
            name=missing,
        ) from None


__all__ = ["require"]
