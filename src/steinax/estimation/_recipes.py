"""What the automatic estimate tries: polynomials, and kernels on top of them."""

from dataclasses import dataclass, replace
from math import comb

import jax
import jax.numpy as jnp

from .._types import Points
from ..families import AbstractLinearFamily, KernelTranslates, Landmarks, Polynomial
from ..kernels import (
    AbstractKernel,
    ExponentialDotProduct,
    InverseMultiquadric,
    MedianHeuristic,
    SquaredExponential,
)
from ..objectives import AbstractPenalty, NativeNorm, NoPenalty

NOISES = tuple(10.0**-power for power in range(0, 13, 2))


@dataclass(frozen=True)
class Grid:
    """A kernel, the multiples of the median distance it is tried at, and polynomials beside it."""

    kernel: type[AbstractKernel]
    factors: tuple[float, ...]
    degrees: tuple[int, ...]


GRIDS = (
    Grid(ExponentialDotProduct, (2.0, 4.0, 8.0), (0,)),
    Grid(SquaredExponential, (1.0, 2.0, 4.0, 8.0, 16.0, 32.0), (1, 2, 3)),
    Grid(InverseMultiquadric, (1.0, 2.0, 4.0, 8.0), (0, 2)),
)
NARROWEST, WIDEST = 0.25, 256.0  # as far as a grid may widen itself


@dataclass(frozen=True)
class Recipe:
    """A polynomial without a penalty and a kernel with one; degree 0 or no kernel leave one out.

    `noise` is the variance that the draws' values are taken to have, in units of the kernel's
    median variance: the penalty, in a form that does not depend on scales or numbers of draws.
    """

    degree: int
    kernel: type[AbstractKernel] | None = None
    factor: float = 1.0
    noise: float = 0.0

    def __str__(self) -> str:
        terms = [f"Polynomial({self.degree})"] if self.degree else []
        if self.kernel is not None:
            terms.append(
                f"{self.kernel.__name__}({self.factor:g} x median), noise {self.noise:.0e}"
            )
        return " + ".join(terms) if terms else "plain Monte Carlo"

    @property
    def is_plain(self) -> bool:
        """Whether nothing is fitted."""
        return self.degree == 0 and self.kernel is None

    def quieter(self) -> "Recipe":
        """The same with a hundredth of the noise."""
        return replace(self, noise=self.noise / 100)

    def build(
        self, x: Points, score: Points, train: float, landmarks: int | None = None
    ) -> tuple[AbstractLinearFamily, tuple[AbstractPenalty, ...]]:
        """The family and its penalties, for a fit to `train` of these draws."""
        families: list[AbstractLinearFamily] = []
        penalties: list[AbstractPenalty] = []
        if self.degree:
            families.append(Polynomial(self.degree))
            penalties.append(NoPenalty())
        if self.kernel is not None:
            kernel = base(self.kernel, self.factor, x)
            size = float(jnp.median(diagonal(kernel, x, score)))
            centred = {} if landmarks is None else {"centres": Landmarks(landmarks)}
            families.append(KernelTranslates(kernel, **centred))
            penalties.append(NativeNorm(self.noise * size / train))
        family = families[0] if len(families) == 1 else families[0] + families[1]
        return family, tuple(penalties)  # type: ignore[return-value]


def base(kernel: type[AbstractKernel], factor: float, x: Points) -> AbstractKernel:
    """The kernel, its length-scale a multiple of the median distance of the draws."""
    return kernel(MedianHeuristic(factor)(x))  # type: ignore[call-arg]


@jax.jit
def diagonal(kernel: AbstractKernel, x: Points, score: Points) -> jax.Array:
    """The Stein kernel of every draw with itself, (n,)."""
    family = KernelTranslates(kernel)

    def one(x, score):
        return kernel.stein(family.operator, x, score, x, score)

    return jax.vmap(one)(x, score)


def polynomial_size(degree: int, dim: int) -> int:
    """How many coefficients a polynomial of this degree has, the constant left out."""
    return comb(dim + degree, dim) - 1


def affordable(degree: int, dim: int, train: float) -> bool:
    """Whether a polynomial without a penalty leaves at least half of the draws to judge it by."""
    return polynomial_size(degree, dim) <= train / 2
