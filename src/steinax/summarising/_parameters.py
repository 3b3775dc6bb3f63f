"""Which numbers a summary is of: the model's own variables, or the columns of the draws."""

import os
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from ..adapters import from_arviz
from ..data import Sample

if TYPE_CHECKING:
    import xarray

ELEMENT = re.compile(r"(.+)\[(\d+(?:, ?\d+)*)\]")
AXES = ("chain", "draw")


def as_sample(data: Any) -> Sample:
    """A sample, from one, from a DataTree with scores or from a file; the audit comes later."""
    if isinstance(data, Sample):
        return data
    import xarray

    if not isinstance(data, (xarray.DataTree, str, os.PathLike)):
        raise TypeError(
            f"a summary of a {type(data).__name__}: give a Sample, a DataTree with scores, or the path of a "
            "netCDF file or zarr store. Adapters such as from_pymc make a Sample of what samplers return."
        )
    return from_arviz(data, audit=False)


def parameters(
    sample: Sample, var_names: str | list[str] | None, filter_vars: str | None
) -> "xarray.Dataset":
    """The variables to summarise, as numbers, with axes (chain, draw, ...).

    Args:
        sample: with variables of the model, or without.
        var_names: which, as ArviZ has it; all by default.
        filter_vars: how these are meant: None, "like" or "regex".
    """
    import arviz_stats  # noqa: F401  # registers the accessor

    if sample.variables is None:
        dataset = _from_columns(sample)
    else:
        dataset = sample.variables.tree["posterior"].to_dataset()[list(sample.variables.names)]
    if isinstance(var_names, str):
        var_names = [var_names]
    try:
        dataset = dataset.azstats.filter_vars(var_names, filter_vars).ds
    except KeyError as error:
        known = ", ".join(map(str, list(dataset)[:10]))
        raise KeyError(f"{error.args[0]}: there are {known}. Use some of these.") from None
    if not dataset.data_vars:
        raise ValueError(
            f"var_names={var_names!r} leaves no variable to summarise: give names that there are."
        )
    return dataset.map(_as_floats).transpose(*AXES, ...)


def _as_floats(variable: "xarray.DataArray") -> "xarray.DataArray":
    if variable.dtype.kind not in "fiub":
        raise ValueError(
            f"the variable {variable.name!r} is of type {variable.dtype} and has no mean: leave it out, by "
            f'var_names=["~{variable.name}"].'
        )
    return variable.astype(np.float64).compute()


def _from_columns(sample: Sample) -> "xarray.Dataset":
    """The unconstrained draws, with `beta[0]`, `beta[1]`, ... as one vector."""
    import xarray

    groups: dict[str, list[tuple[int, tuple[int, ...]]]] = {}
    for i, name in enumerate(sample.names):
        element = ELEMENT.fullmatch(name)
        base = element[1] if element else name
        index = tuple(int(part) for part in element[2].split(",")) if element else ()
        groups.setdefault(base, []).append((i, index))
    made = {}
    for base, members in groups.items():
        columns, indices = [i for i, _ in members], [index for _, index in members]
        shape = _whole_array(indices)
        if shape is None:  # the lower triangle of a matrix, and such
            made |= {sample.names[i]: (AXES, sample.draws[..., i]) for i in columns}
            continue
        values = sample.draws[..., columns].reshape(*sample.draws.shape[:2], *shape)
        made[base] = ((*AXES, *(f"{base}_dim_{j}" for j in range(len(shape)))), values)
    axes = {axis: np.arange(n) for axis, n in zip(AXES, sample.draws.shape, strict=False)}
    dataset = xarray.Dataset(made, coords=axes)
    return dataset.assign_coords(
        {dim: np.arange(n) for dim, n in dataset.sizes.items() if dim not in AXES}
    )


def _whole_array(indices: list[tuple[int, ...]]) -> tuple[int, ...] | None:
    """The shape of the array whose elements these are, in order, or None."""
    if len({len(index) for index in indices}) > 1:
        return None
    shape = tuple(int(n) + 1 for n in np.max(indices, axis=0)) if indices[0] else ()
    return shape if indices == list(np.ndindex(*shape)) else None
