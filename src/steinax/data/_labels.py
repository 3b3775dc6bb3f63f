"""What labelled arrays say of themselves: which axis is which, and the names of columns."""

from collections.abc import Iterable
from typing import Any

from ._variables import AXES


def unlabelled(values: Any) -> tuple[Any, tuple[str, ...] | None]:
    """The numbers of a data frame or a DataArray, axes in order, and its names if it has some.

    >>> import pandas
    >>> unlabelled(pandas.DataFrame({"mu": [0.5], "tau": [2.0]}))
    (array([[0.5, 2. ]]), ('mu', 'tau'))
    """
    if hasattr(values, "columns") and hasattr(values, "to_numpy"):
        return values.to_numpy(), _strings(values.columns)
    dims = getattr(values, "dims", ())
    if len(dims) == 3 and set(AXES) < set(dims):
        ordered = values.transpose(*AXES, ...)
        last = ordered.dims[2]
        return ordered.values, _strings(ordered[last].values) if last in ordered.coords else None
    return values, None


def common(draws: tuple[str, ...] | None, scores: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """The names of the draws; those of the scores must be the same, where both have some."""
    if draws and scores and set(draws) == set(scores) and draws != scores:
        raise ValueError(
            f"the columns of the draws are {', '.join(draws[:5])} and those of the scores "
            f"{', '.join(scores[:5])}: give both in one order."
        )
    return draws or scores


def _strings(labels: Iterable[object]) -> tuple[str, ...] | None:
    names = tuple(labels)
    distinct = len(set(names)) == len(names)
    return tuple(map(str, names)) if distinct and all(isinstance(n, str) for n in names) else None
