"""What the automatic estimate tries: polynomials, and kernels on top of them."""

from dataclasses import dataclass
from functools import cache

from ..families import Polynomial
from ..kernels import (
    AbstractKernel,
    ExponentialDotProduct,
    InverseMultiquadric,
    SquaredExponential,
)
from ..kernels._directional import Directional
from ..kernels._pairs import CoordinatePairs

NOISES = tuple(10.0**-power for power in range(0, 13, 2))
POLYNOMIAL_NOISES = (1.0, 1e-1, 1e-2, 1e-3)
QUIETEST = 1e-12  # below it rounding error is as loud


@dataclass(frozen=True)
class Grid:
    """A kernel, the multiples of the median distance it is tried at, and polynomials beside it."""

    kernel: type[AbstractKernel]
    factors: tuple[float, ...]
    degrees: tuple[int, ...]


GRIDS = (
    Grid(ExponentialDotProduct, (2.0, 4.0, 8.0), (0,)),
    Grid(SquaredExponential, (1.0, 2.0, 4.0, 8.0, 16.0, 32.0), (1, 2, 3)),
    Grid(InverseMultiquadric, (1.0, 2.0, 4.0, 8.0, 16.0), (0, 2)),
)
OF_PAIRS = Grid(CoordinatePairs, (1.0, 2.0), (1,))  # not times the median distance
DEGREES: dict[type[AbstractKernel] | None, tuple[int, ...]] = {
    grid.kernel: grid.degrees for grid in (*GRIDS, OF_PAIRS)
}


@dataclass(frozen=True)
class Recipe:
    """A polynomial without a penalty and a kernel with one; degree 0 or no kernel leave one out.

    A polynomial alone has a penalty if there is noise.

    `factor` is the length-scale in units of the median distance. `noise` is the variance that the
    integrands are taken to have at a point, in units of the kernel's median variance: the penalty,
    in a form that does not depend on scales or numbers of draws. `single` leaves out the products of
    different dimensions; `along` takes powers along one direction, each integrand's own.
    """

    degree: int
    kernel: type[AbstractKernel] | None = None
    factor: float = 1.0
    noise: float = 0.0
    single: bool = False
    along: bool = False

    @property
    def of_each_integrand(self) -> bool:
        """Whether it is another control variate for every integrand, whatever the coefficients."""
        return self.along or self.kernel is Directional

    def __str__(self) -> str:
        terms = [f"Polynomial({self.degree})"] if self.degree else []
        if self.single:
            terms = [f"Polynomial({self.degree}) of each dimension"]
        if self.along:
            terms = [f"Polynomial({self.degree}) along its direction"]
        if self.kernel is not None:
            unit = "" if self.kernel is CoordinatePairs else " x median"
            terms.append(f"{self.kernel.__name__}({self.factor:g}{unit})")
        if self.noise > 0:
            terms[-1] += f", noise {self.noise:.0e}"
        return " + ".join(terms) if terms else "plain Monte Carlo"


SPREAD = (
    Recipe(0, InverseMultiquadric, 4.0, 1e-4),
    Recipe(0, SquaredExponential, 8.0, 1e-10),
    Recipe(0, InverseMultiquadric, 2.0, 1e-4),
    Recipe(0, SquaredExponential, 32.0, 1e-8),
    Recipe(0, ExponentialDotProduct, 4.0, 1e-10),
)  # the first to be tried where draws are many; polynomials beside them as in DEGREES
SPREAD_OF_PAIRS = (
    Recipe(0, CoordinatePairs, 2.0, 1e-4),
    Recipe(0, CoordinatePairs, 1.0, 1e-2),
)  # the same, where dimensions are neither few nor many
WIDER_SPREAD = (
    Recipe(0, SquaredExponential, 1.0, 1e-4),
    Recipe(0, SquaredExponential, 4.0, 1e-6),
    Recipe(0, SquaredExponential, 4.0, 1e-10),
    Recipe(0, SquaredExponential, 8.0, 1e-6),
    Recipe(0, SquaredExponential, 32.0, 1e-10),
    Recipe(0, InverseMultiquadric, 2.0, 1e-6),
    Recipe(0, InverseMultiquadric, 4.0, 1e-6),
    Recipe(0, InverseMultiquadric, 4.0, 1e-8),
    Recipe(0, InverseMultiquadric, 8.0, 1e-4),
    Recipe(0, InverseMultiquadric, 8.0, 1e-6),
    Recipe(0, InverseMultiquadric, 8.0, 1e-10),
    Recipe(0, ExponentialDotProduct, 2.0, 1e-4),
    Recipe(0, ExponentialDotProduct, 2.0, 1e-8),
    Recipe(0, ExponentialDotProduct, 2.0, 1e-12),
    Recipe(0, ExponentialDotProduct, 4.0, 1e-4),
    Recipe(0, ExponentialDotProduct, 8.0, 1e-6),
    Recipe(0, ExponentialDotProduct, 8.0, 1e-10),
    Recipe(0, ExponentialDotProduct, 8.0, 1e-12),
)  # where dimensions are few and the first leave much: there mixtures of many kernels gain the most


@cache
def polynomial_size(degree: int, dim: int) -> int:
    """How many coefficients a polynomial of this degree has, the constant left out."""
    return Polynomial(degree).size(None, dim) if degree else 0


def affordable(degree: int, dim: int, train: float) -> bool:
    """Whether a polynomial without a penalty leaves at least half of the draws to judge it by."""
    return polynomial_size(degree, dim) <= train / 2
