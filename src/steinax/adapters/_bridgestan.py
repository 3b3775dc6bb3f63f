"""Convert draws of a Stan model to a sample, with scores from BridgeStan."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .._show import some_of
from ..data import Sample, as_reals, in_chains
from ._stan_names import name_unconstrained, parse_column, stan_dataset
from ._stored import stored_divergences, warmup_tree
from ._training import as_sample

if TYPE_CHECKING:
    from xarray import Dataset


def from_bridgestan(
    model: Any, draws: Any, *, unconstrained: bool = False, warmup: Any = True
) -> Sample:
    r"""Create a sample from draws of a Stan model by any sampler, with scores computed by BridgeStan.

    For each draw $\theta$, `model.param_unconstrain` gives $u$, and `model.log_density_gradient` the score
    $\nabla_u \log \pi(u)$, with the term of the Jacobian: about 60 microseconds a draw for a small model.

    This uses the documented Python interface of BridgeStan 2.9 and is tested on an object with that
    interface and Stan's own density, compiled by PyStan. It was not tested on models compiled by
    BridgeStan.

    Args:
        model: a `bridgestan.StanModel`, with its data.
        draws: the model's parameters: a dict or a Dataset of variables, each (chain, draw, ...); a
            DataTree with a group `posterior`; or an array (chain, draw, parameter), or (draw, parameter)
            for one chain, with columns as in `model.param_names()`. There may be more variables than the
            parameters; these can be requested by name as well.
        unconstrained: whether `draws` is an array of unconstrained parameters, with columns as in
            `model.param_unc_names()`.
        warmup: the warm-up draws, in one of the forms of `draws`, to use as training points: control
            variates are fitted to them, and they are not averaged. True, the default, stands for the group
            `warmup_posterior` of a DataTree, if there is one; False leaves it out.

    Example::

        model = bridgestan.StanModel("model.stan", data="data.json")
        sample = sx.from_bridgestan(model, idata)
        sx.estimate(["mu", "tau"], sample)
    """
    parts = _parts(model, draws, unconstrained)
    names = name_unconstrained(model.param_unc_names(), parts["draws"], parts["variables"])
    asked = not isinstance(warmup, bool)
    given = warmup if asked else _stored_warmup(draws, warmup)
    before = None if given is None else _parts(model, given, unconstrained, refuse=False)
    return as_sample({**parts, "names": names}, before, asked=asked)


def _parts(model: Any, draws: Any, unconstrained: bool, refuse: bool = True) -> dict[str, Any]:
    """Compute the arguments of `Sample`; a draw that Stan refuses is an error if `refuse`, and else NaN."""
    evaluate = partial(_at_each_draw, refuse=refuse)
    given = None if unconstrained else _variables(draws)
    free_columns = model.param_unc_names()
    columns = free_columns if unconstrained else model.param_names()
    values = _as_chains(draws, columns) if given is None else _gather(given, columns)
    dim = len(free_columns)
    free = values if unconstrained else evaluate(model.param_unconstrain, values, dim)
    density_and_score = evaluate(
        lambda u: np.append(*model.log_density_gradient(u, propto=True, jacobian=True)),
        free,
        1 + dim,
    )
    if given is None:  # generated quantities would need random numbers
        names = model.param_names(include_tp=True)
        constrain = partial(model.param_constrain, include_tp=True)
        given = stan_dataset(names, evaluate(constrain, free, len(names)))
    return {
        "draws": free,
        "scores": density_and_score[..., 1:],
        "diverging": _diverging(draws),
        "variables": given,
        "log_density": density_and_score[..., 0],
        "verified": True,
    }


def _stored_warmup(draws: Any, warmup: bool) -> Any:
    """Take the warm-up of a DataTree; None if there is none."""
    import xarray

    warm = warmup_tree(draws, warmup) if isinstance(draws, xarray.DataTree) else {}
    return warm if "posterior" in warm else None


def _variables(draws: Any) -> "Dataset | None":
    """Convert draws given by name to a Dataset; None for an array."""
    import xarray

    if isinstance(draws, xarray.DataTree):
        if "posterior" not in draws.children:
            raise ValueError(
                "the DataTree has no group `posterior`: give one that has, or a Dataset."
            )
        draws = draws["posterior"].to_dataset()
    if isinstance(draws, xarray.Dataset):
        return in_chains(draws, "the Dataset of draws")
    if not isinstance(draws, Mapping):
        return None
    arrays = {name: as_reals(values, name) for name, values in draws.items()}
    axes = {name: [f"{name}_dim_{i}" for i in range(a.ndim - 2)] for name, a in arrays.items()}
    return xarray.Dataset(
        {name: (("chain", "draw", *axes[name]), array) for name, array in arrays.items()}
    )


def _gather(posterior: "Dataset", columns: list[str]) -> np.ndarray:
    """Stack the parameters as columns in Stan's order, (chain, draw, column)."""
    elements = [parse_column(column) for column in columns]
    missing = {variable for variable, _ in elements} - set(map(str, posterior.data_vars))
    if missing:
        raise ValueError(
            f"the draws lack {', '.join(sorted(missing))}, which the model has as parameters: give all of "
            "them, or an array of unconstrained draws with unconstrained=True."
        )
    arrays = {variable: posterior[variable].values for variable, _ in elements}
    try:
        return np.stack([arrays[variable][:, :, *index] for variable, index in elements], axis=-1)
    except (IndexError, ValueError):
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise ValueError(
            f"the draws do not have the shapes of the model's parameters: {shapes}. Give each as (chain, "
            "draw, ...), with the shape declared in the Stan program."
        ) from None


def _as_chains(draws: Any, columns: list[str]) -> np.ndarray:
    array = as_reals(draws, "draws").astype(float)
    array = array[None] if array.ndim == 2 else array
    if array.ndim != 3 or array.shape[-1] != len(columns):
        raise ValueError(
            f"draws have shape {array.shape}, and the last axis has to be {len(columns)} columns: "
            f"{some_of(columns, 5)}. Give (chain, draw, column); "
            "unconstrained=True is for draws on the unconstrained space."
        )
    return array


def _at_each_draw(function: Any, values: np.ndarray, width: int, refuse: bool) -> np.ndarray:
    """Evaluate a function at each draw, (chain, draw, width), one by one, as BridgeStan takes them."""
    results = np.full((*values.shape[:2], width), np.nan)
    for index in np.ndindex(*values.shape[:2]):
        if not refuse and not np.isfinite(values[index]).all():
            continue
        try:
            results[index] = function(np.ascontiguousarray(values[index]))
        except RuntimeError as error:
            if not refuse:
                continue
            raise ValueError(
                f"Stan refuses draw {index[1]} of chain {index[0]}: {error}. Draws that were rounded may "
                "leave a constraint, as a simplex that does not sum to 1 does: write all digits "
                "(sig_figs=16 in CmdStan), and check that the draws were sampled from this model with "
                "these data."
            ) from error
    return results


def _diverging(draws: Any) -> np.ndarray | None:
    """Read the divergences of a DataTree; None for other draws."""
    import xarray

    return stored_divergences(draws) if isinstance(draws, xarray.DataTree) else None
