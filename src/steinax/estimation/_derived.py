"""Functions of several expectations, with errors by the delta method."""

from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp
import numpy as np

from .._precision import precision
from .._types import AnyArray
from ..chains import ChainStatistics, correlation

LARGEST = 4e9  # bytes of a covariance
BENT = 0.5  # standard errors off a straight line, one standard error away, that are too many


def derive(
    functions: Mapping[str, Callable], names: tuple[str, ...], of: ChainStatistics
) -> ChainStatistics:
    """Statistics of functions of means; NaN for the error of one that bends too much.

    Args:
        functions: each takes a dict from names to means.
        names: of the means.
        of: the statistics of the means.
    """
    mean = np.atleast_1d(of.mean)
    batches = np.reshape(of.batches, (-1, len(mean)))
    spread = covariance(of.mcse, batches)
    found = [_derive(h, names, mean, spread) for h in functions.values()]
    value, error, slope = (np.array(part) for part in zip(*found, strict=True))
    used = slope != 0
    ess, rhat, freedom = map(np.atleast_1d, (of.ess, of.rhat, of.freedom))
    least, fewest = (np.where(used, one, np.inf).min(axis=1) for one in (ess, freedom))
    worst = np.where(used, rhat, -np.inf).max(axis=1, initial=1.0)
    return ChainStatistics(value, error, least, worst, fewest, batches @ slope.T)


def covariance(error: AnyArray, batches: AnyArray) -> np.ndarray:
    """The covariance of averages, from their standard errors and the batches of their series."""
    error = np.atleast_1d(error)
    size = 8 * len(error) ** 2
    if size > LARGEST:
        raise MemoryError(
            f"the covariance of {len(error)} estimates takes {size / 1e9:.0f} GB: ask for that of some, "
            'estimate[["a", "b"]].covariance, or use the factors in estimate.batches.'
        )
    return correlation(np.reshape(batches, (-1, len(error)))) * np.outer(error, error)


def _derive(
    h: Callable, names: tuple[str, ...], mean: np.ndarray, spread: np.ndarray
) -> tuple[float, float, np.ndarray]:
    """The value of h at the means, its standard error and its gradient."""

    def of_vector(v: AnyArray) -> jax.Array:
        return jnp.asarray(h(dict(zip(names, v, strict=True))), v.dtype)

    with precision(np.float64):
        value, slope = jax.value_and_grad(of_vector)(jnp.asarray(mean, jnp.float64))
        slope = np.asarray(slope)
        error = float(np.sqrt(max(slope @ spread @ slope, 0.0)))
        if error > 0:
            away = spread @ slope / error
            bend = max(abs(of_vector(mean + s * away) - value - s * error) for s in (-1, 1))
            error = error if bend <= BENT * error else np.nan
    return float(value), error, slope
