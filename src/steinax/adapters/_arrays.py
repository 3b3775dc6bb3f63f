"""Convert arrays, or draws and a log density, to a sample."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from .._numerics import in_double
from .._types import AnyArray, PyTree
from ..data import AXES, Sample, as_log_density, as_reals, in_chains
from ._pytrees import (
    axes_and_labels,
    column_names,
    dataset,
    flat_columns,
    from_columns,
    leaves,
    over_draws,
    quantities,
)
from ._training import as_sample, with_more


def from_arrays(
    draws: ArrayLike,
    scores: ArrayLike,
    names: Sequence[str] | None = None,
    *,
    variables: Any = None,
    dims: Mapping[str, Sequence[str]] | None = None,
    coords: Mapping[str, Any] | None = None,
    diverging: ArrayLike | None = None,
    log_density: ArrayLike | None = None,
) -> Sample:
    r"""Create a sample from arrays, optionally with variables of the model next to the unconstrained draws.

    Args:
        draws: unconstrained draws $x_i$, (chain, draw, dim), or (draw, dim) for one chain.
        scores: $\nabla \log \pi(x_i)$, of the same shape: with the Jacobian's term where a parameter
            was transformed.
        names: one per column of the draws; `x[0]`, `x[1]`, ... when not given.
        variables: quantities to request by name, each (chain, draw, ...): a dict of arrays, a
            Dataset, or a DataTree with a group `posterior`.
        dims: of a dict of arrays, the names of their axes after (chain, draw): `{"theta": ["school"]}`.
        coords: the labels along such an axis: `{"school": ["Choate", ...]}`.
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
        variables = _labelled(variables, dims, coords)
    return Sample(
        draws, scores, names, diverging=diverging, variables=variables, log_density=log_density
    )


def _labelled(
    arrays: Mapping[str, Any],
    dims: Mapping[str, Sequence[str]] | None = None,
    coords: Mapping[str, Any] | None = None,
) -> Any:
    """Convert arrays (chain, draw, ...) to a Dataset; labelled arrays keep their labels."""
    import xarray
    from arviz_base import dict_to_dataset

    if isinstance(arrays, xarray.Dataset):
        return arrays
    labelled = {
        name: array for name, array in arrays.items() if isinstance(array, xarray.DataArray)
    }
    plain = {name: array for name, array in arrays.items() if name not in labelled}
    flat = [name for name, array in plain.items() if np.ndim(array) < 2]
    if flat:
        raise ValueError(
            f"the variable {flat[0]!r} has shape {np.shape(plain[flat[0]])}: give each variable as (chain, "
            "draw, ...)."
        )
    labels = axes_and_labels(dims, coords, arrays)
    unlabelled = (
        dict_to_dataset(plain, sample_dims=list(AXES), **labels) if plain else xarray.Dataset()
    )
    if not labelled:
        return unlabelled
    combined = xarray.Dataset({name: in_chains(array, name) for name, array in labelled.items()})
    return combined.assign(unlabelled.drop_vars(AXES, errors="ignore").variables)[list(arrays)]


def from_logdensity(
    fn: Callable[[Any], Any],
    draws: PyTree,
    *,
    constrain: Callable[[Any], Mapping[str, Any]] | None = None,
    names: Sequence[str] | None = None,
    dims: Mapping[str, Sequence[str]] | None = None,
    coords: Mapping[str, Any] | None = None,
    more: int = 0,
    log_density: ArrayLike | None = None,
) -> Sample:
    r"""Create a sample from draws and their log density, written in jax.

    For samplers that keep no gradients (random walks, ensembles, slices), for a file of draws, and
    for draws from another language whose model can be rewritten in jax. The scores
    $\nabla \log \pi(x_i)$ are computed by `jax.grad`, for all draws at once, in float64 whatever the
    settings of jax, and in batches if they would not fit in memory.

    The density must be that of the given draws: for unconstrained `draws` it includes the logarithm of
    the Jacobian. Draws should be unconstrained, because a density with an edge violates the identity
    that control variates rely on.

    Args:
        fn: $\log \pi$ up to a constant: takes one draw, of the structure of `draws` without its axes
            (chain, draw), and returns a number.
        draws: (chain, draw, dim), or (draw, dim) for one chain; or a pytree, such as a dict, of arrays
            (chain, draw, ...). Columns are in the order of `ravel_pytree`, which sorts dict keys.
        constrain: takes one draw and returns a dict of the quantities to request by name, such as
            constrained parameters. Without it, these are the entries of a dict of draws.
        names: one per column; by default `x[0]`, ... for an array, and for a pytree the keys:
            `beta[0]`, `log_tau`. A key that `constrain` gives to other values becomes `tau_free__`.
        dims: the names of the axes of a quantity, after (chain, draw): `{"theta": ["school"]}`.
        coords: the labels along such an axis: `{"school": ["Choate", ...]}`.
        more: the number of fresh points, from a Gaussian around the draws, whose scores are computed too.
            Control variates are also fitted to them, for those integrands whose standard errors that
            lowers. It pays where the target is close to a Gaussian.
        log_density: the values that the sampler kept, (chain, draw), such as `sampler.get_log_prob().T` of
            emcee. If they differ from those of `fn` by more than a constant, the draws are of another
            density, and that is an error. Without them the audit finds large differences only, and says
            how large.

    >>> import jax.numpy as jnp, numpy as np, steinax as sx
    >>> def log_density(z):  # tau is Gamma(3, 1); z["log_tau"] is unconstrained
    ...     return 3 * z["log_tau"] - jnp.exp(z["log_tau"])
    >>> tau = np.random.default_rng(0).gamma(3.0, size=(4, 250))
    >>> sample = sx.from_logdensity(
    ...     log_density,
    ...     {"log_tau": np.log(tau)},
    ...     constrain=lambda z: {"tau": jnp.exp(z["log_tau"])},
    ... )
    >>> sample.names, np.allclose(sample.scores[..., 0], 3 - tau)
    (('log_tau',), True)
    """
    if callable(draws) and not callable(fn):
        raise TypeError("the arguments are in the wrong order: give from_logdensity(fn, draws).")
    draws = _as_tree(draws)

    def parts(tree: PyTree, refuse: bool) -> dict[str, Any]:
        position = leaves(tree, "draws")
        values, scores = density_and_score(fn, tree, refuse)
        variables = quantities(constrain, tree, position)
        return {
            "draws": flat_columns(position),
            "scores": scores,
            "names": column_names(position, variables) if names is None else names,
            "variables": dataset({"posterior": variables}, dims, coords) if variables else None,
            "log_density": values,
            "verified": True,
        }

    sample = as_sample({**parts(draws, refuse=True), "assumed": log_density is None})
    if log_density is not None:
        check_density(sample.log_density, log_density, "fn")
    return with_more(sample, more, lambda x: parts(from_columns(x, draws), refuse=False))


SAME = 1e-2  # the largest differences of equal log densities, up to rounding
ROUNDED = 1e-6  # of the values: rounding of digits in files
ROUNDED_SINGLE = 1e-4  # of the values: rounding of sums in float32


def check_density(values: AnyArray, kept: ArrayLike, name: str) -> None:
    """Raise unless log densities are those that the sampler kept, up to a constant.

    Args:
        values: computed on the draws, (chain, draw).
        kept: by the sampler, (chain, draw).
        name: of the function that computed the values.
    """
    rounded = ROUNDED_SINGLE if getattr(kept, "dtype", None) == np.float32 else ROUNDED
    kept = as_log_density(kept, np.shape(values))
    apart = np.asarray(values, np.float64) - kept
    spread = float(np.ptp(apart))
    if spread > SAME + rounded * float(np.abs(kept).max()):
        raise ValueError(
            f"`{name}` is not the log density of these draws: it differs from the values that the sampler "
            f"kept by {apart.min():.4g} to {apart.max():.4g}, and not by a constant. Look for another model "
            "or other data, a missing prior or Jacobian, or values in another order than the draws."
        )


def density_and_score(
    fn: Callable[[PyTree], Any], draws: PyTree, refuse: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Evaluate `fn` at each draw, (chain, draw), and its gradient, (chain, draw, dim).

    Columns are in the order of `ravel_pytree`.

    Args:
        fn: takes one draw and returns a number.
        draws: with leaves (chain, draw, ...).
        refuse: whether values that are not finite are an error.
    """
    try:
        _check_output(fn, draws)
        values, gradients = over_draws(jax.value_and_grad(fn), draws)
    except (jax.errors.JAXTypeError, jax.errors.JAXIndexError) as error:
        raise ValueError(
            "the log density is not made of jax operations, so it cannot be differentiated: write it "
            "with jax.numpy (jnp.log for np.log, jnp.where for if, jax.scipy.stats for scipy.stats), or "
            "compute the scores in another way and give them to steinax.from_arrays."
        ) from error
    scores = flat_columns(leaves(gradients, "scores"))
    bad = np.argwhere(~(np.isfinite(values) & np.isfinite(scores).all(axis=-1)))
    if len(bad) and refuse:
        chain, draw = bad[0]
        what = "its gradient" if np.isfinite(values[chain, draw]) else "it"
        raise ValueError(
            f"the log density: {what} is not finite at {len(bad)} of {values.size} draws, the first at "
            f"chain {chain}, draw {draw}. Check that `fn` takes the draws as they are given "
            "(unconstrained or not), and that no jnp.where hides a division by zero from its gradient."
        )
    return values, scores


def _check_output(fn: Callable[[PyTree], Any], draws: PyTree) -> None:
    first = jax.tree.map(lambda leaf: np.asarray(leaf[0, 0], np.float64), draws)
    out = in_double(lambda at: jax.eval_shape(at, first), fn, first)
    shape, dtype = getattr(out, "shape", None), getattr(out, "dtype", jnp.int32)
    if shape != () or not jnp.issubdtype(dtype, jnp.floating):
        description = (
            f"a {type(out).__name__}" if shape is None else f"shape {shape} and type {dtype}"
        )
        raise ValueError(
            f"the log density of one draw has {description}: return one real number, so sum over data "
            "(jnp.sum) and do not keep an axis of length one."
        )


def _as_tree(draws: PyTree) -> PyTree:
    if not jax.tree_util.all_leaves([draws]) and not isinstance(draws, list):
        return jax.tree.map(lambda leaf: as_reals(leaf, "draws"), draws)
    array = as_reals(draws, "draws")
    array = array[None] if array.ndim == 2 else array
    if array.ndim != 3:
        raise ValueError(
            f"draws have shape {array.shape}: give (chain, draw, dim), or (draw, dim) for one chain, or "
            "a dict of arrays (chain, draw, ...)."
        )
    return array
