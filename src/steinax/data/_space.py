import abc
from typing import Any

import equinox as eqx
import numpy as np

from .._types import AnyArray, Chains


class AbstractSpace(eqx.Module):
    r"""Where draws live when that is not all of $\mathbb{R}^d$: a box, a sphere, the counts.

    A space says which draws lie in it, what right scores are there, and which family serves it. Draws of a
    space are not standardised: its operator knows where the boundary, or the next count, is.

    >>> from steinax.data import Sample
    >>> Sample([[1.0]], [[1.0]]).space is None
    True
    """

    @property
    @abc.abstractmethod
    def domain(self) -> str:
        """The word by which the space and its operators know each other."""

    @abc.abstractmethod
    def check(self, draws: Chains) -> None:
        """Refuse draws that do not lie in the space, with what to do next."""

    @abc.abstractmethod
    def identities(self, draws: Chains, scores: Chains) -> AnyArray:
        """Functions of each draw whose mean is zero when the scores are right: (chain, draw, count)."""

    @abc.abstractmethod
    def family(self, n: int, dim: int) -> Any:
        """The family of control variates when none is given, for so many draws and dimensions."""


def check_draws(space: AbstractSpace | None, draws: np.ndarray) -> AbstractSpace | None:
    """The space, if the draws lie in it."""
    if space is None:
        return None
    if not isinstance(space, AbstractSpace):
        raise TypeError(
            f"the space is {space!r}: give one of steinax.spaces, such as Box(0.0, 1.0)."
        )
    space.check(draws)
    return space
