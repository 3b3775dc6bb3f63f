"""What a check is, how laws are bound to the thing they test, and what no check may change."""

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from .._numerics import precision

type Law = Callable[[Any], None]  # raises if the given case breaks it


class CheckFailed(AssertionError):
    """Raised where a check fails; the message names the check and says how to fix it.

    >>> raise CheckFailed("Mine: starts as zero: g is 0.3: let init return zeros.")
    Traceback (most recent call last):
        ...
    steinax.checks._check.CheckFailed: Mine: starts as zero: g is 0.3: let init return zeros.
    """


@dataclass(frozen=True)
class Check:
    """A law bound to one case: calling it raises `CheckFailed` if the case breaks the law."""

    owner: str
    name: str
    law: Law
    case: Any
    advice: str

    def __call__(self) -> None:
        """Run the check in double precision."""
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
    """Decorate a function as a law, with advice for where it is broken and the cases it applies to."""

    def mark(function: Law) -> Law:
        function.advice = advice  # type: ignore[attr-defined]
        function.when = when  # type: ignore[attr-defined]
        return function

    return mark


def bind(laws: Iterable[Law], thing: object, case: object) -> Iterator[tuple[str, Check]]:
    """Yield the name and the check of each law that applies to a case."""
    for statement in laws:
        when = getattr(statement, "when", None)
        if when is None or when(case):
            name = statement.__name__.replace("_", " ")
            advice = getattr(statement, "advice", "")
            yield name, Check(owner(thing), name, statement, case, advice)


def run(checks: Iterable[tuple[str, Check]]) -> None:
    """Run checks in order, stopping at the first that fails."""
    for _, check in checks:
        check()


def owner(thing: object) -> str:
    """Return the name of an object or of its type, for messages."""
    name = getattr(thing, "__name__", None)
    return str(name) if name is not None else type(thing).__name__


def expect(holds: object, message: str) -> None:
    """Raise an AssertionError with the message unless `holds` is true."""
    if not holds:
        raise AssertionError(message)


def _named(error: Exception) -> str:
    return f"it raised {type(error).__name__}: {str(error)[:500]}"


@contextmanager
def nothing_changes() -> Iterator[None]:
    """Raise if the body changes a setting of jax or NumPy, or a global random number generator."""
    before = _settings()
    yield
    after = _settings()
    changed = sorted(name for name in before if before[name] != after.get(name))
    expect(not changed, f"it changed the global {', '.join(changed)}")


def _settings() -> dict[str, Any]:
    random = np.random.get_state(legacy=True)
    return {
        **dict(jax.config.values),
        "jax_enable_x64": jax.config.jax_enable_x64,  # for this thread
        "numpy.geterr": np.geterr(),
        "numpy.printoptions": str(np.get_printoptions()),
        "numpy.random": (random[1].tobytes(), *random[2:]),  # type: ignore[index,union-attr]
        "warnings.filters": list(warnings.filters),
    }


def unmodified(call: Callable[..., Any], *arrays: np.ndarray) -> Any:
    """Return the result of a call on writable copies of the arrays, and raise if it changed them."""
    copies = [np.array(array) for array in arrays]
    result = call(*copies)
    same = all(np.array_equal(a, b) for a, b in zip(copies, arrays, strict=True))
    expect(same, "it wrote into the arrays it was given")
    return result


def layouts(*arrays: np.ndarray) -> Iterator[tuple[str, list[np.ndarray]]]:
    """Yield copies of the arrays that are read-only, in Fortran order, and strided."""
    frozen = [np.array(array) for array in arrays]
    for array in frozen:
        array.setflags(write=False)
    yield "read-only", frozen
    yield "Fortran-ordered", [np.asfortranarray(array) for array in arrays]
    yield "strided", [np.repeat(array, 2, axis=0)[::2] for array in arrays]


def array_leaves(tree: Any) -> list[np.ndarray]:
    """Return the leaves of a tree as NumPy arrays."""
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


def same_bits(first: Any, second: Any) -> bool:
    """Return whether two trees hold the same arrays, bit for bit."""
    pairs = list(zip(array_leaves(first), array_leaves(second), strict=True))
    return all(
        a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes() for a, b in pairs
    )


@contextmanager
def stirred() -> Iterator[None]:
    """Put NumPy's global generator into another state within a scope, and restore it afterwards."""
    state = np.random.get_state()
    np.random.seed(12345)
    try:
        yield
    finally:
        np.random.set_state(state)
