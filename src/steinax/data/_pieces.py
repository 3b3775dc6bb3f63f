"""One integrand, or an array of them, that can be evaluated some columns at a time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import jax
import numpy as np
from numpy.typing import ArrayLike

from ..working import CorruptChunkError
from ._chunks import _file, chunk_shape, find_missing
from ._functions import columns_named, function_of, known_names, reals, some_of
from ._sample import Sample
from ._variables import element, read

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
    function = function_of(label, f, sample)
    shape = function.shape()
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

    return Piece(_names(label, shape[2:]), columns)


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
            return CorruptChunkError(name, chunk, _file(array, chunk), reason)
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
    columns = columns_named(name, sample)
    if not columns:
        base = name.partition("[")[0]
        there = [one for one in sample.names if one.startswith(f"{base}[")] or known_names(sample)
        raise ValueError(
            f"no variable and no dimension is called {name!r}: the sample has {some_of(there)}. Use one of "
            "these, or a function of the draw."
        )
    return sample.draws[..., columns], [label + sample.names[i][len(name) :] for i in columns]
