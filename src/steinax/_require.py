"""Errors and warnings that say what to do: missing packages, wrong calls, unknown names and attributes."""

import importlib
import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any

HERE = str(Path(__file__).parent)


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


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the user that led here, outside steinax."""
    warnings.warn(message, category, skip_file_prefixes=(HERE,))


class UnknownNameError(KeyError, ValueError):
    """Error for a name that does not exist; unlike that of a KeyError, its message has no quotes.

    >>> print(UnknownNameError("no variable is called 'tau': use 'mu'."))
    no variable is called 'tau': use 'mu'.
    """

    def __str__(self) -> str:
        return str(self.args[0])


def meant(name: str, known: Iterable[str]) -> str:
    """Ask whether the most similar of the known names is meant, in a sentence; empty if none is similar.

    >>> meant("Slop", ["slope", "tau"]), meant("mu", ["slope", "tau"])
    ("Did you mean 'slope'? ", '')
    """
    from difflib import get_close_matches

    lower = {one.lower(): one for one in known}
    close = get_close_matches(name.lower(), lower, 1)
    return f"Did you mean {lower[close[0]]!r}? " if close else ""


def no_attribute(kind: str, name: str, hints: Mapping[str, str]) -> str:
    """Return the message for a missing attribute, with a hint to what may be meant.

    >>> no_attribute("Estimate", "mean", {"mean": "the estimates are .value"})
    "'Estimate' object has no attribute 'mean': the estimates are .value."
    """
    hint = f": {hints[name]}." if name in hints else ""
    return f"{kind!r} object has no attribute {name!r}{hint}"


def usage[F: Callable[..., Any]](hint: str) -> Callable[[F], F]:
    """Decorate a function: a call whose arguments do not fit it raises an error with a hint.

    >>> @usage("Give one number, half(4).")
    ... def half(x):
    ...     return x / 2
    >>> half(1, 2)
    Traceback (most recent call last):
    TypeError: half: too many positional arguments. Give one number, half(4).
    """

    def decorated(function: Any) -> Any:
        @wraps(function)
        def call(*args: Any, **named: Any) -> Any:
            try:
                return function(*args, **named)
            except TypeError:
                _check_call(function, hint, args, named)
                raise

        return call

    return decorated


def _check_call(function: Any, hint: str, args: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Raise a TypeError with a hint if a function cannot be called with some arguments."""
    try:
        inspect.signature(function).bind(*args, **named)
    except TypeError as error:
        raise TypeError(f"{function.__name__}: {error}. {hint}") from None


__all__ = ["UnknownNameError", "meant", "no_attribute", "require", "usage", "warn"]
