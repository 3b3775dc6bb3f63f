"""A text that changes whenever the rows of a farm would, so that kept ones are not mistaken."""

import os
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np

from .._show import describe
from ..data import Sample
from ..families import AbstractFamily
from ._batch import Batch

SIZE = 16  # bytes of a digest


def fingerprint(f: Any, samples: Any, family: AbstractFamily, load: Any, audit: str) -> str:
    """A digest of the settings and of the draws.

    Of arrays in memory every number counts; of those on disk the first and the last posterior, of
    files their names, sizes and times, of functions their code and not what they refer to.
    """
    data = _of_batch(samples) if isinstance(samples, Batch) else _of_sources(samples)
    digest = blake2b("\n".join([_of(f), _of(load), data]).encode(), digest_size=SIZE).hexdigest()
    return f"{len(samples)} posteriors, {describe(family)}, audit={audit}, {digest}"


def _of(value: Any) -> str:
    if isinstance(value, Mapping):
        return str({name: _of(one) for name, one in value.items()})
    if hasattr(value, "shape"):
        return _of_array(value)
    if callable(value):
        code = getattr(value, "__code__", None)
        name = getattr(value, "__qualname__", type(value).__qualname__)
        return name if code is None else f"{name}: {_of_code(code)}"
    return repr(value)


def _of_code(code: CodeType) -> str:
    parts = [_of_code(one) if isinstance(one, CodeType) else repr(one) for one in code.co_consts]
    return f"{code.co_code.hex()} {code.co_names} {parts}"


def _of_array(array: Any) -> str:
    whole = isinstance(array, np.ndarray) and array.ndim > 0
    rows = array if whole else [np.asarray(array[i]) for i in (0, -1)]
    digest = blake2b(digest_size=SIZE)
    for row in rows:
        digest.update(np.ascontiguousarray(row))
    return f"{tuple(array.shape)} {array.dtype} {digest.hexdigest()}"


def _of_batch(batch: Batch) -> str:
    return f"{batch.names} {_of_array(batch.draws)} {_of_array(batch.scores)}"


def _of_sources(sources: Sequence[Any]) -> str:
    return str([_of_source(sources[i]) for i in range(len(sources))])


def _of_source(source: Any) -> str:
    if isinstance(source, Sample):
        return f"{source.names} {_of_array(source.draws)} {_of_array(source.scores)}"
    if isinstance(source, str | os.PathLike) and Path(source).exists():
        known = Path(source).stat()
        return f"{os.fspath(source)} {known.st_size} {known.st_mtime_ns}"
    return repr(source)
