"""Posteriors that come one by one, of any shapes: from samples in memory, or from files."""

import os
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from typing import Any, NamedTuple

import numpy as np

from ..adapters import from_arviz
from ..data import Integrands, Sample, integrands
from ..data._integrands import IntegrandSpec
from ..data._space import refuse_space
from ..data._weights import refuse_weights
from ..estimation._audited import AuditMode
from ..families import AbstractFamily
from ._alone import Problem, failure
from ._batch import INTEGRANDS
from ._groups import Group, estimate_group
from ._table import Table, failures, merged, ordered

UNREADABLE = "unreadable"


def load_source(source: Any) -> Sample:
    """A sample from the path of a file that `save` wrote; a sample is what it is."""
    if isinstance(source, Sample):
        return source
    if not isinstance(source, str | os.PathLike):
        raise TypeError(
            f"a {type(source).__name__} is no sample and no path: give load=, a function that makes a Sample "
            "of it."
        )
    return from_arviz(source, audit=False)


def estimate_sources(
    f: IntegrandSpec,
    sources: Iterable[Any],
    load: Callable[[Any], Sample],
    family: AbstractFamily,
    mode: AuditMode,
) -> Table:
    """A row for each source; those of one shape are computed together."""
    groups: dict[Any, list[Read]] = defaultdict(list)
    failed: list[tuple[int, Problem]] = []
    for place, source in enumerate(sources):
        found = _read(f, place, source, load)
        if isinstance(found, Read):
            groups[found.shape].append(found)
        else:
            failed.append((place, found))
    tables = [estimate_group(_stacked(group), family, mode) for group in groups.values()]
    order = [one.place for group in groups.values() for one in group]
    order += [place for place, _ in failed]
    return ordered(merged([*tables, failures(problem for _, problem in failed)]), order)


class Read(NamedTuple):
    """A sample and its integrands."""

    place: int
    sample: Sample
    wanted: Integrands

    @property
    def shape(self) -> Hashable:
        """What posteriors must share to be computed together."""
        one = self.sample
        flags = one.diverging is None
        return one.draws.shape, str(one.dtype), flags, one.names, self.wanted.names


def _read(
    f: IntegrandSpec, place: int, source: Any, load: Callable[[Any], Sample]
) -> Read | Problem:
    try:
        sample = load(source)
    except Exception as error:
        return failure(error, UNREADABLE)
    try:
        refuse_space(sample, "estimate_many")
        refuse_weights(sample, "estimate_many")
        return Read(place, sample, integrands(f, sample))
    except Exception as error:
        return failure(error, INTEGRANDS)


def _stacked(group: list[Read]) -> Group:
    first = group[0].sample
    draws, scores, values = (
        np.stack(arrays)
        for arrays in zip(
            *((one.sample.draws, one.sample.scores, one.wanted.values) for one in group),
            strict=True,
        )
    )
    flags = None
    if first.diverging is not None:
        flags = np.stack([np.asarray(one.sample.diverging) for one in group])
    return Group(draws, scores, values, flags, first.names, group[0].wanted.names)
