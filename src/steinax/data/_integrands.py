"""Evaluation of integrands given as names, arrays or functions of the draws."""

import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from math import prod
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import ArrayLike

from .._require import UnknownNameError, meant
from .._show import some_of
from .._types import AnyArray, Points, Series, Values
from ..working import find_missing, unreadable
from ._coordinates import kept_training, training_note, training_size
from ._functions import LABELLED, Above, DrawFunction
from ._jumps import Steps, curved_steps, joined, steps_above, steps_of
from ._sample import ADAPTERS, Sample, places, reals
from ._variables import (
    AXES,
    ByName,
    element,
    in_chains,
    is_labelled,
    labels,
    read,
    unstacked,
)

CURVES = 20  # the most events of curved functions that are made continuous
DRAW = "x"  # the argument that stands for the whole draw
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def function_of(label: str, f: Callable, sample: Sample) -> tuple[DrawFunction, tuple[int, ...]]:
    """Bind a function to the draws or variables it needs; also return the shape of its value on a draw."""
    try:
        function = DrawFunction(label, f, _arguments(label, f, sample), sample.dtype)
        return function, function.shape()
    except Exception as error:  # such as d["mu"] of an array raises in jax and NumPy
        first_error = error
    variables = ByName({}, known_names(sample), lambda name: _values(name, sample))
    function = DrawFunction(label, f, variables, sample.dtype)
    names = list(named_arguments(f))
    if len(names) == 1 and _values(names[0], sample) is not None:
        _refuse_labels(names[0], function, first_error)
    if not function.asks():
        raise first_error
    return function, function.shape()


def _refuse_labels(name: str, function: DrawFunction, error: Exception) -> None:
    """Raise the error of a function of one variable, or say that it takes numbers and no labels."""
    try:
        labelled = function.asks() or LABELLED in str(error)
    except Exception:  # the label is no variable
        labelled = True
    if not labelled:
        raise error
    raise ValueError(
        f"a function of {name} alone gets the variable {name}, an array without labels or methods of xarray: "
        f"use positions, {name}[0], or request an element by its label, estimate('{name}[...]', sample). To "
        "read variables by name, call the argument something else, such as lambda d: d['...']."
    ) from error


def known_names(sample: Sample) -> list[str]:
    """List the names that integrands may use: the model's variables, and the columns of the draws."""
    variables = () if sample.variables is None else sample.variables.names
    vectors = (name.partition("[")[0] for name in sample.names)
    return list(dict.fromkeys([*variables, *vectors]))


def named_arguments(f: Callable) -> dict[str, inspect.Parameter]:
    """List the required arguments of a function that can be passed by name."""
    try:
        signature = inspect.signature(f).parameters
    except (TypeError, ValueError):  # some functions have no signature
        return {}
    return {n: p for n, p in signature.items() if p.default is p.empty and p.kind in _NAMED}


def _arguments(label: str, f: Callable, sample: Sample) -> Points | dict[str, np.ndarray]:
    """Choose the arguments of a function on each draw: variables by name, or the draw itself."""
    arguments = named_arguments(f)
    names = list(arguments)
    known = {name: _values(name, sample) for name in names}
    if names == [DRAW]:
        _check_draw(arguments[DRAW], known[DRAW], sample)
    missing = [name for name, values in known.items() if values is None]
    available = known_names(sample) if missing else []
    stranger = sample.variables is not None and missing != [DRAW]
    if available and (len(names) > 1 or stranger or get_close_matches(missing[0], available)):
        raise ValueError(
            f"the integrand {label!r} is a function of {', '.join(names)}, but the sample has no "
            f"{', '.join(missing)}: it has {some_of(available)}. {meant(missing[0], available)}Name the "
            "arguments after some of these; for the whole unconstrained draw, (dim,), write lambda x: ... or "
            "lambda x, /: ..."
        )
    return sample.x if missing or not names else {name: known[name] for name in names}  # type: ignore


def _check_draw(argument: inspect.Parameter, values: np.ndarray | None, sample: Sample) -> None:
    """Refuse `lambda x: ...` if a variable is also called x, and is not the whole draw."""
    if argument.kind is inspect.Parameter.KEYWORD_ONLY or values is None:
        return
    if not np.array_equal(values.reshape(sample.size, -1).astype(sample.dtype), sample.x):
        raise ValueError(
            f"a function of x alone is ambiguous: x is the whole draw, of {sample.dim} numbers, and the "
            "sample has a variable called x. For the whole draw write lambda x, /: ... or def f(x, /). For "
            "the variable write lambda *, x: ... or def f(*, x)."
        )


def _values(name: str, sample: Sample) -> np.ndarray | None:
    """Read a variable, or some dimensions of the draws, over all chains: (n, ...); None if unknown."""
    if sample.variables is not None and name in sample.variables:
        values = read(sample.variables[name])
        return values.reshape(sample.size, *values.shape[2:])
    labelled = None if sample.variables is None else sample.variables.labelled(name)
    if labelled is not None:
        values, names = labelled
        return values.reshape(sample.size, -1)[:, 0 if names == [name] else slice(None)]
    columns = places(name, sample.names)
    if not columns:
        return None
    if sample.names[columns[0]] == name:
        return sample.x[:, columns[0]]
    span = slice(columns[0], columns[-1] + 1)  # a slice needs no copy
    return sample.x[:, span if columns[-1] - columns[0] < len(columns) else columns]


type Integrand = str | Callable[..., ArrayLike] | ArrayLike | Above


@dataclass(frozen=True)
class Piece:
    """One integrand of one or more columns, (chain, draw, k), that are read by slices.

    Attributes:
        names: the names of the columns.
        read: reads a slice of the columns.
        extra: bytes that reading needs in addition to the columns themselves.
        steps: finds where columns jump, given their slice and values; None if they do not.
        function: that gives the columns, if one does.
        named: whether it is a variable of the model, which may be constant.
    """

    names: Sequence[str]
    read: Callable[[slice], np.ndarray]
    extra: int = 0
    steps: Callable[[slice, np.ndarray], tuple[Steps, ...]] | None = None
    function: DrawFunction | None = None
    named: bool = False


def piece(label: str, f: Integrand, sample: Sample) -> Piece:
    """Create the piece of an integrand given by its name, as a function, as an array, or as `Above`."""
    if isinstance(f, Above):
        return _above(piece(label, f.f, sample), f.threshold, sample)
    if isinstance(f, str):
        values, names = _by_name(label, f, sample)
        return Piece(names, lambda columns: values[..., columns], named=True)
    if callable(f):
        return _of_function(label, f, sample)
    if _is_stored(f):
        return _of_stored(label, f, sample)
    array = reals(label, f)
    _check_shape(label, array.shape, sample)
    flat = array.reshape(*array.shape[:2], prod(array.shape[2:]))
    return Piece(_names(label, array.shape[2:]), lambda columns: flat[..., columns])


def _above(inner: Piece, threshold: float, sample: Sample) -> Piece:
    """Create the piece of indicators that the columns of another one exceed a threshold."""
    names = [f"{name} > {threshold:g}" for name in inner.names]

    def columns(selected: slice) -> np.ndarray:
        values = inner.read(selected)
        _check(values, tuple(inner.names[selected]), sample.dtype)
        return (values > threshold).astype(np.float64)

    def steps(selected: slice, values: np.ndarray) -> tuple[Steps, ...]:
        function, width = inner.function, len(names)
        if function is None:
            return steps_above(inner.read(selected), np.full(values.shape[-1], threshold), sample)
        found = steps_of(function.above(threshold), selected, width, values, sample)
        if len(found) > CURVES or sample.weights is not None:
            return found
        rest = [selected.start + i for i, known in enumerate(found) if not known]
        curved = iter(curved_steps(function, rest, threshold, sample))
        return tuple(known or next(curved) for known in found)

    return Piece(names, columns, inner.extra, steps)


def _of_function(label: str, f: Callable, sample: Sample) -> Piece:
    """Create the piece of a function, which computes all columns to read any of them."""
    function, shape = function_of(label, f, sample)
    width = prod(shape)

    def columns(selected: slice) -> np.ndarray:
        values = function.read(selected, width)
        return values.reshape(sample.chains, sample.length, values.shape[1])

    def steps(selected: slice, values: np.ndarray) -> tuple[Steps, ...]:
        return steps_of(function, selected, width, values, sample)

    names, extra = _names(label, shape), 2 * 8 * width * function.batch(width)
    return Piece(names, columns, extra, steps, function)


def _is_stored(f: object) -> bool:
    """Return whether an integrand is an array of zarr, dask, h5py or xarray, rather than of NumPy or jax."""
    in_memory = isinstance(f, (np.ndarray, np.generic, jax.Array))
    return hasattr(f, "shape") and hasattr(f, "dtype") and not in_memory


def _of_stored(label: str, array: Any, sample: Sample) -> Piece:
    """Create the piece of a stored array, whose columns are read on demand."""
    array = unstacked(array)
    if set(AXES) & set(getattr(array, "dims", ())):
        array = in_chains(array, f"the integrand {label!r}")
    shape = tuple(array.shape)
    _check_shape(label, shape, sample)
    find_missing(array, label)
    inside = prod(shape[3:])

    def columns(selected: slice) -> np.ndarray:
        first, last = selected.start // inside, -(-selected.stop // inside)
        index = (slice(None), slice(None), slice(first, last), *(slice(None),) * len(shape[3:]))
        try:
            values = read(array[index[: len(shape)]])
        except Exception as error:
            raise unreadable(array, label, first, last, error) from error
        flat = reals(label, values).reshape(*shape[:2], -1)
        return flat[..., selected.start - first * inside : selected.stop - first * inside]

    return Piece(labels(label, array) if is_labelled(array) else _names(label, shape[2:]), columns)


def _check_shape(label: str, shape: tuple[int, ...], sample: Sample) -> None:
    """Refuse an integrand whose first two axes are not those of the sample."""
    if shape[:2] != (sample.chains, sample.length):
        raise ValueError(
            f"the integrand {label!r} has shape {shape}, but the sample has {sample.chains} "
            f"chains of {sample.length} draws: its first two axes must be (chain, draw), here "
            f"({sample.chains}, {sample.length})."
        )


def _names(label: str, shape: tuple[int, ...]) -> list[str]:
    """Name the elements of an array by their indices."""
    return [element(label, index) for index in np.ndindex(*shape)]


def _by_name(label: str, name: str, sample: Sample) -> tuple[np.ndarray, list[str]]:
    """Read the variable or the dimensions of a name: values, (chain, draw, k), and labels."""
    labelled = None if sample.variables is None else sample.variables.labelled(name)
    if labelled is not None:
        values, names = labelled
        return reals(label, values), [label + known[len(name) :] for known in names]
    columns = places(name, sample.names)
    if not columns:
        base = name.partition("[")[0]
        available = [
            known for known in sample.names if known.startswith(f"{base}[")
        ] or known_names(sample)
        raise UnknownNameError(
            f"no variable and no dimension is called {name!r}: the sample has {some_of(available)}. "
            f"{_hint(name, known_names(sample))}Use one of these, or a function of the draw."
        )
    return sample.draws[..., columns], [label + sample.names[i][len(name) :] for i in columns]


def _hint(name: str, known: Sequence[str]) -> str:
    """Say what may be meant by a name that is not one of those known."""
    if name.startswith("log_likelihood") and "log_lik" in known:
        return "Stan's programs often call it log_lik. "
    if name.startswith("log_likelihood"):
        return "PyMC adds log likelihoods to a trace by pm.compute_log_likelihood(trace), within the model. "
    if re.fullmatch(r"\w+(\.\d+)+", name):
        base, *index = name.split(".")
        return f"Stan's {name} is {element(base, [int(i) - 1 for i in index])} here. "
    return _as_function(name, known) or meant(name, known)


def _as_function(expression: str, known: Sequence[str]) -> str:
    """Say how to write an expression of known names, such as `tau > 1`, as a function; empty for others."""
    outside = re.sub(r"\[[\d, -]*\]", "", expression)  # of indices
    used = list(dict.fromkeys(re.findall(r"\b[A-Za-z_]\w*\b(?!\()", outside)))
    if not used or not set(used) <= set(known) or not re.search(r"[-+*/<>=(]", outside):
        return ""
    key = "p" if re.search("[<>=]", outside) else "f"
    code = re.sub(r"\b(\w+\()", r"jnp.\1", expression)
    return f'An expression is a function: {{"{key}": lambda {", ".join(used)}: {code}}}. '


type IntegrandSpec = Integrand | Mapping[str, Integrand] | Iterable[str]

# Factors of the square roots of the smallest and largest floats: within these a variance is finite.
LIMITS = np.array([1e4, 1e-4])


class Integrands(eqx.Module):
    """The functions whose expectations are wanted, evaluated on every draw.

    >>> import numpy as np
    >>> Integrands(np.zeros((4, 250, 2)), ("a", "b"))
    Integrands(2: a, b)
    """

    values: Series
    names: tuple[str, ...] = eqx.field(static=True)
    training: Values | None = None  # on the training points that are used; None if none are
    steps: tuple[Steps, ...] = ()  # where each jumps; empty if that is not known of any
    # those that are variables of the model: one that is 0 on all draws is so by definition
    variables: tuple[str, ...] = eqx.field(static=True, default=())

    @property
    def jumping(self) -> np.ndarray:
        """The integrands whose jumps are known, (J,)."""
        return np.array([i for i, steps in enumerate(self.steps) if steps], int)

    @property
    def size(self) -> int:
        """The number of draws and training points."""
        chains, length = self.values.shape[:2]
        return chains * length + (0 if self.training is None else len(self.training))

    @property
    def rows(self) -> np.ndarray:
        """The values on all draws, and below them on the training points: (rows, k)."""
        values = np.asarray(self.values, np.float64).reshape(-1, len(self.names))
        return values if self.training is None else np.concatenate([values, self.training])

    def mapped(self, f: Callable[[Any], Any], names: Sequence[str]) -> "Integrands":
        """Change the values, on training points too, by a function of arrays (..., k).

        >>> import numpy as np
        >>> both = Integrands(np.ones((4, 250, 2)), ("a", "b"))
        >>> both.mapped(lambda v: v[..., :1] + v[..., 1:], ("sum",))
        Integrands(1: sum)
        """
        training = None if self.training is None else f(np.asarray(self.training))
        return Integrands(f(np.asarray(self.values)), tuple(names), training)

    @staticmethod
    def joined(parts: Sequence["Integrands"]) -> "Integrands":
        """Put the columns of several integrands side by side."""
        names = tuple(name for part in parts for name in part.names)
        values = np.concatenate([part.values for part in parts], axis=-1)
        training = [part.training for part in parts if part.training is not None]
        steps = joined([(len(part.names), part.steps) for part in parts])
        training = np.concatenate(training, axis=-1) if training else None
        return Integrands(values, names, training, steps)

    def __repr__(self) -> str:
        return f"Integrands({len(self.names)}: {some_of(self.names, 4)})"


def integrands(f: IntegrandSpec | Integrands, sample: Sample, jumps: bool = False) -> Integrands:
    """Evaluate integrands on a sample.

    Args:
        f: the name of a variable of the model (`"tau"`, `"theta[Choate]"`, `"log_likelihood/y"`), of a
            dimension of the draws or of a vector of them (`"beta"` for `beta[0]`, `beta[1]`, ...); a
            function whose arguments are such names, `lambda mu, tau: mu + tau`, or that asks for them,
            `lambda d: d["mu"] + d["tau"]`, or of one draw `x` of shape (dim,), returning a number or array;
            an array of values that begins (chain, draw), or a DataArray with these axes, whose coordinates
            become names; several names; or a dict of any of these.
        sample: the draws on which to evaluate them.
        jumps: whether to find where functions of two values jump, for which they are evaluated between draws.

    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(2, 50, 3))
    >>> sample = Sample(x, -x, names=["mu", "beta[0]", "beta[1]"])
    >>> integrands({"mu": "mu", "beta": "beta", "norm": lambda x: (x**2).sum()}, sample)
    Integrands(4: mu, beta[0], beta[1], norm)
    """
    columns = integrand_columns(f, sample, jumps)
    return f if isinstance(f, Integrands) else columns.read(0, len(columns.names))


@dataclass(frozen=True)
class IntegrandColumns:
    """Integrands of which some columns at a time are evaluated or read.

    Attributes:
        names: of the columns.
        pieces: the integrands, in order.
        dtype: of the values.
        training: evaluates the columns from a start to a stop on the training points that are used,
            (training, k); None if none are used.
        note: on the training points; empty if there are none.
        jumps: whether to find where functions of two values jump.

    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(2, 50, 3))
    >>> integrand_columns({"x": "x", "cube": lambda x: x**3}, Sample(x, -x)).read(2, 4)
    Integrands(2: x[2], cube[0])
    """

    names: tuple[str, ...]
    pieces: tuple[Piece, ...]
    dtype: np.dtype
    training: Callable[[int, int], np.ndarray] | None = None
    note: str = ""
    jumps: bool = False

    @property
    def extra(self) -> int:
        """Bytes that reading needs in addition to the columns themselves."""
        return max(piece.extra for piece in self.pieces)

    def read(self, start: int, stop: int) -> Integrands:
        """Evaluate the columns from `start` to `stop`, exclusive."""
        names, blocks = self.names[start:stop], _columns_of(self.pieces, start, stop)
        values = without_rounding(_side_by_side(blocks))
        _check(values, names, self.dtype)
        steps = ()
        if self.jumps and any(part.steps for part, *_ in blocks):
            found = (
                (b.shape[-1], part.steps(at, b) if part.steps else ()) for part, at, b in blocks
            )
            steps = joined(list(found))
        training = None if self.training is None else self.training(start, stop)
        named = tuple(name for part, at, _ in blocks if part.named for name in part.names[at])
        return Integrands(values.astype(self.dtype, copy=False), names, training, steps, named)


def _columns_of(
    pieces: Sequence[Piece], start: int, stop: int
) -> list[tuple[Piece, slice, np.ndarray]]:
    """Evaluate the columns of several pieces from `start` to `stop`: which, and values (chain, draw, k)."""
    blocks, first = [], 0
    for part in pieces:
        selected = slice(max(start - first, 0), min(stop - first, len(part.names)))
        if selected.start < selected.stop:
            blocks.append((part, selected, part.read(selected)))
        first += len(part.names)
    return blocks


# Range over size below which a number is constant but for rounding errors, in float64 and if all are float32.
CONSTANT, CONSTANT_SINGLE = 1e-13, 1e-6


def without_rounding(values: np.ndarray) -> np.ndarray:
    """Replace columns that vary by rounding only, as the diagonal of a correlation matrix, by constants.

    >>> without_rounding(np.array([[[1.0, 2.0], [1 + 2e-16, 3.0]]]))[0, 1].tolist()
    [1.0, 3.0]
    """
    if values.dtype.kind != "f" or 0 in values.shape:
        return values
    with np.errstate(invalid="ignore"):  # infinite values are refused later
        spread, size = np.ptp(values, axis=(0, 1)), np.abs(values[0, 0])
        still = spread <= CONSTANT * size
        nearly = spread <= CONSTANT_SINGLE * size
        if (nearly & ~still).any():
            still |= nearly & (values == values.astype(np.float32)).all(axis=(0, 1))
    return np.where(still, values[0, 0], values) if still.any() else values


FEW = 20  # draws for each value of a discrete variable, at least
LOOKED_AT = 64  # draws that are looked at first


def discrete(values: Float[AnyArray, "chain draw k"]) -> Bool[AnyArray, " k"]:
    """Tell which variables take few values, or whole numbers only.

    >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> discrete(np.concatenate([x, np.round(3 * x), np.round(4 * x) / 2], axis=-1)).tolist()
    [False, False, True, True, True, True]
    """
    flat = values.reshape(-1, values.shape[-1])
    found = (flat == np.rint(flat)).all(axis=0)
    first = np.sort(flat[:LOOKED_AT], axis=0)
    repeats = (first[1:] == first[:-1]).any(axis=0)
    for i in np.flatnonzero(repeats & ~found):
        found[i] = len(np.unique(flat[:, i])) <= len(flat) / FEW
    return found


def _side_by_side(blocks: Sequence[tuple]) -> np.ndarray:
    return blocks[0][2] if len(blocks) == 1 else np.concatenate([b[2] for b in blocks], axis=-1)


def integrand_columns(
    f: IntegrandSpec | Integrands, sample: Sample, jumps: bool = False
) -> IntegrandColumns:
    """Prepare integrands for evaluation by columns; only their number and names are determined.

    Args:
        f: as for `integrands`.
        sample: the draws on which to evaluate them.
        jumps: as for `integrands`.
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
        values = np.asarray(f.values)
        whole = Piece(f.names, lambda c: values[..., c], steps=lambda c, _: f.steps[c])
        return _with_values(
            f, IntegrandColumns(f.names, (whole,), sample.dtype, jumps=jumps), sample
        )
    for one in f.values() if isinstance(f, Mapping) else [f]:
        if type(one).__module__.startswith("pytensor"):
            raise TypeError(
                f"{one} is a variable of a PyTensor graph: give its name, such as "
                f"{getattr(one, 'name', None) or 'mu'!r}, or a function of the model's variables."
            )
    named = named_integrands(f)
    if not named:
        raise ValueError("no integrands given: name a dimension, or give a function or an array.")
    pieces = tuple(piece(label, g, sample) for label, g in named.items())
    names = tuple(name for part in pieces for name in part.names)
    if not names:
        raise ValueError("the integrands are empty: each must give at least one number per draw.")
    if _repeats(names):
        twice = min(name for name, count in Counter(names).items() if count > 1)
        raise ValueError(
            f"two integrands are called {twice!r}: give each its own name, in a dict such as "
            '{"first": ..., "second": ...}.'
        )
    return _with_training(named, IntegrandColumns(names, pieces, sample.dtype, jumps=jumps), sample)


def _with_values(f: Integrands, columns: IntegrandColumns, sample: Sample) -> IntegrandColumns:
    """Add the values on training points that evaluated integrands have."""
    values = f.training
    if values is None or not sample.training:
        return columns
    if len(values) != training_size(sample):
        raise ValueError(
            f"these integrands were evaluated on {len(values)} training points, and the sample has "
            f"{training_size(sample)}: evaluate them on this sample."
        )
    note = training_note(sample)
    return replace(columns, training=lambda start, stop: values[:, start:stop], note=note)


def _with_training(
    named: dict[str, Any], columns: IntegrandColumns, sample: Sample
) -> IntegrandColumns:
    """Let integrands be evaluated on the training points too, or note why they cannot be."""
    if not sample.training or not training_size(sample):
        return replace(columns, note=training_note(sample))
    given = {label: g.f if isinstance(g, Above) else g for label, g in named.items()}
    arrays = [label for label, g in given.items() if not (isinstance(g, str) or callable(g))]
    if arrays:
        return replace(
            columns, note=f"{UNUSED} {arrays[0]!r} is an array of values on the draws only"
        )
    try:
        parts = tuple(
            tuple(piece(label, g, part) for label, g in named.items()) for part in sample.training
        )
    except (ValueError, KeyError, TypeError):  # a group that the warm-up does not have, mostly
        parts = ()
    count = len(columns.names)
    if not parts or any(sum(len(p.names) for p in pieces) != count for pieces in parts):
        return replace(
            columns, note=f"{UNUSED} they do not have all that {some_of(list(named), 3)} needs"
        )
    kept = kept_training(sample)

    def evaluate(start: int, stop: int) -> np.ndarray:
        values = [
            _side_by_side(_columns_of(pieces, start, stop)).reshape(part.size, -1)[used]
            for pieces, part, used in zip(parts, sample.training, kept, strict=True)
        ]
        together = np.concatenate(values).astype(np.float64)
        _check_training(together, columns.names[start:stop])
        return together

    return replace(columns, training=evaluate, note=training_note(sample))


UNUSED = "training points not used:"


def _check_training(values: np.ndarray, names: Sequence[str]) -> None:
    """Refuse integrands that are not finite on every training point."""
    bad = ~np.isfinite(values)
    if bad.any():
        name = names[int(bad.any(axis=0).argmax())]
        raise ValueError(
            f"the integrand {name!r} is not finite on {int(bad.any(axis=1).sum())} of {len(values)} training "
            "points: correct the function, or leave out the training points, by sample.with_training()."
        )


def named_integrands(f: IntegrandSpec) -> dict[str, Any]:
    """Collect integrands in a dict by name."""
    if isinstance(f, Mapping):
        return {str(name): item for name, item in f.items()}
    if isinstance(f, str):
        return {f: f}
    if isinstance(f, Iterable) and not hasattr(f, "__array__"):
        several = list(f)
        if all(isinstance(name, str) for name in several):
            if _repeats(several):
                raise ValueError(f"a name is given twice in {several}: give each once.")
            return {str(name): name for name in several}
        if any(callable(item) for item in several):
            raise TypeError(
                'several functions need names: give them in a dict, {"first": ..., "second": ...}, or as '
                "one function that returns an array."
            )
        return {"f": several}
    return {str(getattr(f, "name", None) or "f") if is_labelled(f) else "f": f}


def exceeding(f: IntegrandSpec | Integrands, threshold: float) -> dict[str, Above]:
    """Create the events that integrands exceed a threshold."""
    if isinstance(f, Integrands) or not np.isfinite(threshold):
        raise ValueError(
            f"threshold={threshold}: give one finite number, with integrands as names, functions or arrays."
        )
    return {label: Above(g, float(threshold)) for label, g in named_integrands(f).items()}


def _no_sample(f: object, sample: object) -> str:
    """Compose the message for arguments of which the second is not a sample."""
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
    """Return whether a name occurs more than once."""
    return len(set(names)) < len(names)


def _check(values: np.ndarray, names: tuple[str, ...], dtype: np.dtype) -> None:
    """Refuse values that are not finite, or whose squares are not."""
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
