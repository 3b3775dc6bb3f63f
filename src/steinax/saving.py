"""Store samples, with their scores, weights and estimates, in DataTrees and files."""

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._require import require
from .adapters import COLUMN, DRAWS, LOG_DENSITY, ORDER, SCORES, STATS, TRAINING, VERIFIED
from .data import AXES, Sample, as_dataset, refuse_weights
from .estimation import Estimate, WeightedDraws

if TYPE_CHECKING:
    import xarray

GROUP = "steinax"  # the group of a stored estimate
STORE = ("zarr.json", ".zgroup", ".zmetadata")  # a zarr store contains one of these
CHUNK = 16e6  # bytes: smaller chunks are slow to read


def to_arviz(
    sample: Sample, *, estimate: Estimate | None = None, weights: WeightedDraws | None = None
) -> "xarray.DataTree":
    """Convert a sample to a DataTree, with draws and scores where nutpie puts them, for `from_arviz`.

    The sample's variables and all other groups of their tree are kept. Draws and scores go to
    `sample_stats["unconstrained_draw"]` and `sample_stats["gradient"]`, weights to
    `sample_stats["weights"]`, training points to the group `training`, and an estimate to the group
    `steinax`.

    Args:
        sample: the draws and scores.
        estimate: stored with them; `Estimate.from_dataset(tree["steinax"].dataset)` gives it back.
        weights: of the draws, from `weigh`.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> sample = sx.Sample(x, -x, ["mu", "nu"])
    >>> tree = sx.to_arviz(sample, estimate=sx.estimate(["mu", "nu"], sample, sx.Polynomial(1)))
    >>> sorted(tree.children)
    ['posterior', 'sample_stats', 'steinax']
    """
    import xarray

    refuse_weights(sample, "a file of to_arviz or save")
    if sample.variables is None:
        tree = xarray.DataTree.from_dict({"posterior": as_dataset(sample)})
    else:
        tree = sample.variables.tree.copy()
    added: dict[str, Any] = {
        DRAWS: ((*AXES, COLUMN), sample.draws),
        SCORES: ((*AXES, COLUMN), sample.scores),
    }
    if sample.diverging is not None:
        added["diverging"] = (AXES, sample.diverging)
    if sample.log_density is not None:
        added[LOG_DENSITY[0]] = (AXES, sample.log_density)
    if weights is not None:
        added["weights"] = (AXES, weights.weights)
    stats_group = (
        tree[STATS].dataset.drop_vars(added, errors="ignore") if STATS in tree else xarray.Dataset()
    )
    stats_group = stats_group.drop_dims(COLUMN, errors="ignore")
    if not stats_group.sizes:
        coords = tree["posterior"].coords
        stats_group = stats_group.assign_coords(
            {axis: coords[axis] for axis in AXES if axis in coords}
        )
    stats = stats_group.assign(added).assign_coords({COLUMN: list(sample.names)})
    tree[STATS] = xarray.DataTree(stats.assign_attrs({VERIFIED: int(sample.verified)}))
    for name, parts in zip(TRAINING, (sample.training, sample.tried), strict=True):
        for number, part in enumerate(parts):
            tree[f"{name}/{number}"] = to_arviz(part)
    if estimate is not None:
        tree[GROUP] = xarray.DataTree(estimate.to_dataset())
    return tree


def save(
    path: str | os.PathLike[str],
    sample: Sample,
    *,
    estimate: Estimate | None = None,
    weights: WeightedDraws | None = None,
    overwrite: bool = False,
) -> None:
    """Write draws, scores, variables and training points to one file, which `from_arviz(path)` reads.

    Args:
        path: of a netCDF file, or of a zarr store if it ends in `.zarr`.
        sample: the draws and scores.
        estimate: stored with them.
        weights: of the draws, from `weigh`.
        overwrite: whether to replace an existing file; otherwise an existing file is an error.

    >>> import numpy as np, steinax as sx, tempfile
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sx.save(f"{folder}/draws.zarr", sx.Sample(x, -x))
    ...     print(sx.from_arviz(f"{folder}/draws.zarr"))
    Sample(4 chains x 250 draws, 2 dimensions: x)
    """
    if isinstance(path, Sample):
        raise TypeError("the path comes first, and then the sample: save(path, sample).")
    if not isinstance(sample, Sample):
        hint = ": it has a method of its own, .save(path)" if hasattr(sample, "save") else ""
        raise TypeError(
            f"save writes a Sample, and this is a {type(sample).__name__}{hint or ': give a Sample'}."
        )
    path = Path(path)
    if path.suffix not in (".nc", ".netcdf", ".h5", ".hdf5", ".zarr"):
        raise ValueError(
            f"{path.name} is of no known kind: let it end in .nc for netCDF or in .zarr for a zarr store."
        )
    _check_free(path, overwrite)
    write = _write_zarr if path.suffix == ".zarr" else _write_netcdf
    tree = to_arviz(sample, estimate=estimate, weights=weights)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".steinax-") as folder:
        temporary = Path(
            folder, path.name
        )  # moved when complete: the sample may be read from `path`
        write(tree, temporary)
        if path.is_dir():
            shutil.rmtree(path)
        temporary.replace(path)


def _check_free(path: Path, overwrite: bool) -> None:
    """Refuse to replace a file unless `overwrite`, and always refuse a folder that is not a zarr store."""
    if not path.exists():
        return
    if not overwrite:
        raise FileExistsError(
            f"{path} exists: give another name, or save(..., overwrite=True) to replace it."
        )
    if path.is_dir() != (path.suffix == ".zarr") or (
        path.is_dir() and any(path.iterdir()) and not any((path / name).exists() for name in STORE)
    ):
        raise FileExistsError(f"{path} exists and is something else: give another name.")


def _write_netcdf(tree: "xarray.DataTree", path: Path) -> None:
    require("h5py", extra="files")
    require("h5netcdf", extra="files")
    tree.to_netcdf(path, engine="h5netcdf")


def _write_zarr(tree: "xarray.DataTree", path: Path) -> None:
    require("zarr", extra="files")
    _, length, dim = tree[STATS][DRAWS].shape
    rows = max(1, min(length, int(CHUNK / (8 * dim))))
    chunks = {"chunks": (1, rows, dim), "compressors": None}  # draws do not compress
    for node in tree.subtree:
        node.attrs[ORDER] = [str(name) for name in node.data_vars]
    encoding = {f"/{STATS}": {DRAWS: chunks, SCORES: chunks}}
    tree.to_zarr(path, mode="w", encoding=encoding, consolidated=False)


__all__ = ["save", "to_arviz"]
