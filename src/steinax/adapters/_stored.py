"""Read samples and streams from netCDF files, zarr stores and ArviZ's DataTrees."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from .._require import require, warn
from ..auditing import audit as audit_scores
from ..data import AXES, Sample, Stream, Variables, as_names, in_chains, lazy_sample
from ._training import NoDrawsError, as_sample

if TYPE_CHECKING:
    import xarray


STATS, DRAWS, SCORES = "sample_stats", "unconstrained_draw", "gradient"
COLUMN = "unconstrained_parameter"
GROUPS = ("posterior", "unconstrained_posterior")
LOG_DENSITY = ("lp", "logp")  # ArviZ's name, which PyMC and Stan have, and nutpie's
VERIFIED = "scores_verified"  # an attribute of the group of draws and scores
ORDER = "order_of_variables"  # an attribute of the groups of a zarr store
TRAINING = (
    "training",
    "tried",
)  # groups of training points, each a group 0, 1, ... like the whole tree
WARMUP = "warmup_"  # before the name of a group: ArviZ's name for the same group of the warm-up


def open_tree(source: Any) -> "xarray.DataTree":
    """Open a netCDF file or zarr store lazily as a DataTree; return a DataTree unchanged."""
    import xarray

    if isinstance(source, xarray.DataTree):
        _check_axes(source)
        return source
    source = _unwrapped(source)
    if not isinstance(source, (str, os.PathLike)):
        if hasattr(source, "list_dir") or type(source).__module__.startswith("zarr"):
            return _open(source, "zarr")  # a store that is not a path
        hint = (
            "sample with return_inferencedata=True, the default of PyMC"
            if type(source).__name__ == "MultiTrace"
            else "give the result of the sampler, or the netCDF file or zarr store it was saved to"
        )
        raise TypeError(f"a {type(source).__name__} is neither a DataTree nor a path: {hint}.")
    path = Path(source)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}: check the path.")
    if path.suffix == ".csv" or (path.is_dir() and any(path.glob("*.csv"))):
        raise ValueError(f"{path} holds CSV files: read those of CmdStan with from_cmdstan(path).")
    if path.is_dir() or path.suffix == ".zip":
        return _open(path, "zarr")
    require("h5py", extra="files")
    return _open(path, "h5netcdf")


def _unwrapped(store: Any) -> Any:
    """Return the path of an obstore `LocalStore`, which nutpie uses; anything else unchanged."""
    local = type(store).__name__ == "LocalStore" and hasattr(store, "prefix")
    return store.prefix if local else store


def _check_axes(tree: "xarray.DataTree") -> None:
    """Refuse draws without the axes chain and draw, such as those after `isel(chain=0)`."""
    for name, node in {tree.name: tree, **tree.children}.items():
        group = node.dataset
        if name == STATS and "draw" not in group.dims and not has_scores(tree):
            continue  # of pm.sample_smc: nothing of each draw
        if name in (*GROUPS, STATS) and group.data_vars and not set(AXES) <= set(group.dims):
            in_chains(group, f"the group {name}")


def _open(source: Any, engine: Any) -> "xarray.DataTree":
    import xarray

    require(engine, extra="files")
    if engine == "zarr":
        return _in_order(xarray.open_datatree(source, engine=engine, consolidated=False))
    try:
        return xarray.open_datatree(source, engine=engine)
    except OSError as error:
        raise OSError(f"{source} cannot be read as netCDF: {error}") from error


def _in_order(tree: "xarray.DataTree") -> "xarray.DataTree":
    """Restore the order in which variables were saved: a zarr store lists them in any order."""
    import xarray

    def arranged(group: "xarray.Dataset") -> "xarray.Dataset":
        attributes = dict(group.attrs)
        order = attributes.pop(ORDER, sorted(map(str, group.data_vars)))
        variables = {name: group[name] for name in order}
        return xarray.Dataset(variables, group.coords, attributes)

    return tree.map_over_datasets(arranged)


def has_scores(tree: "xarray.DataTree") -> bool:
    """Tell whether a tree holds unconstrained draws and scores."""
    return STATS in tree.children and {DRAWS, SCORES} <= set(tree[STATS].data_vars)


def warmup_tree(tree: "xarray.DataTree", warmup: bool = True) -> "xarray.DataTree":
    """Take the warm-up groups of a tree, under the names of the groups of draws; none if not `warmup`."""
    import xarray

    groups = {
        name.removeprefix(WARMUP): node.dataset
        for name, node in tree.children.items()
        if warmup and name.startswith(WARMUP) and set(AXES) <= set(node.dataset.dims)
    }
    return xarray.DataTree.from_dict(groups)


def stored_parts(tree: "xarray.DataTree") -> dict[str, Any]:
    """Read the arguments of `Sample` from a tree that `has_scores`; its variables are read lazily.

    They are cut to the draws that every chain has. In a run that is still going on or was stopped, a
    chain that is behind holds NaN up to the length of the others.
    """
    draws, scores, names, order = _aligned(tree)
    scores = scores if order is None else scores[..., order]
    parts: dict[str, Any] = {
        "draws": draws.values,
        "scores": scores.values,
        "diverging": stored_divergences(tree),
        "log_density": stored_log_density(tree[STATS].dataset),
    }
    variables = Variables(_of_draws(tree)) if "posterior" in tree.children else None
    length, stored = _length(parts["draws"], parts["scores"]), draws.shape[1]
    if length < stored:
        parts = {
            name: array if array is None else array[:, :length] for name, array in parts.items()
        }
        variables = None if variables is None else variables.isel(draw=slice(0, length))
    return {
        **parts,
        "names": as_names(names, draws.shape[-1]),
        "variables": variables,
        "verified": _is_verified(tree),
    }


def _length(draws: np.ndarray, scores: np.ndarray) -> int:
    """Count the draws before the first that is missing in any chain: all its values are NaN."""
    missing = np.isnan(draws).all(axis=-1) & np.isnan(scores).all(axis=-1)
    length = draws.shape[1]
    lengths = np.where(missing, np.arange(length), length).min(axis=1, initial=length)
    if not lengths.min():
        behind = ", ".join(str(chain) for chain in np.flatnonzero(lengths == 0))
        raise NoDrawsError(
            f"chain {behind} of {len(lengths)} has no draws yet: wait until every chain is past its warm-up. "
            "A sampler with fewer cores than chains runs some chains after the others: start as many cores "
            "as chains, such as nutpie.sample(..., chains=4, cores=4)."
        )
    shortest = int(lengths.min())
    if not missing[lengths == shortest, -1].any() and shortest < length:
        warn(
            f"draw {shortest} of a chain is missing, and later ones are there: only the draws before it are "
            "used. If the run has ended, find out why the sampler stored no values there.",
        )
    return shortest


def stored_warmup(
    tree: "xarray.DataTree", names: Sequence[str], warmup: bool = True
) -> dict[str, Any] | None:
    """Read the arguments of `Sample` for the warm-up; None if it does not fit the draws, or unless `warmup`.

    Args:
        tree: that of the draws.
        names: of the columns of the draws, in that tree.
        warmup: whether to read it.
    """
    warm = warmup_tree(tree, warmup)
    if not has_scores(warm):
        return None
    try:
        parts = stored_parts(warm)
    except NoDrawsError:
        return None
    return parts if parts["names"] == tuple(names) else None


def _stored_training(tree: "xarray.DataTree") -> list[list[Sample]]:
    """Read the training points that `save` stored, and those to be tried."""
    return [
        [Sample(**stored_parts(part)) for part in tree[name].children.values()]
        if name in tree.children
        else []
        for name in TRAINING
    ]


def _of_draws(tree: "xarray.DataTree") -> "xarray.DataTree":
    """Leave out the groups of training points."""
    present = [name for name in TRAINING if name in tree.children]
    return tree.drop_nodes(present) if present else tree


def _is_verified(tree: "xarray.DataTree") -> bool:
    """Tell whether the scores are known to be right: `save` recorded it, or nutpie computed them."""
    recorded = tree[STATS].attrs.get(VERIFIED)
    if recorded is not None:
        return bool(recorded)
    return any(node.attrs.get("inference_library") == "nutpie" for node in tree.subtree)


def stored_divergences(tree: "xarray.DataTree") -> np.ndarray | None:
    """Read which draws ended in a divergence, (chain, draw), if the sampler stored it."""
    if STATS not in tree.children or "diverging" not in tree[STATS].dataset:
        return None
    return np.asarray(tree[STATS].dataset["diverging"].transpose("chain", "draw", ...).values)


def stored_log_density(stats: "xarray.Dataset") -> np.ndarray | None:
    """Read the log density of each draw, (chain, draw), if the sampler stored it."""
    for name in LOG_DENSITY:
        if name in stats and set(stats[name].dims) == {"chain", "draw"}:
            return np.asarray(stats[name].transpose("chain", "draw").values)
    return None


def stored_stream(
    tree: "xarray.DataTree", draws: Any = None, scores: Any = None, block: int | None = None
) -> Stream:
    """Create the stream of a tree that `has_scores`, without reading its draws.

    Args:
        tree: with names and variables.
        draws: the array of draws, if there is a faster way to read it than through the tree.
        scores: the array of scores, given together with `draws`.
        block: how many draws to read at once.
    """
    tree_draws, tree_scores, names, order = _aligned(tree)
    variables = _of_draws(tree) if "posterior" in tree.children else None
    arrays = (tree_draws, tree_scores) if draws is None else (draws, scores)
    source = lazy_sample(*arrays, names, variables, block, order)
    return Stream.of(replace(source, verified=_is_verified(tree)))


def _aligned(
    tree: "xarray.DataTree",
) -> tuple["xarray.DataArray", "xarray.DataArray", list[str] | None, list[int] | None]:
    """Find draws and scores (chain, draw, dim), names, and the order of columns that aligns the scores."""
    stats = tree[STATS].dataset
    draws, scores = (stats[name].transpose("chain", "draw", ...) for name in (DRAWS, SCORES))
    names, score_names = _labels(draws) or _kept_elsewhere(tree, draws.shape[-1]), _labels(scores)
    if names and score_names and sorted(names) == sorted(score_names):  # align them by label
        order = [score_names.index(name) for name in names]
        return draws, scores, names, None if order == sorted(order) else order
    return draws, scores, names, None


def _labels(array: "xarray.DataArray") -> list[str] | None:
    column = array.dims[-1]
    return [str(name) for name in array.coords[column].values] if column in array.coords else None


def _kept_elsewhere(tree: "xarray.DataTree", dim: int) -> list[str] | None:
    """Find the names of columns in the other groups, where a zarr store of nutpie has them."""
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
def from_arviz(
    data: Any, *, audit: bool = True, stream: Literal[False] = False, warmup: bool = True
) -> Sample: ...
@overload
def from_arviz(
    data: Any, *, audit: bool = True, stream: Literal[True], warmup: bool = True
) -> Stream: ...
def from_arviz(
    data: Any, *, audit: bool = True, stream: bool = False, warmup: bool = True
) -> Sample | Stream:
    r"""Create a sample from a DataTree or a file that holds scores, from any source.

    Draws and scores are `sample_stats["unconstrained_draw"]` and `sample_stats["gradient"]`, each (chain,
    draw, dim) with a coordinate that names the columns, as nutpie, `to_arviz` and `save` write them. All
    other variables are read when they are requested by name. Because the origin of the tree is unknown, the
    scores are audited: a wrong sign, columns out of order or constrained draws are refused, with an error
    that says how to fix it.

    Args:
        data: a DataTree, or the path of a netCDF file or of a zarr store.
        audit: whether to audit the scores; `estimate` does so again.
        stream: whether to leave draws and scores on disk and return a `Stream`, for files and trees of
            dask arrays that are larger than memory. Such a stream is audited by `estimate`. For zarr stores
            use `from_zarr`, which also detects missing chunks.
        warmup: whether to use training points: those that `save` or `to_arviz` stored, or else the warm-up
            draws, if the groups `warmup_sample_stats` and `warmup_posterior` hold them with scores. Control
            variates are fitted to them, and they are not averaged. A stream has none. To thin the draws, thin
            the sample, `sample[:, ::5]`: a thinned tree has fewer training points too.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> tree = sx.to_arviz(sx.Sample(x, -x, ["mu", "nu"]))
    >>> sx.from_arviz(tree)
    Sample(4 chains x 250 draws, 2 dimensions: mu, nu)
    """
    tree = open_tree(data)
    if not has_scores(tree):
        present = [
            name for name in (DRAWS, SCORES) if STATS in tree.children and name in tree[STATS]
        ]
        held = f"{present[0]!r} alone" if present else f"neither {DRAWS!r} nor {SCORES!r}"
        raise ValueError(f"{STATS} holds {held}, and both are needed. {HOW}")
    if stream:
        return stored_stream(tree)
    parts = stored_parts(tree)
    training, tried = _stored_training(tree) if warmup else ([], [])
    if training or tried:
        sample = Sample(**parts, training=training, tried=tried)
    else:
        sample = as_sample(parts, stored_warmup(tree, parts["names"], warmup))
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
    r"""Create a stream of the draws and scores in a zarr store, which are read when they are used.

    The store is one that nutpie or `save` wrote, with names and variables, or holds two plain arrays. Chunks
    that are missing, truncated or not finite raise a `CorruptChunkError` that names them; zarr itself would
    give zeros for missing chunks.

    Args:
        store: a path, a store of zarr or of nutpie, or a group.
        draws: the name of the array of unconstrained draws $x_i$, (chain, draw, dim); by default
            `sample_stats/unconstrained_draw`, or `draws` if there is no such array.
        scores: the name of the array of scores $\nabla \log \pi(x_i)$; by default `sample_stats/gradient`, or
            `scores`.
        names: of the dimensions, for two plain arrays.
        block: how many draws a reader holds at once; by default whole chunks of about 16 MB.

    The draws of nutpie are in chunks of 16, which are about fifteen times as slow to read as uncompressed
    chunks of 16 MB; a warning says how to rewrite them.

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
        raise ValueError("only one of draws and scores is named: name both, or neither.")
    is_sample = draws is None and f"{STATS}/{DRAWS}" in group and f"{STATS}/{SCORES}" in group
    if is_sample:
        where = store if not isinstance(store, zarr.Group) else group.store
        stored_draws, stored_scores = group[f"{STATS}/{DRAWS}"], group[f"{STATS}/{SCORES}"]
        return stored_stream(open_tree(where), stored_draws, stored_scores, block)
    draws, scores = draws or "draws", scores or "scores"
    missing = [name for name in (draws, scores) if name not in group]
    if missing:
        raise ValueError(
            f"the store has no array {missing[0]!r}: name those of draws and scores, by "
            f'from_zarr(store, draws="...", scores="..."). It holds {", ".join(sorted(group)) or "nothing"}.'
        )
    return Stream.from_arrays(group[draws], group[scores], names, block=block)
