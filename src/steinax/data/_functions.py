"""Integrands that are functions of a draw: their values, evaluated draw by draw or compiled."""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import jax
import numpy as np

from .._numerics import precision, released, widest
from .._types import Points
from ._sample import reals
from ._variables import ByName

jax.tree_util.register_pytree_node(
    ByName,
    lambda variables: (tuple(variables.held.values()), tuple(variables.held)),
    lambda names, values: ByName(dict(zip(names, values, strict=True))),
)


try:
    from jax._src.config import check_static_indices
except ImportError:  # experimental, without a public name: github.com/jax-ml/jax/pull/33698
    check_static_indices = nullcontext

BATCH = 2**28  # bytes of values that a function returns at once: 256 MB, or those of one draw
# Errors that jax raises if a function needs the concrete value of its argument, as NumPy and `if` do.
_NEEDS_VALUES = (
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.ConcretizationTypeError,
    jax.errors.NonConcreteBooleanIndexError,
)
LABELLED = "Tracer has no attribute"  # in jax's error for .sel(...) of an array
OUTSIDE = re.compile(r"index (-?\d+)(?: is)? out of bounds for axis \d+ with size (\d+)")
HINTS = {  # by a part of an error's text
    LABELLED: "Its arguments are arrays, without labels or methods of xarray: take elements "
    'by position, as in theta[2], or ask for "theta[Choate]" by name.',
}
SYMBOLIC = "to a tensor variable"  # in the error of PyTensor's functions, given an array of jax
LEAST = 128  # draws of a compiled call; fewer are padded


@dataclass(frozen=True)
class DrawFunction:
    """An integrand with its arguments: draws (n, dim), or variables (n, ...) by name.

    The variables of a dict are passed as keyword arguments, and a `ByName` as the only argument.
    """

    label: str
    f: Callable
    draws: Points | dict[str, np.ndarray] | ByName
    dtype: np.dtype

    def asks(self) -> bool:
        """Whether the function accesses variables by name in its argument; reads those that it accesses."""
        if not isinstance(self.draws, ByName):
            return False
        variables = self.draws

        def traced(i: Any) -> int:
            self.f(variables.mapped(lambda values: jax.numpy.asarray(values[:1])[i]))
            return 0

        try:
            with self.scope():
                try:
                    jax.eval_shape(traced, 0)
                except _NEEDS_VALUES:
                    self.f(self._row(0))
        except Exception:
            if variables.asked:
                raise
        return variables.asked

    def shape(self) -> tuple[int, ...]:
        """Infer the shape of the function's value for one draw, by jax without computing it if possible."""
        first = self._rows(slice(0, 1))
        row = jax.tree.map(lambda values: values[0], first)
        with self.scope():
            try:
                abstract = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype), row)
                with check_static_indices(True):  # else x[5] of 3 numbers would silently be x[2]
                    return widest(lambda: jax.eval_shape(self.one, abstract).shape, self.dtype)
            except _NEEDS_VALUES:
                return np.shape(self.one(row))

    def read(self, columns: slice, width: int) -> np.ndarray:
        """Evaluate some columns on every draw, (n, k); all columns are computed, batch by batch."""
        size = self.batch(width)
        batches = []
        for start in range(0, self.count, size):
            values = self._values(slice(start, start + size))
            batches.append(values.reshape(len(values), width)[:, columns])
        return batches[0] if len(batches) == 1 else np.concatenate(batches)

    def above(self, threshold: float) -> "DrawFunction":
        """Whether the function exceeds a threshold."""
        return replace(self, f=lambda *args, **named: self.f(*args, **named) > threshold)

    @property
    def arguments(self) -> np.ndarray:
        """All numbers that the function depends on, (n, some)."""
        leaves = jax.tree.leaves(self.draws)
        return np.concatenate([np.reshape(leaf, (self.count, -1)) for leaf in leaves], axis=1)

    def put(self, numbers: Any) -> Any:
        """Arrange numbers, (..., some), as arguments."""
        leaves, tree = jax.tree.flatten(self.draws)
        ends = np.cumsum([math.prod(leaf.shape[1:]) for leaf in leaves])
        parts = zip(leaves, [0, *ends[:-1]], ends, strict=True)
        arrays = [
            numbers[..., start:stop].reshape(*numbers.shape[:-1], *leaf.shape[1:])
            for leaf, start, stop in parts
        ]
        return jax.tree.unflatten(tree, arrays)

    @property
    def count(self) -> int:
        """The number of draws."""
        return len(jax.tree.leaves(self.draws)[0])

    def batch(self, width: int) -> int:
        """Choose the number of draws that are evaluated at once."""
        return min(max(BATCH // (8 * max(width, 1)), 1), self.count)

    def _rows(self, rows: slice) -> Points | dict[str, np.ndarray] | ByName:
        """Select the arguments of some draws."""
        return jax.tree.map(lambda values: values[rows], self.draws)

    def _row(self, i: int) -> Any:
        """Select the argument of one draw; further variables are read when the function accesses them."""
        if isinstance(self.draws, ByName):
            return self.draws.mapped(lambda values: values[i])
        return jax.tree.map(lambda values: values[i], self.draws)

    def one(self, row: Any) -> Any:
        """Evaluate the function on one draw, (dim,), or on one draw's variables by name."""
        with released(row):
            value = self.f(**row) if isinstance(row, dict) else self.f(row)
        refuse_graph(self.label, value)
        if value is None or isinstance(value, (str, Mapping, tuple, list)):
            raise TypeError(
                f"the integrand {self.label!r} gives a {type(value).__name__} for a draw: let it return a "
                "number or an array of numbers."
            )
        return value

    def _values(self, rows: slice) -> np.ndarray:
        """Evaluate the function on some draws: mapped by jax, or one by one if it needs concrete values."""
        draws = self._rows(rows)
        with self.scope():
            try:
                return widest(lambda: reals(self.label, self._mapped(draws)), self.dtype)
            except _NEEDS_VALUES:
                indices = range(self.count)[rows]
                outputs = [np.asarray(self.one(self._row(i))) for i in indices]
                return reals(
                    self.label,
                    [output * 1.0 if output.dtype == bool else output for output in outputs],
                )

    def _mapped(self, draws: Points | dict[str, np.ndarray] | ByName) -> Any:
        """Evaluate the function on many draws by jax."""
        over = getattr(self.f, "over", None)  # of compiled integrands of streams
        if over is not None:
            return over(draws)
        return jax.vmap(self.one)(jax.tree.map(jax.numpy.asarray, draws))

    def has_loops(self) -> bool:
        """Whether jax would compile the function's loops, such as those of an ODE solver, at every call."""
        try:
            with self.scope():
                program = str(jax.make_jaxpr(self.one)(self._row(0)))
        except _NEEDS_VALUES:
            return False
        return "scan[" in program or "while[" in program

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Set the precision of the sample, and add the name of the integrand to errors."""
        # overflows and NaN are refused later
        with precision(self.dtype), np.errstate(all="ignore"):
            try:
                yield
            except Exception as error:
                error.add_note(
                    f"This came from the integrand {self.label!r}, a function of one draw at a time: of "
                    f"{self._described()}."
                )
                if SYMBOLIC in str(error):
                    raise _symbolic(self.label) from error
                if outside := OUTSIDE.search(str(error)):
                    raise IndexError(
                        f"the integrand {self.label!r}, a function of {self._described()}, takes index "
                        f"{outside[1]}, out of bounds for an axis of length {outside[2]}: positions count "
                        f"from 0, so use 0 to {int(outside[2]) - 1}."
                    ) from error
                for part, hint in HINTS.items():
                    if part in str(error):
                        error.add_note(hint)
                raise

    def _described(self) -> str:
        """Describe the function's arguments for one draw, with their shapes."""
        if isinstance(self.draws, ByName):
            return "the variables by name"
        given = self.draws if isinstance(self.draws, dict) else {"x": self.draws}
        return ", ".join(f"{name} of shape {values.shape[1:]}" for name, values in given.items())


def refuse_graph(label: str, value: object) -> None:
    """Refuse what PyTensor's functions return: variables that stand for numbers and have none."""
    if type(value).__module__.startswith("pytensor"):
        raise _symbolic(label)


def _symbolic(label: str) -> TypeError:
    return TypeError(
        f"the function for {label!r} uses PyTensor, whose functions, such as pm.math.exp and pm.Normal.dist, "
        "build graphs, not numbers: use jax.numpy for pm.math, and scipy.stats for pm.Normal.dist."
    )


def filled(values: np.ndarray, rows: int) -> np.ndarray:
    """Pad an array to a number of rows by repeating its last row.

    >>> filled(np.array([[1.0], [2.0]]), 4).tolist()
    [[1.0], [2.0], [2.0], [2.0]]
    """
    short = rows - len(values)
    return np.concatenate([values, values[-1:].repeat(short, 0)]) if short > 0 else values


def rounded(n: int) -> int:
    """Round up to a power of two, at least 128, so that few sizes are compiled.

    >>> rounded(3), rounded(128), rounded(129)
    (128, 128, 256)
    """
    return max(LEAST, 1 << (n - 1).bit_length())


class Compiled:
    """An integrand of one draw with its compiled version for many draws; it can be pickled.

    Args:
        f: a function of a draw, or of variables.

    >>> with jax.enable_x64():
    ...     Compiled(lambda x: x[0] + 1).over(np.zeros((3, 2)))
    array([1., 1., 1.])
    """

    def __init__(self, f: Callable):
        self.__wrapped__ = f  # where inspect looks for the names of arguments

    def __reduce__(self) -> tuple[type, tuple[Callable]]:
        return Compiled, (self.__wrapped__,)

    def __call__(self, *draw: Any, **variables: Any) -> Any:
        return self.__wrapped__(*draw, **variables)

    def over(self, draws: np.ndarray | dict[str, np.ndarray] | ByName) -> np.ndarray:
        """Evaluate the integrand on draws (n, dim), or on variables (n, ...) by name."""
        n = len(jax.tree.leaves(draws)[0])
        padded = jax.tree.map(lambda values: filled(values, rounded(n)), draws)
        return np.asarray(self._mapped(padded))[:n]

    @cached_property
    def _mapped(self) -> Callable:
        """The compiled function of many draws."""
        f = self.__wrapped__
        return jax.jit(jax.vmap(lambda row: f(**row) if isinstance(row, dict) else f(row)))


class Above(NamedTuple):
    """The integrand that is 1 where another one exceeds a threshold, and 0 elsewhere."""

    f: Any
    threshold: float
