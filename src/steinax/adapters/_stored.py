"""Draws and scores as nutpie stores them, in the `sample_stats` of a DataTree."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._require import require
from ..data import Sample, Stream
from ..data._lazy import lazy_sample

if TYPE_CHECKING:
    import xarray

STATS, DRAWS, SCORES = "sample_stats", "unconstrained_draw", "gradient"
COLUMN = "unconstrained_parameter"
GROUPS = ("posterior", "unconstrained_posterior")
LOG_DENSITY = ("lp", "logp")  # ArviZ's name, which PyMC and Stan have, and nutpie's
ORDER = "order_of_variables"  # an attribute of the groups of a zarr store


def open_tree(source: Any) -> "xarray.DataTree":
    """A DataTree: the one given, or that of a netCDF file or a zarr store, of which nothing is read yet."""
    import xarray

    if isinstance(source, xarray.DataTree):
        return source
    if type(source).__name__ == "LocalStore" and hasattr(source, "prefix"):  # nutpie's, of obstore
        source = source.prefix
    if not isinstance(source, (str, os.PathLike)):
        if hasattr(source, "list_dir") or type(source).__module__.startswith("zarr"):
            return _open(source, "zarr")  # a store that is no path
        raise TypeError(
            f"a {type(source).__name__} is neither a DataTree nor a path: give what the sampler returned, or "
            "the netCDF file or zarr store it was saved to."
        )
    path = Path(source)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}: check the path.")
    if path.suffix == ".csv" or (path.is_dir() and any(path.glob("*.csv"))):
        raise ValueError(f"{path} is of CSV files: read those of CmdStan by from_cmdstan(path).")
    if path.is_dir() or path.suffix == ".zip":
        return _open(path, "zarr")
    require("h5py", extra="files")
    return _open(path, "h5netcdf")


def _open(source: Any, engine: Any) -> "xarray.DataTree":
    import xarray

    require(engine, extra="files")
    if engine == "zarr":
        return _in_order(xarray.open_datatree(source, engine=engine, consolidated=False))
    return xarray.open_datatree(source, engine=engine)


def _in_order(tree: "xarray.DataTree") -> "xarray.DataTree":
    """Variables as they were when they were saved: a zarr store lists them in any order."""
    import xarray

    def arranged(group: "xarray.Dataset") -> "xarray.Dataset":
        attributes = dict(group.attrs)
        order = attributes.pop(ORDER, sorted(map(str, group.data_vars)))
        variables = {name: group[name] for name in order}
        return xarray.Dataset(variables, group.coords, attributes)

    return tree.map_over_datasets(arranged)


def has_scores(tree: "xarray.DataTree") -> bool:
    """Whether draws and scores are stored."""
    return STATS in tree.children and {DRAWS, SCORES} <= set(tree[STATS].data_vars)


def stored(tree: "xarray.DataTree") -> Sample:
    """The sample of a tree that `has_scores`; its variables are the tree's own, unread."""
    draws, scores, names, order = _placed(tree)
    scores = scores if order is None else scores[..., order]
    stats = tree[STATS].dataset
    diverging = stats["diverging"].transpose("chain", "draw") if "diverging" in stats else None
    flags = None if diverging is None else np.asarray(diverging.values)
    variables = tree if "posterior" in tree.children else None
    return Sample(
        draws.values,
        scores.values,
        names,
        diverging=flags,
        variables=variables,
        log_density=stored_log_density(stats),
    )


def stored_log_density(stats: "xarray.Dataset") -> np.ndarray | None:
    """The log density of each draw, (chain, draw), where the sampler kept it."""
    for name in LOG_DENSITY:
        if name in stats and set(stats[name].dims) == {"chain", "draw"}:
            return np.asarray(stats[name].transpose("chain", "draw").values)
    return None


def stored_stream(
    tree: "xarray.DataTree", draws: Any = None, scores: Any = None, block: int | None = None
) -> Stream:
    """The stream of a tree that `has_scores`, of which nothing is read.

    Args:
        tree: with names and variables.
        draws: the array itself, if it can be read in a better way than through the tree.
        scores: the same.
        block: how many draws to read at once.
    """
    ours, theirs, names, order = _placed(tree)
    variables = tree if "posterior" in tree.children else None
    arrays = (ours, theirs) if draws is None else (draws, scores)
    return Stream.of(lazy_sample(*arrays, names, variables, block, order))


def _placed(
    tree: "xarray.DataTree",
) -> tuple["xarray.DataArray", "xarray.DataArray", list[str] | None, list[int] | None]:
    """Draws and scores (chain, draw, dim), names, and which column of the scores is whose."""
    stats = tree[STATS].dataset
    draws, scores = (stats[one].transpose("chain", "draw", ...) for one in (DRAWS, SCORES))
    names, order = _labels(draws) or _kept_elsewhere(tree, draws.shape[-1]), _labels(scores)
    if names and order and sorted(names) == sorted(order):  # labels say which score is whose
        place = [order.index(name) for name in names]
        return draws, scores, names, None if place == sorted(place) else place
    return draws, scores, names, None


def _labels(array: "xarray.DataArray") -> list[str] | None:
    column = array.dims[-1]
    return [str(name) for name in array.coords[column].values] if column in array.coords else None


def _kept_elsewhere(tree: "xarray.DataTree", dim: int) -> list[str] | None:
    """In a zarr store of nutpie the names of columns are with the posterior, though the columns are not."""
    groups = (tree[group] for group in GROUPS if group in tree.children)
    for names in (group.coords[COLUMN].values for group in groups if COLUMN in group.coords):
        if len(names) == dim:
            return [str(name) for name in names]
    return None
