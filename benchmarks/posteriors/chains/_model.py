"""What a model is here, and the priors that Stan leaves out."""

from collections.abc import Callable
from typing import NamedTuple

import numpyro.distributions as dist
from numpyro.distributions import constraints
from numpyro.infer import init_to_uniform


class Model(NamedTuple):
    """A posterior of posteriordb.

    Attributes:
        posterior: its name in posteriordb, which is that of its folder.
        program: the NumPyro model, a function of the data.
        tolerance: on the relative difference to the stored scores. Where Stan solves a differential
            equation, its own tolerance shows.
        start: where chains start; by default where Stan's do, uniformly within 2 of zero.
    """

    posterior: str
    program: Callable[[dict], None]
    tolerance: float = 1e-6
    start: Callable = init_to_uniform

    @property
    def name(self) -> str:
        """The part of the name that tells the model."""
        return self.posterior.split("-", 1)[1]


def flat(size: int) -> dist.Distribution:
    """No prior on a vector, as Stan has it where the program says nothing."""
    return dist.ImproperUniform(constraints.real, (), (size,))


def flat_on(support: constraints.Constraint) -> dist.Distribution:
    """No prior on a number within bounds."""
    return dist.ImproperUniform(support, (), ())
