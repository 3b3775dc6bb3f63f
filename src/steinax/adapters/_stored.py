"""From files and stores: netCDF, zarr, and ArviZ's trees."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from .._require import require
from ..auditing import audit as audit_scores
from ..data import Sample, Stream
from ..data._stream import lazy_sample
from ..data._variables import AXES, in_chains

if TYPE_CHECKING:
    import xarray


STATS, DRAWS, SCORES = "sample_stats", "unconstrained_draw", "gradient"
COLUMN = "unconstrained_parameter"
GROUPS = ("posterior", "unconstrained_posterior")
LOG_DENSITY = ("lp", "logp")  # ArviZ's name, which PyMC and Stan have, and nutpie's
VERIFIED = "scores_verified"  # an attribute of the group of draws and scores
ORDER = "order_of_variables"  # an attribute of the groups of a zarr store


def open_tree(source: Any) -> "xarray.DataTree":
    """A DataTree: the one given, or that of a netCDF file or a zarr store, of which nothing is read yet."""
    import xarray

    if isinstance(source, xarray.DataTree):
        _check_axes(source)
        return source
    source = _unwrapped(source)
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


def _unwrapped(store: Any) -> Any:
    """The path of a store of nutpie, which is obstore's; anything else as it is."""
    local = type(store).__name__ == "LocalStore" and hasattr(store, "prefix")
    return store.prefix if local else store


def _check_axes(tree: "xarray.DataTree") -> None:
    """Refuse draws of which `isel(chain=0)` has dropped an axis."""
    for name, node in {tree.name: tree, **tree.children}.items():
        group = node.dataset
        if name in (*GROUPS, STATS) and group.data_vars and not set(AXES) <= set(group.dims):
            in_chains(group, f"the group {name}")


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
    variables = tree if "posterior" in tree.children else None
    return Sample(
        draws.values,
        scores.values,
        names,
        diverging=stored_divergences(tree),
        variables=variables,
        log_density=stored_log_density(stats),
        verified=_is_verified(tree),
    )


def _is_verified(tree: "xarray.DataTree") -> bool:
    """Whether the scores are known to be right: `save` wrote so, or nutpie computed them."""
    kept = tree[STATS].attrs.get(VERIFIED)
    if kept is not None:
        return bool(kept)
    return any(node.attrs.get("inference_library") == "nutpie" for node in tree.subtree)


def stored_divergences(tree: "xarray.DataTree") -> np.ndarray | None:
    """Which draws ended in a divergence, (chain, draw), where the sampler tells."""
    if STATS not in tree.children or "diverging" not in tree[STATS].dataset:
        return None
    return np.asarray(tree[STATS].dataset["diverging"].transpose("chain", "draw", ...).values)


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
    source = lazy_sample(*arrays, names, variables, block, order)
    return Stream.of(replace(source, verified=_is_verified(tree)))


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


HOW = """ArviZ has no agreed place for scores, and most samplers do not keep them. What to do:
  nutpie    sample(..., store_gradient=True, store_unconstrained=True), then from_nutpie
  PyMC      from_pymc(model, idata), which computes them from the model
  NumPyro   mcmc.run(..., extra_fields=("z_grad",)), then from_numpyro(mcmc)
  CmdStan   sample(..., save_latent_dynamics=True, sig_figs=16), then from_cmdstan(fit)
  PyStan    from_pystan(fit)
  any       from_logdensity(log_density, draws)
and save(path, sample) writes a file with scores."""


@overload
def from_arviz(data: Any, *, audit: bool = True, stream: Literal[False] = False) -> Sample: ...
@overload
def from_arviz(data: Any, *, audit: bool = True, stream: Literal[True]) -> Stream: ...
def from_arviz(data: Any, *, audit: bool = True, stream: bool = False) -> Sample | Stream:
    r"""A sample from a DataTree or a file that holds scores, whoever made it.

    Read are `sample_stats["unconstrained_draw"]` and `sample_stats["gradient"]`, each (chain, draw, dim) with
    a coordinate that names the columns: where nutpie puts them, and where `to_arviz` and `save` do. All
    other variables are read when they are asked for by name. Because nothing is known of who made the tree,
    the scores are audited: a wrong sign, columns out of order or constrained draws are refused, and the
    repair is named.

    Args:
        data: a DataTree, or the path of a netCDF file or of a zarr store.
        audit: whether to audit the scores; `estimate` does so again.
        stream: whether to leave draws and scores where they are and give a `Stream`, for files and trees of
            dask arrays that are larger than memory. Such a stream is audited by `estimate`. For zarr stores
            there is `from_zarr`, which also sees chunks that are missing.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> tree = sx.to_arviz(sx.Sample(x, -x, ["mu", "nu"]))
    >>> sx.from_arviz(tree)
    Sample(4 chains x 250 draws, 2 dimensions: mu, nu)
    """
    tree = open_tree(data)
    if not has_scores(tree):
        found = [one for one in (DRAWS, SCORES) if STATS in tree.children and one in tree[STATS]]
        held = f"{found[0]!r} alone" if found else f"neither {DRAWS!r} nor {SCORES!r}"
        raise ValueError(f"{STATS} holds {held}, and both are needed. {HOW}")
    if stream:
        return stored_stream(tree)
    sample = stored(tree)
    if audit:
        audit_scores(sample).raise_if_failed()
    return sample


def from_zarr(
    store: Any,
    draws: str | None = None,
    scores: str | None = None,
    *,
    names: Sequence[str] | None = None,
    block: int | None = None,
) -> Stream:
    r"""A stream of the draws and scores in a zarr store, of which nothing is read before it is used.

    Read are stores that nutpie or `save` wrote, with their names and variables, or two plain arrays. Chunks
    that are missing, cut short or hold what is not finite raise a `CorruptChunkError` that names them; zarr
    itself would give zeros for those that are missing.

    Args:
        store: a path, a store of zarr or of nutpie, or a group.
        draws: the name of the array of unconstrained draws $x_i$, (chain, draw, dim); by default
            `sample_stats/unconstrained_draw`, or `draws` if there is no such array.
        scores: that of $\nabla \log \pi(x_i)$; by default `sample_stats/gradient`, or `scores`.
        names: of the dimensions, for two plain arrays.
        block: how many draws a reader holds at once; by default whole chunks of about 16 MB.

    The draws of nutpie are in chunks of 16, which read at about a fifteenth of the speed of chunks of 16 MB
    that are not compressed; there is a warning that says how to rewrite them.

    >>> import numpy as np, steinax as sx, tempfile
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sx.save(f"{folder}/draws.zarr", sx.Sample(x, -x, ["mu", "nu"]))
    ...     stream = sx.from_zarr(f"{folder}/draws.zarr")
    ...     print(stream, abs(sx.estimate("mu", stream, sx.Polynomial(1)).value[0]) < 1e-9)
    Stream(4 chains x 250 draws, 2 dimensions: mu, nu) True
    """
    zarr = require("zarr", extra="files")
    store = _unwrapped(store)
    group = store if isinstance(store, zarr.Group) else zarr.open_group(store, mode="r")
    if (draws is None) != (scores is None):
        raise ValueError("one of draws and scores is named: name both, or neither.")
    kept = draws is None and f"{STATS}/{DRAWS}" in group and f"{STATS}/{SCORES}" in group
    if kept:
        where = store if not isinstance(store, zarr.Group) else group.store
        ours, theirs = group[f"{STATS}/{DRAWS}"], group[f"{STATS}/{SCORES}"]
        return stored_stream(open_tree(where), ours, theirs, block)
    draws, scores = draws or "draws", scores or "scores"
    missing = [one for one in (draws, scores) if one not in group]
    if missing:
        raise ValueError(
            f"the store has no array {missing[0]!r}: name those of draws and scores, by "
            f'from_zarr(store, draws="...", scores="..."). It holds {", ".join(sorted(group)) or "nothing"}.'
        )
    return Stream.from_arrays(group[draws], group[scores], names, block=block)
