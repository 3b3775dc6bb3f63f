from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import ArrayLike

from ..data import Sample
from ..data._variables import AXES, in_chains


def from_arrays(
    draws: ArrayLike,
    scores: ArrayLike,
    names: Sequence[str] | None = None,
    *,
    variables: Any = None,
    diverging: ArrayLike | None = None,
    log_density: ArrayLike | None = None,
) -> Sample:
    r"""A sample from arrays, with the model's own quantities beside the unconstrained draws.

    Args:
        draws: unconstrained draws $x_i$, (chain, draw, dim), or (draw, dim) for one chain.
        scores: $\nabla \log \pi(x_i)$, of the same shape: with the Jacobian's term where a parameter
            was transformed.
        names: one per column of the draws; `x[0]`, `x[1]`, ... when not given.
        variables: quantities to be asked for by name, each (chain, draw, ...): a dict of arrays, a
            Dataset, or a DataTree with a group `posterior`.
        diverging: which draws ended in a divergence, (chain, draw).
        log_density: $\log \pi(x_i)$ up to a constant, (chain, draw), for the audit.

    >>> import numpy as np, steinax as sx
    >>> log_tau = np.random.default_rng(0).normal(size=(4, 250, 1))
    >>> sample = sx.from_arrays(
    ...     log_tau, -log_tau, ["log_tau"], variables={"tau": np.exp(log_tau[..., 0])}
    ... )
    >>> sx.estimate("tau", sample, sx.Polynomial(4)).names
    ('tau',)
    """
    if isinstance(variables, Mapping) and not hasattr(variables, "subtree"):
        variables = _labelled(variables)
    return Sample(
        draws, scores, names, diverging=diverging, variables=variables, log_density=log_density
    )


def _labelled(arrays: Mapping[str, Any]) -> Any:
    """Arrays (chain, draw, ...) as a Dataset; what is labelled already stays so."""
    import xarray
    from arviz_base import dict_to_dataset

    if isinstance(arrays, xarray.Dataset):
        return arrays
    labelled = {name: one for name, one in arrays.items() if isinstance(one, xarray.DataArray)}
    plain = {name: one for name, one in arrays.items() if name not in labelled}
    other = dict_to_dataset(plain, sample_dims=list(AXES)) if plain else xarray.Dataset()
    if not labelled:
        return other
    found = xarray.Dataset({name: in_chains(one, name) for name, one in labelled.items()})
    return found.assign(other.drop_vars(AXES, errors="ignore").variables)[list(arrays)]
