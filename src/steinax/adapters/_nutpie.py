"""Convert a trace of nutpie to a sample."""

from typing import TYPE_CHECKING, Any

import numpy as np

from .._require import usage
from ..data import Sample, element
from ._stan_names import parse_column
from ._stored import (
    DRAWS,
    GROUPS,
    SCORES,
    STATS,
    has_scores,
    open_tree,
    stored_parts,
    stored_warmup,
)
from ._training import NoDrawsError, as_sample

if TYPE_CHECKING:
    import xarray

HOW = """nutpie stores both on request:
  nutpie.sample(compiled, store_gradient=True, store_unconstrained=True)
or, from PyMC,
  pm.sample(
      nuts_sampler="nutpie",
      nuts={"store_gradient": True},
      idata_kwargs={"include_transformed": True},
  )
For an existing trace of a PyMC model, from_pymc(model, trace) computes them from the model."""


@usage("Give the trace alone; a PyMC model and its trace belong in from_pymc(model, trace).")
def from_nutpie(trace: Any, *, warmup: bool = True) -> Sample:
    r"""Create a sample from a trace of nutpie that stored the scores $\nabla \log \pi(x)$.

    Nothing is computed and no model is called, so neither nutpie nor PyMC needs to be installed. The names
    of columns are those of nutpie's coordinate `unconstrained_parameter`; an element is written `beta[0]`
    instead of `beta_0` (or Stan's `beta.1`) where the variables of the trace show that it is one, and Stan's
    `tau` is `tau_free__` where it holds the logarithm of tau.

    Args:
        trace: the result of `nutpie.sample(..., store_gradient=True, store_unconstrained=True)` for a
            PyMC or a Stan model; or the zarr store that it wrote, as a path or as the
            `nutpie.zarr_store.LocalStore` it was given.
        warmup: whether to use the warm-up draws, which nutpie keeps unless `save_warmup=False`, as training
            points: control variates are fitted to them, and they are not averaged.

    A store that nutpie writes has chunks of 16 draws of one chain, which read at about a fifteenth of the
    speed of larger ones. To read a long run more than once, read it here and `save` it.

    If a run is still going on, or was aborted, the draws that every chain has are used.

    Example::

        compiled = nutpie.compile_pymc_model(model)
        trace = nutpie.sample(compiled, store_gradient=True, store_unconstrained=True)
        sx.estimate("tau", sx.from_nutpie(trace))
    """
    tree = open_tree(trace)
    if not tree.children and tree.data_vars:
        raise ValueError(
            "this is one group of a trace, without the scores: give the whole trace, as nutpie returned it."
        )
    if not tree.children:
        raise NoDrawsError("the trace is empty: wait until the sampler has written something.")
    if not has_scores(tree):
        kept = set(tree[STATS].data_vars) if STATS in tree.children else set()
        missing = [
            option
            for option, name in (("store_gradient", SCORES), ("store_unconstrained", DRAWS))
            if name not in kept
        ]
        raise ValueError(f"this trace was stored without {' and '.join(missing)}. {HOW}")
    parts = stored_parts(tree)
    names = _name(parts["names"], parts["draws"], tree)
    own = {**parts, "names": names, "verified": True}
    return as_sample(own, stored_warmup(tree, parts["names"], warmup))


def nutpie_length(store: Any) -> int:
    """Read how many draws each chain of a run will have, from the zarr store it is written to."""
    return open_tree(store)[STATS].sizes["draw"]


def _name(columns: tuple[str, ...], draws: np.ndarray, tree: "xarray.DataTree") -> tuple[str, ...]:
    """Name the columns, with elements in brackets where the trace confirms them.

    A name such as `beta_0` may be that of a scalar. It is an element if the trace has a variable
    `beta` whose element 0 has exactly the values of the column.
    """
    ends = [0, draws.shape[1] - 1]
    by_spelling: dict[str, list[tuple[str, np.ndarray]]] = {}
    for name, values in _variables(tree, columns, ends).items():
        for index in np.ndindex(*values.shape[2:]):
            labelled = (element(name, index), values[..., *index])
            for spelling in _spellings(name, index):
                by_spelling.setdefault(spelling, []).append(labelled)
    constrained = tree["posterior"].data_vars if "posterior" in tree.children else {}
    names = []
    for i, column in enumerate(columns):
        column_values = draws[:, ends, i]
        same = {
            label
            for label, values in by_spelling.get(column, ())
            if np.array_equal(values, column_values)
        }
        variable, index = parse_column(column)
        if len(same) == 1:
            names.append(same.pop())
        elif not same and variable in constrained:
            names.append(element(f"{variable}_free__", index))
        else:
            names.append(column)
    return tuple(names) if len(set(names)) == len(names) else columns


def _spellings(name: str, index: tuple[int, ...]) -> set[str]:
    """List the names that nutpie gives to an element of a PyMC variable, and of a Stan variable."""
    if not index:
        return {name}
    return {
        f"{name}_{'.'.join(map(str, index))}",
        ".".join([name, *(str(i + 1) for i in index)]),
    }


def _variables(
    tree: "xarray.DataTree", columns: tuple[str, ...], draws: list[int]
) -> dict[str, np.ndarray]:
    """Read a few draws of the variables that a column may be named after."""
    groups = [tree[group].dataset for group in GROUPS if group in tree.children]
    return {
        str(name): group[name].transpose("chain", "draw", ...).isel(draw=draws).values
        for group in groups
        for name in group.data_vars
        if any(column.startswith(str(name)) for column in columns)
    }
