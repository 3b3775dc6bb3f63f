import abc
from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._precision import as_leaf
from .._types import AnyArray, Scalar

LOG_LIKELIHOOD = "log likelihood"


class Contribution(eqx.Module):
    """What one temperature adds to the log evidence: a function of some expectations there."""

    integrands: Callable[[AnyArray], dict[str, AnyArray]]  # of log likelihoods
    share: Callable[[AnyArray], AnyArray]  # of their expectations, in the same order


class AbstractMethod(eqx.Module):
    """How the log evidence is made of expectations at the temperatures: one `contribution` for each.

    >>> isinstance(ThermodynamicIntegration(), AbstractMethod)
    True
    """

    power: ClassVar[int | None]  # to which the steps stand in the error of the quadrature

    @abc.abstractmethod
    def contribution(
        self, values: Float[AnyArray, "chain draw"], before: float, after: float
    ) -> Contribution:
        """The integrands at one temperature, and what their expectations add.

        Args:
            values: the log likelihood of each draw.
            before: the step from the temperature below, 0 at the first.
            after: the step to the temperature above, 0 at the last.
        """


class ThermodynamicIntegration(AbstractMethod):
    r"""The integral of the mean log likelihood over inverse temperatures, by the trapezium rule corrected.

    $$ \log Z = \int_0^1 \mu(t)\, dt \approx \sum_j \frac{\Delta_j}{2} (\mu_j + \mu_{j+1})
       - \frac{\Delta_j^2}{12} (V_{j+1} - V_j) , $$

    where $\mu_j$ and $V_j = \mu'(t_j)$ are the mean and the variance of $\log L$ at $t_j$, and
    $\Delta_j = t_{j+1} - t_j$ (Friel, Hurn and Wyse 2014).

    >>> terms = ThermodynamicIntegration().contribution(np.array([[1.0, 3.0]]), 0.0, 0.5)
    >>> round(float(terms.share(jnp.array([2.0, 1.0]))), 4)  # 2 / 4 + 1 / 48
    0.5208
    """

    power: ClassVar[int | None] = 4

    def contribution(
        self, values: Float[AnyArray, "chain draw"], before: float, after: float
    ) -> Contribution:
        """The log likelihood and its squared deviation from the plain mean."""
        centre = float(np.mean(values))
        weight, second = (before + after) / 2, (after**2 - before**2) / 12

        def share(means: AnyArray) -> AnyArray:
            return weight * means[0] + second * (means[1] - (means[0] - centre) ** 2)

        return Contribution(
            lambda values: {LOG_LIKELIHOOD: values, "squared": (values - centre) ** 2}, share
        )


class Trapezium(AbstractMethod):
    r"""Thermodynamic integration by the trapezium rule, without the variances.

    >>> float(Trapezium().contribution(np.array([[1.0, 3.0]]), 0.0, 0.5).share(jnp.array([2.0])))
    0.5
    """

    power: ClassVar[int | None] = 2

    def contribution(
        self, values: Float[AnyArray, "chain draw"], before: float, after: float
    ) -> Contribution:
        """The log likelihood alone."""
        weight = (before + after) / 2
        return Contribution(
            lambda values: {LOG_LIKELIHOOD: values}, lambda means: weight * means[0]
        )


class SteppingStones(AbstractMethod):
    r"""Ratios of normalising constants of neighbouring temperatures: there is no quadrature.

    $$ \log Z = \sum_j \log \mathbb{E}_{t_j}[L^{a \Delta_j}]
       - \log \mathbb{E}_{t_{j+1}}[L^{-(1 - a) \Delta_j}] . $$

    With $a = 1/2$ both neighbours go half the way. With $a = 1$ each stone is reached from below: that is
    the evidence of sequential Monte Carlo, and its integrands are steeper.

    Args:
        reach: $a$, the part of each step that is made from below.

    >>> terms = SteppingStones().contribution(np.array([[1.0, 3.0]]), 0.0, 0.5)
    >>> list(terms.integrands(np.array([[1.0, 3.0]])))
    ['step up']
    """

    reach: Scalar = eqx.field(converter=as_leaf, default=0.5)
    power: ClassVar[int | None] = None

    def __check_init__(self):
        if not 0 <= float(self.reach) <= 1:
            raise ValueError(f"reach={float(self.reach):g}: give a part of a step, from 0 to 1.")

    def contribution(
        self, values: Float[AnyArray, "chain draw"], before: float, after: float
    ) -> Contribution:
        """Powers of the likelihood, divided by their largest value."""
        powers = {
            "step up": float(self.reach) * after,
            "step down": -(1 - float(self.reach)) * before,
        }
        powers = {name: power for name, power in powers.items() if power != 0}
        largest = {name: float(np.max(power * values)) for name, power in powers.items()}
        signs = np.sign(list(powers.values()))

        def integrands(values: AnyArray) -> dict[str, AnyArray]:
            return {name: np.exp(p * values - largest[name]) for name, p in powers.items()}

        def share(means: AnyArray) -> AnyArray:
            return jnp.sum(signs * (np.array([*largest.values()]) + jnp.log(means)))

        return Contribution(integrands, share)
