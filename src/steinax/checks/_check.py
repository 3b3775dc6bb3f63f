from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._precision import precision

type Law = Callable[[Any], None]  # raises if what it is given does not keep it


class CheckFailed(AssertionError):
    """Something does not keep the contract; the message names the check and says what to do.

    >>> raise CheckFailed("Mine: starts as zero: g is 0.3: let init return zeros.")
    Traceback (most recent call last):
        ...
    steinax.checks._check.CheckFailed: Mine: starts as zero: g is 0.3: let init return zeros.
    """


@dataclass(frozen=True)
class Check:
    """One law and the thing that must keep it: call it, and it raises `CheckFailed` or nothing."""

    owner: str
    name: str
    law: Law
    case: Any
    advice: str

    def __call__(self) -> None:
        """Run the check, in double precision."""
        try:
            with precision(np.float64):
                self.law(self.case)
        except Exception as error:
            what = str(error) if isinstance(error, AssertionError) else _named(error)
            message = (
                f"{self.owner} fails the check {self.name!r}: {what}\nWhat to do: {self.advice}"
            )
            raise CheckFailed(message) from error


def law(advice: str, when: Callable[[Any], bool] | None = None) -> Callable[[Law], Law]:
    """Mark a function as a law: what to do where it is broken, and which cases it speaks of."""

    def mark(function: Law) -> Law:
        function.advice = advice  # type: ignore[attr-defined]
        function.when = when  # type: ignore[attr-defined]
        return function

    return mark


def bind(laws: Iterable[Law], thing: object, case: object) -> Iterator[tuple[str, Check]]:
    """The laws that speak of a case, each with its name."""
    for one in laws:
        when = getattr(one, "when", None)
        if when is None or when(case):
            name = one.__name__.replace("_", " ")
            yield name, Check(owner(thing), name, one, case, getattr(one, "advice", ""))


def run(checks: Iterable[tuple[str, Check]]) -> None:
    """Run checks in order, up to the first that fails."""
    for _, check in checks:
        check()


def owner(thing: object) -> str:
    """What to call a thing in a message."""
    name = getattr(thing, "__name__", None)
    return str(name) if name is not None else type(thing).__name__


def expect(holds: object, message: str) -> None:
    """Raise with the message unless something holds."""
    if not holds:
        raise AssertionError(message)


def _named(error: Exception) -> str:
    return f"it raised {type(error).__name__}: {str(error)[:500]}"
