"""Functions of a draw, or of the variables that their arguments name, over all draws."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import jax
import numpy as np

from .._precision import precision, widest
from .._types import Points
from ._arrays import as_reals
from ._compiled import Compiled
from ._sample import Sample
from ._variables import read

try:
    from jax._src.config import check_static_indices
except ImportError:  # it has no public name yet, and may move
    check_static_indices = nullcontext

BATCH = 2**28  # bytes of values that a function gives at once: 256 MB, or those of one draw
# What jax raises for a function that asks for the value of its argument, as NumPy and `if` do.
_NEEDS_VALUES = (
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.ConcretizationTypeError,
)
DRAW = "x"  # the argument that stands for the whole draw
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True)
class DrawFunction:
    """A function with what it is called with: draws (n, dim), or variables (n, ...) by name."""

    label: str
    f: Callable
    draws: Points | dict[str, np.ndarray]
    dtype: np.dtype

    def shape(self) -> tuple[int, ...]:
        """The shape of what the function gives for one draw; jax finds it without computing."""
        first = self._rows(slice(0, 1))
        row = jax.tree.map(lambda values: values[0], first)
        with self._scope():
            try:
                like = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype), row)
                with check_static_indices(True):  # x[5] of 3 numbers would be x[2], in silence
                    return jax.eval_shape(self._one, like).shape
            except _NEEDS_VALUES:
                return np.shape(self._one(row))

    def read(self, part: slice, width: int) -> np.ndarray:
        """Some columns of the values on every draw, (n, k); all are computed, batch by batch."""
        size = self.batch(width)
        found = []
        for start in range(0, self.count, size):
            values = self._values(slice(start, start + size))
            found.append(values.reshape(len(values), width)[:, part])
        return found[0] if len(found) == 1 else np.concatenate(found)

    @property
    def count(self) -> int:
        """The number of draws."""
        return len(jax.tree.leaves(self.draws)[0])

    def batch(self, width: int) -> int:
        """How many draws are evaluated at once."""
        return min(max(BATCH // (8 * max(width, 1)), 1), self.count)

    def _rows(self, part: slice) -> Points | dict[str, np.ndarray]:
        return jax.tree.map(lambda values: values[part], self.draws)

    def _one(self, row: Any) -> Any:
        """The value on one draw, (dim,), or on one draw's variables by name."""
        value = self.f(**row) if isinstance(row, dict) else self.f(row)
        if value is None or isinstance(value, (str, Mapping, tuple, list)):
            raise TypeError(
                f"the integrand {self.label!r} gives a {type(value).__name__} for a draw: let it return a "
                "number or an array of numbers."
            )
        return value

    def _values(self, part: slice) -> np.ndarray:
        """Mapped by jax, or one by one where the function is made of NumPy or asks for values."""
        draws = self._rows(part)
        with self._scope():
            try:
                return widest(lambda: reals(self.label, self._mapped(draws)), self.dtype)
            except _NEEDS_VALUES:
                n = len(jax.tree.leaves(draws)[0])
                each = (jax.tree.map(lambda values, i=i: values[i], draws) for i in range(n))
                rows = [np.asarray(self._one(row)) for row in each]
                return reals(self.label, [row * 1.0 if row.dtype == bool else row for row in rows])

    def _mapped(self, draws: Points | dict[str, np.ndarray]) -> Any:
        if isinstance(self.f, Compiled):
            return self.f.over(draws)
        return jax.vmap(self._one)(jax.tree.map(jax.numpy.asarray, draws))

    @contextmanager
    def _scope(self) -> Iterator[None]:
        """The precision of the sample; errors say which integrand they came from."""
        # what overflows, or is no number, is refused later
        with precision(self.dtype), np.errstate(all="ignore"):
            try:
                yield
            except Exception as error:
                error.add_note(
                    f"This came from the integrand {self.label!r}, a function of one draw at a time: of "
                    f"{self._described()}."
                )
                raise

    def _described(self) -> str:
        """What the function gets for one draw, with shapes."""
        given = self.draws if isinstance(self.draws, dict) else {"x": self.draws}
        return ", ".join(f"{name} of shape {values.shape[1:]}" for name, values in given.items())


def function_of(label: str, f: Callable, sample: Sample) -> DrawFunction:
    """A function, with the draws or the variables of a sample that it asks for."""
    return DrawFunction(label, f, _arguments(f, sample), sample.dtype)


def columns_named(name: str, sample: Sample) -> list[int]:
    """The dimensions of the draws that a name stands for: one, or the elements of a vector."""
    return [i for i, n in enumerate(sample.names) if n == name or n.startswith(name + "[")]


def known_names(sample: Sample) -> list[str]:
    """What can be asked for by name: the model's variables, and the columns of the draws."""
    own = () if sample.variables is None else sample.variables.names
    vectors = (name.partition("[")[0] for name in sample.names)
    return list(dict.fromkeys([*own, *vectors]))


def some_of(names: list[str]) -> str:
    """The first ten."""
    return ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")


def reals(label: str, values: object) -> np.ndarray:
    """An array of real numbers; a boolean counts as 0 or 1."""
    if getattr(getattr(values, "dtype", None), "kind", "") == "b":
        values = np.asarray(values, dtype=np.float64)
    return as_reals(values, f"values of the integrand {label!r}")


def named_arguments(f: Callable) -> dict[str, inspect.Parameter]:
    """The arguments that a function has to be given and that can be given by name."""
    try:
        signature = inspect.signature(f).parameters
    except (TypeError, ValueError):  # some functions have none
        return {}
    return {n: p for n, p in signature.items() if p.default is p.empty and p.kind in _NAMED}


def _arguments(f: Callable, sample: Sample) -> Points | dict[str, np.ndarray]:
    """What a function is to be called with on each draw: variables by name, or the draw itself."""
    arguments = named_arguments(f)
    names = list(arguments)
    known = {name: _values(name, sample) for name in names}
    if names == [DRAW]:
        _check_draw(arguments[DRAW], known[DRAW], sample)
    missing = [name for name, values in known.items() if values is None]
    there = known_names(sample) if missing else []
    if there and (len(names) > 1 or get_close_matches(missing[0], there)):
        raise ValueError(
            f"a function of {', '.join(names)}, but the sample has no {', '.join(missing)}: it has "
            f"{some_of(there)}. Let the arguments be some of these, or let there be one called x, the whole "
            "unconstrained draw, (dim,)."
        )
    return sample.x if missing or not names else {name: known[name] for name in names}  # type: ignore


def _check_draw(argument: inspect.Parameter, values: np.ndarray | None, sample: Sample) -> None:
    """Refuse `lambda x: ...` where a variable is called x too, and is not all of the draw."""
    if argument.kind is inspect.Parameter.KEYWORD_ONLY or values is None:
        return
    if not np.array_equal(values.reshape(sample.size, -1).astype(sample.dtype), sample.x):
        raise ValueError(
            f"a function of x alone is ambiguous: x is the whole draw, of {sample.dim} numbers, and the "
            "sample has a variable called x. For the whole draw write lambda x, /: ... or def f(x, /). For "
            "the variable write lambda *, x: ... or def f(*, x)."
        )


def _values(name: str, sample: Sample) -> np.ndarray | None:
    """A variable, or some dimensions of the draws, over all chains: (n, ...)."""
    if sample.variables is not None and name in sample.variables:
        values = read(sample.variables[name])
        return values.reshape(sample.size, *values.shape[2:])
    columns = columns_named(name, sample)
    if not columns:
        return None
    if sample.names[columns[0]] == name:
        return sample.x[:, columns[0]]
    together = slice(columns[0], columns[-1] + 1)  # a slice takes no copy
    return sample.x[:, together if columns[-1] - columns[0] < len(columns) else columns]
