"""Ratios of a probability mass function at the neighbours of each draw."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from .._types import AnyArray, Point
from ..adapters._pytrees import over_draws
from ..data import AbstractSpace
from ..data._sample import as_chains

LARGEST = 1e12  # a ratio; a Gibbs sampler would flip here for sure, to the twelfth digit


def ratio_scores(
    space: AbstractSpace,
    log_pmf: Callable[[Point], AnyArray],
    draws: ArrayLike,
    neighbours: Callable[[Point], AnyArray],
) -> np.ndarray:
    r"""The scores $1 - \pi(x') / \pi(x)$ of the neighbours $x'$ of each draw, once for each distinct draw."""
    given = np.ndim(draws)
    x = as_chains(draws, "draws", np.float64)
    space.check(x)
    states, place = np.unique(x.reshape(-1, x.shape[2]), axis=0, return_inverse=True)

    def logs(point: Point) -> tuple[AnyArray, AnyArray]:
        return jnp.asarray(log_pmf(point)), jax.vmap(log_pmf)(neighbours(point))

    here, there = _evaluated(logs, states)
    with np.errstate(over="ignore"):
        ratios = np.minimum(np.exp(there - here[:, None]), LARGEST)
    scores = (1.0 - ratios)[place.reshape(-1)].reshape(x.shape)
    return scores[0] if given == 2 else scores


def _evaluated(logs: Callable[[Point], tuple], states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The logarithms at each state and at its neighbours; a refusal where they are not numbers."""
    try:
        here, there = over_draws(logs, states[None])
    except (jax.errors.JAXTypeError, jax.errors.JAXIndexError) as error:
        raise ValueError(
            "the log mass function is not made of jax operations: write it with jax.numpy (jnp.log for "
            "np.log, jnp.where for if), or give the scores 1 - pi(neighbour) / pi(draw) yourself."
        ) from error
    here, there = here[0], there[0]
    if here.ndim != 1:
        raise ValueError(
            f"the log mass function of one draw has shape {here.shape[1:]}: return one number, and sum over "
            "data and coordinates (jnp.sum)."
        )
    bad = ~np.isfinite(here) | np.isnan(there).any(axis=1) | (there == np.inf).any(axis=1)
    if bad.any():
        raise ValueError(
            f"the log mass function is not finite at {bad.sum()} of {len(states)} distinct draws or at their "
            f"neighbours, the first at {states[bad.argmax()].tolist()}: the draws must have a positive "
            "probability; check that `log_pmf` is that of these draws."
        )
    return here, there
