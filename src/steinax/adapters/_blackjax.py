"""Convert the states of a BlackJAX sampler to a sample."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np

from .._types import PyTree
from ..data import Sample
from ._arrays import check_density, density_and_score
from ._pytrees import column_names, dataset, flat_columns, leaves, quantities
from ._training import as_sample

ORDERS = (("chain", "draw"), ("draw", "chain"))
ALARM = 5.0  # standard errors of the correlation of independent chains that are tolerated
FIELDS = ("position", "logdensity", "logdensity_grad")  # of a state
SMALL = 0.1  # a correlation below which the order of axes hardly matters


def from_blackjax(
    states: Any,
    infos: Any = None,
    *,
    axes: Sequence[str] | None = None,
    log_density: Callable[[Any], Any] | None = None,
    constrain: Callable[[Any], Mapping[str, Any]] | None = None,
    names: Sequence[str] | None = None,
    dims: Mapping[str, Sequence[str]] | None = None,
    coords: Mapping[str, Any] | None = None,
    warmup: Any = None,
) -> Sample:
    r"""Create a sample from the states of a BlackJAX sampler.

    A state holds the position $x$ and `logdensity_grad`, which is the score $\nabla \log \pi(x)$: in
    hmc, nuts, dynamic_hmc, mala, barker, mclmc, ghmc, rmhmc and samplers built on them. States of rmh,
    irmh, slice and elliptical_slice hold no gradient, and those of mgrad_gaussian only that of the
    likelihood. For these use `from_logdensity(log_density, states.position)`.

    Leave the warm-up out of the states, and give it as `warmup`. In float32, the default of jax, scores have
    about six digits, which limits the errors that are reported; with `log_density=` they are computed again
    in float64. Otherwise nothing is evaluated. mclmc is not adjusted, so its draws are biased by the size of
    its step: use `estimate(..., audit="unadjusted")`.

    Args:
        states: of one chain, leaves (draw, ...), as `jax.lax.scan` stacks them, or of several.
        infos: what the sampler returned with the states; divergences are read from it.
        axes: for several chains, the order of the leading axes: `("chain", "draw")` for a scan inside
            `vmap` or `pmap`, `("draw", "chain")` for `vmap` inside a scan. There is no default, and an
            order that the draws contradict is refused.
        log_density: the function that was sampled, to compute the scores again in float64.
        constrain: takes one position and returns a dict of the quantities to request by name: your own
            transform to the constrained space. Without it these are the entries of a dict of
            positions.
        names: one per column; by default from the keys of the position: `beta[0]`, `log_tau`.
        dims: the names of the axes of a quantity, after (chain, draw): `{"theta": ["school"]}`.
        coords: the labels along such an axis: `{"school": ["Choate", ...]}`.
        warmup: the second value that `window_adaptation(...).run` returned, or the states of the warm-up, of
            one chain or of as many as the draws have, to use as training points: control variates are
            fitted to them, and they are not averaged.

    Example::

        def one_chain(key, start):
            warm, then = jax.random.split(key)
            adaptation = blackjax.window_adaptation(blackjax.nuts, log_density)
            (state, parameters), warmup = adaptation.run(warm, start, 1000)
            step = blackjax.nuts(log_density, **parameters).step
            keys = jax.random.split(then, 1000)
            return jax.lax.scan(lambda s, k: (step(k, s)[0],) * 2, state, keys)[1], warmup


        states, warmup = jax.vmap(one_chain)(keys, starts)
        sample = sx.from_blackjax(states, axes=("chain", "draw"), warmup=warmup)
    """
    _check_gradient(states)
    order = _order(np.shape(states.logdensity), axes)
    read = partial(_parts, log_density=log_density, constrain=constrain, dims=dims, coords=coords)
    parts = read(states, infos, order)
    if len(order) == 2:
        _check_order(np.concatenate([parts["draws"], parts["log_density"][..., None]], -1), order)
    if names is not None:
        parts["names"] = names
    if warmup is None or warmup is False:
        return as_sample(parts)
    adapted = getattr(warmup, "state", warmup)
    _check_warmup(adapted)
    order = _warmup_order(np.shape(adapted.logdensity), axes, chains=len(parts["draws"]))
    before = read(adapted, getattr(warmup, "info", None), order, refuse=False)
    return as_sample(parts, before, asked=True)


def _parts(
    states: Any,
    infos: Any,
    order: tuple[str, ...],
    *,
    log_density: Callable[[Any], Any] | None,
    constrain: Callable[[Any], Mapping[str, Any]] | None,
    dims: Mapping[str, Sequence[str]] | None,
    coords: Mapping[str, Any] | None,
    refuse: bool = True,
) -> dict[str, Any]:
    """Collect the arguments of `Sample`; scores that are not finite are an error if `refuse`."""

    def arrange(tree: PyTree) -> PyTree:
        return jax.tree.map(lambda leaf: _chains_first(np.asarray(leaf), order), tree)

    draws, density = arrange(states.position), arrange(states.logdensity)
    position = leaves(draws, "positions")
    if log_density is None:
        scores = flat_columns(leaves(arrange(states.logdensity_grad), "scores"))
    else:
        kept = density
        density, scores = density_and_score(log_density, draws, refuse)
        if refuse:
            check_density(density, kept, "log_density")
    variables = quantities(constrain, draws, position)
    x = flat_columns(position)
    return {
        "draws": x,
        "scores": scores,
        "names": column_names(position, variables),
        "diverging": _divergences(infos, order, x.shape[:2]),
        "variables": dataset({"posterior": variables}, dims, coords) if variables else None,
        "log_density": density,
        "verified": True,
    }


def _check_warmup(states: Any) -> None:
    missing = [name for name in FIELDS if getattr(states, name, None) is None]
    if missing:
        raise ValueError(
            f"the warm-up, a {type(states).__name__}, has no {', '.join(missing)}: give the second value "
            "that adaptation.run(...) returned, with an adaptation_info_fn that keeps its state, as the "
            "default does; or the states of the warm-up; or leave `warmup` out."
        )


def _warmup_order(
    shape: tuple[int, ...], axes: Sequence[str] | None, chains: int
) -> tuple[str, ...]:
    """Name the leading axes of the warm-up: the one as long as there are chains is that of the chains.

    They may differ from those of the states: a mapped adaptation is (chain, draw) whatever follows it.
    """
    fitting = [
        order for order in ORDERS if len(shape) == 2 and shape[order.index("chain")] == chains
    ]
    if len(fitting) == 1:
        return fitting[0]
    return _order(shape, None if len(shape) == 1 else axes)


def _check_gradient(states: Any) -> None:
    if isinstance(states, tuple) and len(states) == 2 and hasattr(states[0], "position"):
        raise ValueError(
            "states and infos are in the same tuple: give them separately, from_blackjax(states, infos)."
        )
    kind = type(states).__name__
    if hasattr(states, "U_grad_x"):  # the gradient leaves out the Gaussian prior
        missing = "the gradient of the likelihood, without that of the prior"
    elif all(hasattr(states, name) for name in FIELDS):
        return
    else:
        missing = "no gradient of a log density"
    raise ValueError(
        f"{kind} holds {missing}: compute the scores with from_logdensity(log_density, states.position), "
        "where log_density is the function that was sampled and draws have axes (chain, draw, ...)."
    )


def _order(shape: tuple[int, ...], axes: Sequence[str] | None) -> tuple[str, ...]:
    """Name the leading axes; their number is that of the axes of the log density."""
    if len(shape) == 1 and (axes is None or tuple(axes) == ("draw",)):
        return ("draw",)
    if len(shape) == 2 and axes is not None and tuple(axes) in ORDERS:
        return tuple(axes)
    if len(shape) == 2:
        raise ValueError(
            f"the states have two leading axes, of {shape[0]} and {shape[1]}: say which is which, by "
            'axes=("chain", "draw") for a scan inside vmap or pmap, or axes=("draw", "chain") for vmap '
            "inside a scan."
        )
    raise ValueError(
        f"the states have {len(shape)} leading axes, and axes={axes!r}: stack the states of one chain "
        'as (draw, ...), as jax.lax.scan does, or give several with axes=("chain", "draw").'
    )


def _chains_first(array: np.ndarray, order: tuple[str, ...]) -> np.ndarray:
    if len(order) == 1:
        return array[None]
    return array if order == ORDERS[0] else np.swapaxes(array, 0, 1)


def _check_order(series: np.ndarray, order: tuple[str, ...]) -> None:
    """Refuse axes that look swapped: successive draws are correlated, chains are not.

    If successive draws are not correlated either, the order does not affect any error bar.
    """
    series = series - series.mean(axis=(0, 1))
    chains, length = series.shape[:2]
    if chains < 2 or length < 2:
        return
    power = np.mean(series**2, axis=(0, 1)) + 1e-300
    between = np.mean(series[1:] * series[:-1], axis=(0, 1)) / power
    within = np.mean(series[:, 1:] * series[:, :-1], axis=(0, 1)) / power
    worst = int(np.argmax(between))
    chance = 1 / np.sqrt(
        (chains - 1) * length
    )  # standard error for independent draws, for which `within` is small
    if between[worst] > max(SMALL, ALARM * chance) and between[worst] > within[worst] + SMALL:
        swapped = ORDERS[1 - ORDERS.index((order[0], order[1]))]
        raise ValueError(
            f"axes={order} cannot be right: neighbours along the axis called `chain` have a correlation "
            f"of {between[worst]:.2f}, and along `draw` {within[worst]:.2f}. Give axes={swapped}; or, "
            "if the order is right, run the chains again, each with a different random key."
        )


def _divergences(infos: Any, order: tuple[str, ...], shape: tuple[int, ...]) -> np.ndarray | None:
    flags = getattr(infos, "is_divergent", None)
    if flags is None:
        return None
    flags = np.asarray(flags)
    if flags.ndim != len(order) or _chains_first(flags, order).shape != shape:
        raise ValueError(
            f"infos are of {flags.shape} states and the draws of {shape} (chain, draw): give the infos "
            "of the same states, with the warm-up left out of both."
        )
    return _chains_first(flags, order)
