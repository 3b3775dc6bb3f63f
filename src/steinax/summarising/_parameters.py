"""Which numbers a summary is of: the model's own variables, or the columns of the draws."""

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from ..adapters import from_arviz
from ..data import Sample
from ..data._arrays import ADAPTERS
from ..data._columns import as_dataset
from ..data._variables import AXES
from ..data._weights import refuse_weights

if TYPE_CHECKING:
    import xarray


def as_sample(data: Any) -> Sample:
    """A sample, from one, from a DataTree with scores or from a file; the audit comes later."""
    if isinstance(data, Sample):
        refuse_weights(data, "summary")
        return data
    import xarray

    if not isinstance(data, (xarray.DataTree, str, os.PathLike)):
        raise TypeError(
            f"a summary of type {type(data).__name__}: give a Sample, as Sample(draws, scores), a DataTree "
            f"with scores, or the path of a netCDF file or zarr store. {ADAPTERS}"
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
        dataset = as_dataset(sample)
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
