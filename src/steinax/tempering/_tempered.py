"""Draws from power posteriors, with log likelihoods and scores."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from .._show import counted, some_of
from .._types import AnyArray
from ..adapters import density_and_score
from ..data import Sample, as_chains, as_names, as_reals


class Tempered(eqx.Module):
    r"""Draws from power posteriors $\pi_t(x) \propto p(x)\, L(x)^t$, from the prior to the posterior.

    The score at inverse temperature $t$ is $\nabla \log p(x) + t\, \nabla \log L(x)$.

    Args:
        draws: $x$ at each temperature, (temperature, draw, dim) or (temperature, chain, draw, dim), or
            a list of arrays (draw, dim) or (chain, draw, dim) of any lengths.
        log_likelihood: $\log L(x)$ of each draw, in the shape of the draws without the last axis,
            including all constants that the evidence should contain.
        likelihood_scores: $\nabla \log L(x)$, in the shape of the draws.
        prior_scores: $\nabla \log p(x)$, in the shape of the draws.
        temperatures: the inverse temperatures $0 = t_0 < t_1 < \ldots < t_J = 1$.
        names: one name per dimension; `x[0]`, `x[1]`, ... when not given.

    >>> import numpy as np
    >>> t = np.array([0.0, 0.5, 1.0])  # the prior and the likelihood are both standard normal
    >>> x = np.random.default_rng(0).normal(size=(3, 100, 1)) / np.sqrt(1 + t)[:, None, None]
    >>> Tempered(x, -(x[..., 0] ** 2) / 2, -x, -x, t)
    Tempered(3 temperatures, 300 draws, 1 dimension: x[0])
    """

    draws: tuple[AnyArray, ...]  # one (chain, draw, dim) per temperature; lengths may differ
    log_likelihood: tuple[AnyArray, ...]  # one (chain, draw) per temperature
    likelihood_scores: tuple[AnyArray, ...]
    prior_scores: tuple[AnyArray, ...]
    temperatures: Float[AnyArray, " temperature"]
    names: tuple[str, ...] = eqx.field(static=True)

    def __init__(
        self,
        draws: ArrayLike | Sequence[ArrayLike],
        log_likelihood: ArrayLike | Sequence[ArrayLike],
        likelihood_scores: ArrayLike | Sequence[ArrayLike],
        prior_scores: ArrayLike | Sequence[ArrayLike],
        temperatures: ArrayLike,
        names: Sequence[str] | None = None,
    ):
        self.temperatures = as_temperatures(temperatures, draws)
        count = len(self.temperatures)
        self.draws = _all_chains(draws, "draws", count)
        self.likelihood_scores = _all_chains(likelihood_scores, "likelihood_scores", count)
        self.prior_scores = _all_chains(prior_scores, "prior_scores", count)
        self.log_likelihood = _all_values(log_likelihood, self.draws)
        for what, scores in (("likelihood", self.likelihood_scores), ("prior", self.prior_scores)):
            _check_shapes(what, scores, self.draws)
        dims = {chains.shape[2] for chains in self.draws}
        if len(dims) > 1:
            raise ValueError(
                f"the draws have {sorted(dims)} dimensions: give the same parameters at every temperature."
            )
        self.names = as_names(names, dims.pop())

    @staticmethod
    def from_logdensity(
        log_likelihood: Callable[[Any], Any],
        log_prior: Callable[[Any], Any],
        draws: ArrayLike | Sequence[ArrayLike],
        temperatures: ArrayLike,
        names: Sequence[str] | None = None,
    ) -> "Tempered":
        r"""Compute log likelihoods and scores of draws from the log likelihood and log prior in jax.

        Args:
            log_likelihood: $\log L$ of one draw, a vector, with its constants.
            log_prior: $\log p$ of one draw, up to a constant, with the Jacobian if draws are transformed.
            draws: as above.
            temperatures: as above.
            names: as above.

        >>> import jax.numpy as jnp, numpy as np
        >>> t = np.array([0.0, 0.5, 1.0])
        >>> x = np.random.default_rng(0).normal(size=(3, 100, 1)) / np.sqrt(1 + t)[:, None, None]
        >>> normal = lambda x: -jnp.sum(x**2) / 2
        >>> Tempered.from_logdensity(normal, normal, x, t).likelihood_scores[0].shape
        (1, 100, 1)
        """
        count = len(as_temperatures(temperatures, draws))
        per_temperature = _all_chains(draws, "draws", count)
        likelihood = [density_and_score(log_likelihood, chains) for chains in per_temperature]
        values, scores = zip(*likelihood, strict=True)
        prior = [density_and_score(log_prior, chains)[1] for chains in per_temperature]
        return Tempered(per_temperature, values, scores, prior, temperatures, names)

    def sample(self, place: int) -> Sample:
        """Return the draws at one temperature, with their scores at that temperature."""
        t = self.temperatures[place]
        scores = self.prior_scores[place] + t * self.likelihood_scores[place]
        return Sample(self.draws[place], scores, self.names)

    def __len__(self) -> int:
        return len(self.temperatures)

    def __repr__(self) -> str:
        shown = some_of(self.names, 4)
        size = sum(values.size for values in self.log_likelihood)
        dims = counted(len(self.names), "dimension")
        return f"Tempered({len(self)} temperatures, {size} draws, {dims}: {shown})"


def as_temperatures(temperatures: ArrayLike, draws: Any) -> np.ndarray:
    """Convert inverse temperatures to an array, and check that they increase from 0 to 1.

    Args:
        temperatures: what was given.
        draws: one array for each.
    """
    t = as_reals(temperatures, "temperatures").astype(np.float64)
    if t.ndim != 1 or len(t) < 2:
        raise ValueError(
            f"temperatures have shape {t.shape}: give at least two inverse temperatures, as a list."
        )
    _check_count(draws, "draws", len(t))
    if not np.all(np.diff(t) > 0):
        raise ValueError(
            "temperatures do not increase from each to the next: give inverse temperatures in increasing "
            "order, and the draws in the same order."
        )
    if t[0] != 0 or t[-1] != 1:
        raise ValueError(
            f"temperatures go from {t[0]:g} to {t[-1]:g}: give inverse temperatures from 0, the prior, to "
            "1, the posterior; the prior can be sampled without a chain."
        )
    return t


def _check_count(values: Any, what: str, count: int) -> None:
    """Refuse arrays that are not one for each temperature."""
    if len(values) != count:
        raise ValueError(
            f"{what} at {len(values)} temperatures, and there are {count} temperatures: give one array for "
            "each, the temperature as the first axis."
        )


def _all_chains(values: Any, what: str, count: int) -> tuple[np.ndarray, ...]:
    """Convert the arrays of all temperatures to the shape (chain, draw, dim)."""
    _check_count(values, what, count)
    return tuple(as_chains(chains, what, np.float64) for chains in values)


def _all_values(values: Any, draws: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """Convert the log likelihoods of all temperatures to the shape (chain, draw), and check them."""
    if len(values) != len(draws):
        raise ValueError(
            f"log_likelihood at {len(values)} temperatures, and there are draws at {len(draws)}: give one "
            "array (chain, draw) or (draw,) for each."
        )
    arrays = []
    for at_temperature, chains in zip(values, draws, strict=True):
        array = as_reals(at_temperature, "log_likelihood").astype(np.float64)
        array = array[None] if array.ndim == 1 else array
        if array.shape != chains.shape[:2]:
            raise ValueError(
                f"log_likelihood has shape {array.shape}, and the draws have shape {chains.shape}: give one "
                "number for each draw, summed over the data."
            )
        if not np.isfinite(array).all():
            raise ValueError(
                "log_likelihood is not finite on every draw, so it has no mean there: leave out the draws "
                "where the model failed, and report that, or fix the likelihood."
            )
        if np.ptp(array) == 0:
            raise ValueError(
                "log_likelihood is the same on every draw of a temperature: check that it is summed over the "
                "data for each draw, and that the chain moved."
            )
        arrays.append(array)
    return tuple(arrays)


def _check_shapes(what: str, scores: tuple[np.ndarray, ...], draws: tuple[np.ndarray, ...]) -> None:
    """Raise an error unless the scores have the shapes of the draws."""
    for gradients, chains in zip(scores, draws, strict=True):
        if gradients.shape != chains.shape:
            raise ValueError(
                f"{what}_scores have shape {gradients.shape}, and the draws have shape {chains.shape}: each "
                "draw needs a gradient with one entry per dimension."
            )
