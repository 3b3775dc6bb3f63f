"""A target that can be drawn from, its score, and integrands with their exact expectations."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

type Array = np.ndarray


@dataclass(frozen=True)
class Integrand:
    """A function of points (..., dim), giving (...), and its exact expectation."""

    name: str
    f: Callable[[Array], Array]
    mean: float


@dataclass(frozen=True)
class Problem:
    """A target density.

    Attributes:
        name: of the target.
        dim: its dimension.
        draw: n exact, independent draws, (n, dim).
        score: the gradient of the log density at (..., dim) points.
        integrands: what is asked for.
    """

    name: str
    dim: int
    draw: Callable[[np.random.Generator, int], Array]
    score: Callable[[Array], Array]
    integrands: tuple[Integrand, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the integrands."""
        return tuple(one.name for one in self.integrands)

    @property
    def means(self) -> Array:
        """Their exact expectations."""
        return np.array([one.mean for one in self.integrands])

    def values(self, x: Array) -> dict[str, Array]:
        """Every integrand at the draws (chain, draw, dim), as `steinax.estimate` takes them."""
        return {one.name: one.f(x) for one in self.integrands}
