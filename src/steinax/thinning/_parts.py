import numpy as np

from ..data import Sample, Variables


def some_draws(sample: Sample, places: np.ndarray) -> Sample:
    """The draws in these places of `sample.x`, with all that belongs to them, as one chain."""
    chain, draw = np.divmod(places, sample.length)
    return Sample(
        sample.draws[chain, draw],
        sample.scores[chain, draw],
        sample.names,
        sample.dtype,
        None if sample.diverging is None else sample.diverging[chain, draw],
        None if sample.variables is None else _some(sample.variables, chain, draw),
        log_density=None if sample.log_density is None else sample.log_density[chain, draw],
    )


def _some(variables: Variables, chain: np.ndarray, draw: np.ndarray) -> Variables:
    """The same of a model's variables, which are not read until they are asked for."""
    import xarray

    at = {
        "chain": xarray.DataArray(chain, dims="draw"),
        "draw": xarray.DataArray(draw, dims="draw"),
    }
    groups = {
        path: node.dataset.drop_vars(["chain", "draw"], errors="ignore")
        .isel(at)
        .expand_dims("chain")
        for path, node in variables.tree.subtree_with_keys
        if {"chain", "draw"} <= set(node.dataset.dims)
    }
    return Variables(xarray.DataTree.from_dict(groups))
