from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._precision import widest
from .._types import PyTree
from ..data import Sample
from ..data._sample import as_reals
from ._pytrees import column_names, columns, dataset, leaves, over_draws, quantities


def from_logdensity(
    fn: Callable[[Any], Any],
    draws: PyTree,
    *,
    constrain: Callable[[Any], Mapping[str, Any]] | None = None,
    names: Sequence[str] | None = None,
    dims: Mapping[str, Sequence[str]] | None = None,
    coords: Mapping[str, Any] | None = None,
) -> Sample:
    r"""A sample from any draws and the log density that they are from, written in jax.

    For samplers that keep no gradients (random walks, ensembles, slices), for a file of draws, and
    for draws of another language whose model can be written down again. The scores
    $\nabla \log \pi(x_i)$ are found by `jax.grad`, for all draws at once, in float64 whatever jax is
    set to, and in batches if they would not fit in memory.

    The density must be that of the draws as they are given: if `draws` are unconstrained, with the
    logarithm of the Jacobian; and they should be unconstrained, because a density with an edge breaks
    the identity that control variates rest on.

    Args:
        fn: $\log \pi$ up to a constant: takes one draw, of the structure of `draws` without its axes
            (chain, draw), and returns a number.
        draws: (chain, draw, dim), or (draw, dim) for one chain; or a pytree, such as a dict, of arrays
            (chain, draw, ...). Columns are in the order of `ravel_pytree`, which sorts dict keys.
        constrain: takes one draw and returns a dict of the quantities to be asked for by name, such
            as constrained parameters. Without it, these are the entries of a dict of draws.
        names: one per column; by default `x[0]`, ... for an array, and for a pytree the keys:
            `beta[0]`, `log_tau`. A key that `constrain` gives to other values becomes `tau_free__`.
        dims: the names of the axes of a quantity, after (chain, draw): `{"theta": ["school"]}`.
        coords: the labels along such an axis: `{"school": ["Choate", ...]}`.

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
        raise TypeError(
            "the log density comes first, and then the draws: from_logdensity(fn, draws)."
        )
    draws = _as_tree(draws)
    position = leaves(draws, "draws")
    log_density, scores = density_and_score(fn, draws)
    variables = quantities(constrain, draws, position)
    if names is None:
        names = column_names(position, variables)
    tree = dataset({"posterior": variables}, dims, coords) if variables else None
    x, more = columns(position), {"variables": tree, "log_density": log_density}
    return Sample(x, scores, names, **more, verified=True)


def density_and_score(fn: Callable[[PyTree], Any], draws: PyTree) -> tuple[np.ndarray, np.ndarray]:
    """`fn` at each draw, (chain, draw), and its gradient, (chain, draw, dim).

    Columns are in the order of `ravel_pytree`.
    """
    try:
        _check_output(fn, draws)
        values, gradients = over_draws(jax.value_and_grad(fn), draws)
    except (jax.errors.JAXTypeError, jax.errors.JAXIndexError) as error:
        raise ValueError(
            "the log density is not made of jax operations, so it cannot be differentiated: write it "
            "with jax.numpy (jnp.log for np.log, jnp.where for if, jax.scipy.stats for scipy.stats), or "
            "compute the scores by other means and give them to steinax.from_arrays."
        ) from error
    scores = columns(leaves(gradients, "scores"))
    bad = np.argwhere(~(np.isfinite(values) & np.isfinite(scores).all(axis=-1)))
    if len(bad):
        chain, draw = bad[0]
        what = "its gradient" if np.isfinite(values[chain, draw]) else "it"
        raise ValueError(
            f"the log density: {what} is not finite at {len(bad)} of {values.size} draws, the first at "
            f"chain {chain}, draw {draw}. Check that `fn` takes the draws as they are given "
            "(unconstrained or not), and that no jnp.where hides a division by zero from its gradient."
        )
    return values, scores


def _check_output(fn: Callable[[PyTree], Any], draws: PyTree) -> None:
    def shape_of() -> Any:
        one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[2:], jnp.float64), draws)
        return jax.eval_shape(fn, one)

    out = widest(shape_of, np.float64)
    shape, dtype = getattr(out, "shape", None), getattr(out, "dtype", jnp.int32)
    if shape != () or not jnp.issubdtype(dtype, jnp.floating):
        found = f"a {type(out).__name__}" if shape is None else f"shape {shape} and type {dtype}"
        raise ValueError(
            f"the log density of one draw has {found}: return one real number, so sum over data "
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
