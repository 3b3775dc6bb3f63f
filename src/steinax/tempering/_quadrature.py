"""How far the sum over temperatures may be from the integral."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from .._precision import precision
from .._types import AnyArray
from ._methods import AbstractMethod
from ._tempered import Tempered


def quadrature_error(
    tempered: Tempered, method: AbstractMethod, means: Sequence[AnyArray]
) -> float:
    r"""The error of the quadrature, by the rule of Richardson: $|Q_h - Q_{2h}| / (2^p - 1)$.

    $Q_{2h}$ is from every other temperature, and $p$ is the method's power. Zero where the method has no
    quadrature, NaN where there are no temperatures to leave out.

    Args:
        tempered: the draws.
        method: how expectations make the log evidence.
        means: the expectations of the method's integrands at each temperature.
    """
    last = len(tempered) - 1
    if method.power is None:
        return 0.0
    if last < 2:
        return float("nan")
    whole = _total(tempered, method, means, np.arange(last + 1))
    half = _total(tempered, method, means, np.unique([*range(0, last, 2), last]))
    return abs(whole - half) / (2**method.power - 1)


def _total(
    tempered: Tempered, method: AbstractMethod, means: Sequence[AnyArray], places: np.ndarray
) -> float:
    """The log evidence from some of the temperatures."""
    steps = np.r_[0.0, np.diff(tempered.temperatures[places]), 0.0]
    total = 0.0
    with precision(np.float64):
        for i, place in enumerate(places):
            terms = method.contribution(
                tempered.log_likelihood[place], float(steps[i]), float(steps[i + 1])
            )
            total += float(terms.share(jnp.asarray(means[place])))
    return total
