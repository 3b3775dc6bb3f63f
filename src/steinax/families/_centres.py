import abc

import equinox as eqx
import numpy as np


class AbstractCentres(eqx.Module):
    """Which draws a kernel is translated to."""

    @abc.abstractmethod
    def choose(self, n: int) -> np.ndarray:
        """The indices of the centres among `n` draws."""


class AllDraws(AbstractCentres):
    """A centre at every draw: the control functional itself.

    >>> AllDraws().choose(4).tolist()
    [0, 1, 2, 3]
    """

    def choose(self, n: int) -> np.ndarray:
        return np.arange(n)


class Landmarks(AbstractCentres):
    """Centres at a few draws, evenly spaced along the chains.

    Args:
        count: how many; all draws where there are fewer.

    >>> Landmarks(3).choose(9).tolist()
    [0, 4, 8]
    """

    count: int = eqx.field(static=True)

    def __check_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"Landmarks({self.count}): ask for at least one landmark.")

    def choose(self, n: int) -> np.ndarray:
        return np.linspace(0, n - 1, min(n, self.count)).round().astype(int)
