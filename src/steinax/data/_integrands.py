"""Integrands: names, arrays and functions of the draws, evaluated."""

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

import equinox as eqx
import jax
import numpy as np
from numpy.typing import ArrayLike

from .._precision import precision, widest
from .._show import some_of
from .._types import Points, Series
from ..working import CorruptChunkError
from ..working._keeping import chunk_file, chunk_shape, find_missing
from ._sample import ADAPTERS, Sample, as_reals
from ._variables import (
    AXES,
    ByName,
    Variables,
    element,
    in_chains,
    is_labelled,
    labels,
    read,
    unstacked,
)

jax.tree_util.register_pytree_node(
    ByName,
    lambda one: (tuple(one.held.values()), tuple(one.held)),
    lambda names, values: ByName(dict(zip(names, values, strict=True))),
)


LEAST = 128  # draws: fewer are filled up to this many


def filled(values: np.ndarray, rows: int) -> np.ndarray:
    """An array with its last row repeated until there are so many.

    >>> filled(np.array([[1.0], [2.0]]), 4).tolist()
    [[1.0], [2.0], [2.0], [2.0]]
    """
    short = rows - len(values)
    return np.concatenate([values, values[-1:].repeat(short, 0)]) if short > 0 else values


def rounded(n: int) -> int:
    """The least power of two that is as large, and at least 128: few sizes to compile for.

    >>> rounded(3), rounded(128), rounded(129)
    (128, 128, 256)
    """
    return max(LEAST, 1 << (n - 1).bit_length())


class Compiled:
    """An integrand of one draw with what jax makes of it for many; it can be sent away.

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
        """The values on draws (n, dim), or on variables (n, ...) by name."""
        n = len(jax.tree.leaves(draws)[0])
        many = jax.tree.map(lambda values: filled(values, rounded(n)), draws)
        return np.asarray(self._mapped(many))[:n]

    @cached_property
    def _mapped(self) -> Callable:
        f = self.__wrapped__
        return jax.jit(jax.vmap(lambda row: f(**row) if isinstance(row, dict) else f(row)))


def compiled[F](f: F) -> F:
    """Integrands of which every function is compiled; names and arrays stay as they are."""
    if isinstance(f, Mapping):
        return {name: compiled(one) for name, one in f.items()}  # type: ignore[return-value]
    plain = callable(f) and not isinstance(f, Compiled)
    return Compiled(f) if plain else f  # type: ignore[return-value]


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
    """A function with what it is called with: draws (n, dim), or variables (n, ...) by name.

    Those of a dict are its arguments, and a `ByName` is its only argument.
    """

    label: str
    f: Callable
    draws: Points | dict[str, np.ndarray] | ByName
    dtype: np.dtype

    def asks(self) -> bool:
        """Whether it asks its argument for variables by name; those that it asks for are read."""
        if not isinstance(self.draws, ByName):
            return False
        every = self.draws

        def traced(i: Any) -> int:
            self.f(every.mapped(lambda values: jax.numpy.asarray(values[:1])[i]))
            return 0

        try:
            with self._scope():
                try:
                    jax.eval_shape(traced, 0)
                except _NEEDS_VALUES:
                    self.f(self._row(0))
        except Exception:
            if every.asked:
                raise
        return every.asked

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

    def _rows(self, part: slice) -> Points | dict[str, np.ndarray] | ByName:
        return jax.tree.map(lambda values: values[part], self.draws)

    def _row(self, i: int) -> Any:
        """One draw, of which further variables are read when the function asks for them."""
        if isinstance(self.draws, ByName):
            return self.draws.mapped(lambda values: values[i])
        return jax.tree.map(lambda values: values[i], self.draws)

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
                some = range(self.count)[part]
                rows = [np.asarray(self._one(self._row(i))) for i in some]
                return reals(self.label, [row * 1.0 if row.dtype == bool else row for row in rows])

    def _mapped(self, draws: Points | dict[str, np.ndarray] | ByName) -> Any:
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
        if isinstance(self.draws, ByName):
            return "the variables by name"
        given = self.draws if isinstance(self.draws, dict) else {"x": self.draws}
        return ", ".join(f"{name} of shape {values.shape[1:]}" for name, values in given.items())


def function_of(label: str, f: Callable, sample: Sample) -> tuple[DrawFunction, tuple[int, ...]]:
    """A function, with the draws or the variables it asks for, and the shape of its value on a draw."""
    try:
        made = DrawFunction(label, f, _arguments(f, sample), sample.dtype)
        return made, made.shape()
    except Exception as error:  # as jax and NumPy raise for d["mu"] of an array
        first = error
    every = ByName({}, known_names(sample), lambda name: _values(name, sample))
    made = DrawFunction(label, f, every, sample.dtype)
    if not made.asks():
        raise first
    return made, made.shape()


def places(name: str, names: Sequence[str]) -> list[int]:
    """Where a name stands among others: its own place, or those of all elements of a vector.

    >>> places("beta", ["mu", "beta[0]", "beta[1]"])
    [1, 2]
    """
    if name in names:
        return [names.index(name)]
    return [i for i, one in enumerate(names) if one.startswith(name + "[")]


def known_names(sample: Sample) -> list[str]:
    """What can be asked for by name: the model's variables, and the columns of the draws."""
    own = () if sample.variables is None else sample.variables.names
    vectors = (name.partition("[")[0] for name in sample.names)
    return list(dict.fromkeys([*own, *vectors]))


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
    found = None if sample.variables is None else sample.variables.labelled(name)
    if found is not None:
        values, names = found
        return values.reshape(sample.size, -1)[:, 0 if names == [name] else slice(None)]
    columns = places(name, sample.names)
    if not columns:
        return None
    if sample.names[columns[0]] == name:
        return sample.x[:, columns[0]]
    together = slice(columns[0], columns[-1] + 1)  # a slice takes no copy
    return sample.x[:, together if columns[-1] - columns[0] < len(columns) else columns]


type Integrand = str | Callable[..., ArrayLike] | ArrayLike


@dataclass(frozen=True)
class Piece:
    """Names, a way to read a slice of the columns, (chain, draw, k), and what it takes beside them.

    Attributes:
        names: of the columns.
        read: gives the columns of a slice.
        extra: bytes that reading takes beside the columns that are asked for.
    """

    names: Sequence[str]
    read: Callable[[slice], np.ndarray]
    extra: int = 0


def piece(label: str, f: Integrand, sample: Sample) -> Piece:
    """An integrand by its name, as a function or as an array, under a label."""
    if isinstance(f, str):
        values, names = _by_name(label, f, sample)
        return Piece(names, lambda part: values[..., part])
    if callable(f):
        return _of_function(label, f, sample)
    if _is_stored(f):
        return _of_stored(label, f, sample)
    array = reals(label, f)
    _check_shape(label, array.shape, sample)
    flat = array.reshape(*array.shape[:2], prod(array.shape[2:]))
    return Piece(_names(label, array.shape[2:]), lambda part: flat[..., part])


def _of_function(label: str, f: Callable, sample: Sample) -> Piece:
    """All columns of a function are computed for any of them, on as many draws as memory bears."""
    function, shape = function_of(label, f, sample)
    width = prod(shape)

    def columns(part: slice) -> np.ndarray:
        values = function.read(part, width)
        return values.reshape(sample.chains, sample.length, values.shape[1])

    return Piece(_names(label, shape), columns, 2 * 8 * width * function.batch(width))


def _is_stored(f: object) -> bool:
    """Whether it is an array of zarr, dask, h5py or xarray: what NumPy or jax holds is here."""
    here = isinstance(f, (np.ndarray, np.generic, jax.Array))
    return hasattr(f, "shape") and hasattr(f, "dtype") and not here


def _of_stored(label: str, array: Any, sample: Sample) -> Piece:
    """Columns that stay where they are stored until they are asked for."""
    array = unstacked(array)
    if set(AXES) & set(getattr(array, "dims", ())):
        array = in_chains(array, f"the integrand {label!r}")
    shape = tuple(array.shape)
    _check_shape(label, shape, sample)
    find_missing(array, label)
    inside = prod(shape[3:])

    def columns(part: slice) -> np.ndarray:
        first, last = part.start // inside, -(-part.stop // inside)
        place = (slice(None), slice(None), slice(first, last), *(slice(None),) * len(shape[3:]))
        try:
            values = read(array[place[: len(shape)]])
        except Exception as error:
            raise _unreadable(label, array, first, last, error) from error
        flat = reals(label, values).reshape(*shape[:2], -1)
        return flat[..., part.start - first * inside : part.stop - first * inside]

    return Piece(labels(label, array) if is_labelled(array) else _names(label, shape[2:]), columns)


def _unreadable(label: str, array: Any, first: int, last: int, error: Exception) -> Exception:
    """The error that names the first of some chunks which cannot be read."""
    inside = chunk_shape(array)
    edges = list(array.shape)
    start = [0] * len(edges)
    if len(edges) > 2:
        start[2], edges[2] = first, last
    grid = (
        range(a // size, -(-b // size)) for a, b, size in zip(start, edges, inside, strict=True)
    )
    for chunk in product(*grid):
        corner = tuple(
            slice(i * size, min((i + 1) * size, n))
            for i, size, n in zip(chunk, inside, array.shape, strict=True)
        )
        try:
            read(array[corner])
        except Exception as own:
            name, reason = getattr(array, "path", None) or label, f"{type(own).__name__}: {own}"
            return CorruptChunkError(name, chunk, chunk_file(array, chunk), reason)
    return error


def _check_shape(label: str, shape: tuple[int, ...], sample: Sample) -> None:
    if shape[:2] != (sample.chains, sample.length):
        raise ValueError(
            f"the integrand {label!r} has shape {shape}, but the sample has {sample.chains} "
            f"chains of {sample.length} draws: its first two axes must be (chain, draw), here "
            f"({sample.chains}, {sample.length})."
        )


def _names(label: str, shape: tuple[int, ...]) -> list[str]:
    return [element(label, index) for index in np.ndindex(*shape)]


def _by_name(label: str, name: str, sample: Sample) -> tuple[np.ndarray, list[str]]:
    found = None if sample.variables is None else sample.variables.labelled(name)
    if found is not None:
        values, names = found
        return reals(label, values), [label + one[len(name) :] for one in names]
    columns = places(name, sample.names)
    if not columns:
        base = name.partition("[")[0]
        there = [one for one in sample.names if one.startswith(f"{base}[")] or known_names(sample)
        raise ValueError(
            f"no variable and no dimension is called {name!r}: the sample has {some_of(there)}. Use one of "
            "these, or a function of the draw."
        )
    return sample.draws[..., columns], [label + sample.names[i][len(name) :] for i in columns]


type IntegrandSpec = Integrand | Mapping[str, Integrand] | Iterable[str]

# Of the square roots of the smallest and largest number: within them a variance can be computed.
LIMITS = np.array([1e4, 1e-4])


class Integrands(eqx.Module):
    """The functions whose expectations are wanted, evaluated on every draw.

    >>> import numpy as np
    >>> Integrands(np.zeros((4, 250, 2)), ("a", "b"))
    Integrands(2: a, b)
    """

    values: Series
    names: tuple[str, ...] = eqx.field(static=True)

    def __repr__(self) -> str:
        shown = some_of(self.names, 4)
        return f"Integrands({len(self.names)}: {shown})"


def integrands(f: IntegrandSpec | Integrands, sample: Sample) -> Integrands:
    """Evaluate integrands on a sample.

    Args:
        f: the name of a variable of the model (`"tau"`, `"theta[Choate]"`, `"log_likelihood/y"`), of a
            dimension of the draws or of a vector of them (`"beta"` for `beta[0]`, `beta[1]`, ...); a
            function whose arguments are such names, `lambda mu, tau: mu + tau`, or that asks for them,
            `lambda d: d["mu"] + d["tau"]`, or of one draw `x` of shape (dim,), giving a number or an array;
            an array of values that begins (chain, draw), or a DataArray with these axes, whose coordinates
            become names; several names; or a dict of any of these.
        sample: the draws on which to evaluate them.

    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(2, 50, 3))
    >>> sample = Sample(x, -x, names=["mu", "beta[0]", "beta[1]"])
    >>> integrands({"mu": "mu", "beta": "beta", "norm": lambda x: (x**2).sum()}, sample)
    Integrands(4: mu, beta[0], beta[1], norm)
    """
    found = columns(f, sample)
    return f if isinstance(f, Integrands) else found.read(0, len(found.names))


@dataclass(frozen=True)
class Columns:
    """Integrands that are evaluated, or read, some columns at a time.

    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(2, 50, 3))
    >>> columns({"x": "x", "cube": lambda x: x**3}, Sample(x, -x)).read(2, 4)
    Integrands(2: x[2], cube[0])
    """

    names: tuple[str, ...]
    pieces: tuple[Piece, ...]
    dtype: np.dtype

    @property
    def extra(self) -> int:
        """Bytes that reading takes beside the columns themselves."""
        return max(piece.extra for piece in self.pieces)

    def read(self, start: int, stop: int) -> Integrands:
        """The columns from one number to another."""
        parts, first = [], 0
        for one in self.pieces:
            own = slice(max(start - first, 0), min(stop - first, len(one.names)))
            if own.start < own.stop:
                parts.append(one.read(own))
            first += len(one.names)
        names = self.names[start:stop]
        values = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)
        _check(values, names, self.dtype)
        return Integrands(values.astype(self.dtype, copy=False), names)


def columns(f: IntegrandSpec | Integrands, sample: Sample) -> Columns:
    """Integrands of which nothing is evaluated yet but how many there are.

    Args:
        f: as for `integrands`.
        sample: the draws on which to evaluate them.
    """
    if not isinstance(sample, Sample):
        raise TypeError(_no_sample(f, sample))
    if isinstance(f, Integrands):
        if f.values.shape[:2] != (sample.chains, sample.length):
            raise ValueError(
                f"these integrands belong to another sample, of {f.values.shape[0]} chains of "
                f"{f.values.shape[1]} draws, not {sample.chains} of {sample.length}: evaluate them "
                "on this one."
            )
        made = Piece(f.names, lambda part: np.asarray(f.values)[..., part])
        return Columns(f.names, (made,), sample.dtype)
    named = _named(f)
    if not named:
        raise ValueError("no integrands given: name a dimension, or give a function or an array.")
    pieces = tuple(piece(label, one, sample) for label, one in named.items())
    names = tuple(name for one in pieces for name in one.names)
    if not names:
        raise ValueError("the integrands are empty: each must give at least one number per draw.")
    if _repeats(names):
        twice = min(name for name, count in Counter(names).items() if count > 1)
        raise ValueError(
            f"two integrands are called {twice!r}: give each its own name, in a dict such as "
            '{"first": ..., "second": ...}.'
        )
    return Columns(names, pieces, sample.dtype)


def variables_asked(f: IntegrandSpec, variables: Variables | None) -> dict[str, Any]:
    """The variables of a model that integrands ask for, by name: their values and their labels.

    >>> import numpy as np, xarray
    >>> tau = xarray.Dataset({"tau": (("chain", "draw"), np.ones((1, 2)))})
    >>> variables_asked(lambda tau, x: tau * x, Variables(tau))
    {'tau': (array([[[1.],
            [1.]]]), ['tau'])}
    """
    if variables is None:
        return {}
    asked: list[str] = []
    for one in _named(f).values():
        asked += [one] if isinstance(one, str) else _asked(one, variables) if callable(one) else []
    found = {}
    for name in asked:
        try:
            found[name] = variables.labelled(name)
        except KeyError:  # there is no such element, as is said when it is evaluated
            found[name] = None
    return {name: held for name, held in found.items() if held is not None}


def _asked(f: Callable, variables: Variables) -> list[str]:
    """The arguments of a function; all of the posterior too, if it asks its argument for names."""

    def first(name: str) -> np.ndarray:
        return read(variables[name][0, 0]) if name in variables else np.ones(1)

    every = ByName({}, variables.names, first)
    with suppress(Exception), np.errstate(all="ignore"):  # most are functions of something else
        f(every)
    return list(
        {
            **named_arguments(f),
            **dict.fromkeys(variables.names if every.asked else ()),
            **every.held,
        }
    )


def _named(f: IntegrandSpec) -> dict[str, Any]:
    """Each integrand under its name."""
    if isinstance(f, Mapping):
        return {str(name): one for name, one in f.items()}
    if isinstance(f, str):
        return {f: f}
    if isinstance(f, Iterable) and not hasattr(f, "__array__"):
        several = list(f)
        if all(isinstance(name, str) for name in several):
            if _repeats(several):
                raise ValueError(f"a name is given twice in {several}: give each once.")
            return {str(name): name for name in several}
        if any(callable(one) for one in several):
            raise TypeError(
                'several functions need names: give them in a dict, {"first": ..., "second": ...}, or as '
                "one function that returns an array."
            )
        return {"f": several}
    return {str(getattr(f, "name", None) or "f") if is_labelled(f) else "f": f}


def _no_sample(f: object, sample: object) -> str:
    """What to do about arguments of which the second is no sample."""
    if isinstance(f, Sample):
        return (
            "the integrands come first, and then the sample: estimate(f, sample), where f is a name, a list "
            "of names, a function or a dict. For all parameters use summary(sample)."
        )
    return (
        f"the sample is of type {type(sample).__name__}: give a Sample(draws, scores), after the integrands. "
        f"{ADAPTERS}"
    )


def _repeats(names: Sequence[object]) -> bool:
    return len(set(names)) < len(names)


def _check(values: np.ndarray, names: tuple[str, ...], dtype: np.dtype) -> None:
    """Refuse what has no average: values that are not finite, or whose squares are not."""
    if not np.all(np.isfinite(values)):
        i = int(np.argwhere(~np.isfinite(values))[0, 2])
        bad = np.argwhere(~np.isfinite(values[..., i]))
        raise ValueError(
            f"the integrand {names[i]!r} is not finite on every draw, but NaN or infinite on {len(bad)}, the "
            f"first of them draw {bad[0, 1]} of chain {bad[0, 0]}: its plain average would not be finite "
            "either. Correct the function, or leave out the draws on which it fails."
        )
    size = np.abs(values.astype(np.float64)).max(axis=(0, 1))
    low, high = (
        float(edge) for edge in LIMITS * np.sqrt([np.finfo(dtype).tiny, np.finfo(dtype).max])
    )
    unfit = (size > high) | ((size < low) & (size > 0))
    if unfit.any():
        i = int(np.argmax(unfit))
        raise ValueError(
            f"the integrand {names[i]!r} is as large as {size[i]:.2g}, outside {low:.0e} to {high:.0e}, and "
            f"its variance is beyond {dtype}: give it in other units, such as a multiple of it."
        )
