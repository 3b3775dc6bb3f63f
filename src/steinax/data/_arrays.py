"""Arrays as they are given, checked: nothing is rounded, masked or parsed in silence."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

ADAPTERS = (
    "What a sampler returned becomes a sample by from_nutpie(trace), from_pymc(model, trace), "
    "from_numpyro(mcmc), from_blackjax(states), from_pystan(fit), from_cmdstan(fit) or from_arviz(path)."
)
LIGHTEST = 1e-30  # a weight, of a mean of 1: fits divide by it, in float32 too
MISSING = (
    "draws without scores, or scores without draws: give Sample(draws, scores), the score of a draw being "
    "the gradient of the log density there. nutpie, NumPyro and CmdStan can keep scores; from_pymc(model, "
    "trace) and from_pystan(fit) compute them, and from_logdensity(log_density, draws) does from any log "
    "density in jax."
)


def as_chains(values: ArrayLike, what: str, dtype: DTypeLike) -> np.ndarray:
    """Finite draws or scores, (chain, draw, dim)."""
    if dtype not in (np.float64, np.float32):  # their names as well: "float32"
        raise ValueError(f"dtype {dtype!r} is not supported: use float64 or float32.")
    if values is None:
        raise ValueError(MISSING)
    if isinstance(values, Mapping):
        raise ValueError(
            f"{what} are a {type(values).__name__}: give one array, (chain, draw, dim). {ADAPTERS} A dict of "
            "draws does by from_logdensity(log_density, draws)."
        )
    array = as_reals(values, what)
    with np.errstate(over="ignore"):  # what is too large for float32 is refused below
        array = np.ascontiguousarray(array, dtype=dtype)
    if array.ndim == 2:
        array = array[None]
    if array.ndim != 3 or 0 in array.shape:
        raise ValueError(
            f"{what} have shape {array.shape}: give (chain, draw, dim), or (draw, dim) for one chain. "
            "For a one-dimensional target add an axis: draws[..., None]."
        )
    if not np.isfinite(array).all():
        bad = np.argwhere(~np.isfinite(array))
        chain, draw, column = bad[0]
        raise ValueError(
            f"{what} hold {len(bad)} values that are not finite, the first at chain {chain}, draw "
            f"{draw}, dimension {column}: drop those draws, or find out why the sampler gave them."
        )
    return array


def as_reals(values: object, what: str) -> np.ndarray:
    """An array of real numbers, or a refusal: nothing is rounded, masked or parsed in silence."""
    if isinstance(values, np.ma.MaskedArray):
        if np.any(values.mask):
            raise ValueError(
                f"{what} are masked in part, and an average over them would not know: leave out the "
                "masked draws, and give a plain array."
            )
        values = values.data
    try:
        array = np.asarray(values)
    except (TypeError, ValueError):  # rows of different lengths, mostly
        raise ValueError(
            f"{what} of type {type(values).__name__} make no array: give an array of numbers, with "
            "rows of equal length."
        ) from None
    if array.dtype.kind not in "fiu":
        raise ValueError(
            f"{what} are of type {array.dtype}: give real numbers, as an array of floats."
        )
    return array


def as_log_density(values: ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    """Finite log densities, (chain, draw)."""
    found = _per_draw(values, "log_density", shape).astype(np.float64)
    if not np.isfinite(found).all():
        raise ValueError(
            f"{int((~np.isfinite(found)).sum())} of {found.size} values of log_density are not finite: give "
            "the log density that the sampler kept for each draw, or leave log_density out."
        )
    return found


def _per_draw(
    values: ArrayLike, what: str, shape: tuple[int, ...], one: str = "number"
) -> np.ndarray:
    """One real number for each draw, (chain, draw)."""
    found = as_reals(values, what)
    found = found[None] if found.ndim == 1 else found
    if found.shape != shape:
        raise ValueError(
            f"{what} has shape {found.shape} and the draws {shape} (chain, draw): give one {one} for each "
            "draw."
        )
    return found


def as_weights(logs: ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    """Weights of mean 1 from their logarithms, (chain, draw)."""
    found = _per_draw(logs, "log_weights", shape, "logarithm")
    if not np.isfinite(found).all():
        raise ValueError(
            f"{int((~np.isfinite(found)).sum())} of {found.size} log_weights are not finite: leave out draws "
            "whose weight is zero, from draws and scores too, and find out why others are NaN or infinite."
        )
    weights = np.exp(found.astype(np.float64) - found.max())
    return np.maximum(weights / weights.mean(), LIGHTEST)


def kish_size(weights: np.ndarray) -> float:
    r"""How many draws of equal weight the weights are worth, $(\sum_i w_i)^2 / \sum_i w_i^2$ (Kish, 1965).

    >>> round(kish_size(np.array([1.0, 1.0, 2.0])), 2)
    2.67
    """
    return float(np.sum(weights) ** 2 / np.sum(np.square(weights)))


def as_flags(values: ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    """True or false for each draw, (chain, draw)."""
    flags = np.asarray(values)
    if flags.ndim == 1:
        flags = flags[None]
    if flags.shape != shape or not np.isin(flags, (0, 1)).all():
        raise ValueError(
            f"diverging has shape {flags.shape} and type {flags.dtype} beside draws of {shape} (chain, "
            "draw): give true or false for each draw, or leave it out."
        )
    return flags.astype(bool)
