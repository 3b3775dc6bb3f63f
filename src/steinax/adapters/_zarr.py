from collections.abc import Sequence
from typing import Any

from .._require import require
from ..data import Stream
from ._stored import DRAWS, SCORES, STATS, open_tree, stored_stream


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
    if type(store).__name__ == "LocalStore" and hasattr(store, "prefix"):  # nutpie's, of obstore
        store = store.prefix
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
