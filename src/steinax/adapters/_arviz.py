from typing import Any, Literal, overload

from ..auditing import audit as audit_scores
from ..data import Sample, Stream
from ._stored import DRAWS, SCORES, STATS, has_scores, open_tree, stored, stored_stream

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
