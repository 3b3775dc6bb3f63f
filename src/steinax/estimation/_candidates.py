"""Candidates and constants of the automatic choice, with the measurements that set them.

The measurements are those of `python -m benchmarks.posteriors` (22 posteriors, 100 to 1,000 draws) unless
stated otherwise.
"""

from dataclasses import dataclass, replace
from functools import cache
from math import comb

from ..citing import references_of_sum
from ..families import KernelTranslates, Kinks, Polynomial

# Folds. With 24 folds each fit uses nearly all draws; a fold is four autocorrelation times long, so that no
# fit sees neighbours of the draws it is used on (docs/trust.md).
FOLDS = 24
SEPARATION = 4

# Sizes. With up to FEW draws every kernel of the grids is tried on all of them, and with up to WHOLE draws
# the search uses all of them. With n > WHOLE draws an evenly spaced PART of them selects the kernels for each
# integrand, at most MATRICES of them. These are fitted to `train_size(n)` draws and used on all draws
# (python -m benchmarks.everyday). A fraction TAILS of the training draws are the most extreme ones: a kernel
# does not extrapolate beyond the draws it was fitted to, and among more draws some are more extreme.
FEW = 480
WHOLE = 1000
PART = 500
TRAIN = 3000  # the largest training size: a factorisation takes half a second
ENTRIES = 1.5e9  # the most entries of a kernel matrix, times the cost of one entry: 15 seconds
TAILS = 0.3
MATRICES = 2
MATRICES_IN_FEW_DIMENSIONS = 3
ONE_MATRIX = 30_000  # draws beyond which one kernel is used: evaluating it dominates the time
FAR = 10.0  # times the least variance on a PART: the most that the other MATRICES may have
# Times the variance without a kernel on all draws: the most that a kernel may have on a PART.
GROWS = 30.0
WEIGHED = (
    3000  # the most draws for which `weigh` chooses a family: factorising takes 1 to 2 seconds
)
KEPT_MATRICES = 8 * 10**6  # numbers in kernel matrices that are cached for other penalties: 64 MB
# Below FEW_DIMENSIONS mixtures of many kernels gain the most, and from there on functions of pairs of
# coordinates. From SEVERAL_DIMENSIONS on the smooth kernels differ little, and fewer are tried; from
# DIMENSIONS on a kernel of all coordinates is too coarse.
FEW_DIMENSIONS = 5
SEVERAL_DIMENSIONS = 15
DIMENSIONS = 30
# The most columns of a polynomial added to a kernel: with more, they cost more than the kernel.
COLUMNS = 120
DEGREE = 3  # the highest degree of a polynomial
# The most operations for a polynomial's normal equations, about two seconds, and the most numbers in its
# columns, 0.8 GB. It is fitted to no more draws than these allow, and used on all draws.
OPERATIONS = 4e10
NUMBERS = 10**8

# The most coefficients per draw of a quadratic polynomial with a penalty, from DIMENSIONS on: with more of
# them, it learns a small part of each (python -m benchmarks.applied).
QUADRATICS = 5

# Penalties, in units of the kernel's median variance. Smaller ones are lost in rounding errors.
PENALTIES = tuple(10.0**-power for power in range(0, 13, 2))
POLYNOMIAL_PENALTIES = (1.0, 1e-1, 1e-2, 1e-3)
SPACE_PENALTIES = (1e-1, 1e-3, 1e-5, 1e-7)
STATE_PENALTIES = SPACE_PENALTIES[:2]  # smaller ones do not generalise to unvisited states
LEAST_PENALTY = 1e-12

# Length-scales, in units of the median distance.
NARROWEST, WIDEST = 0.25, 256.0

# The search. It ends for an integrand whose residual variance is below NOTHING.
NOTHING = 1e-22  # of the plain variance
HARD = 1e-6  # of the plain variance: below it, WIDER is not worth its time
# Of the plain variance: above it, f has jumps or sharp bends, and among WIDER only kernels with a
# length-scale up to SHORT can help.
ROUGH = 0.1
SHORT = 2.0
STEPS = 5  # to neighbours of the first candidates
MOVES = ((1.0, 0.01), (2.0, 1.0), (0.5, 1.0), (1.0, 100.0))  # factors of length-scale and penalty
HELPS = 0.02  # the least decrease of the log variance that counts as an improvement
PATIENCE = 3  # consecutive steps without an improvement before the search stops

# The choice.
MIXED = 8  # the most candidates in a mixture: only their residuals are stored
MARGIN = 3.0  # rough number of standard errors by which the variance must be below the plain one
NEAR = 4.0  # times the least variance: the most that a candidate in a mixture may have
BELIEVED = 3.0  # times the observed variance: the upper limit for the expected one
UNSTABLE = 10.0  # times the variance of an average: fits that move by more are ranked lower
LEAST = 1e-35  # the least residual variance of an integrand of variance 1: less is rounding error
PERFECT = 1e-10  # of the variance: for `weigh`, smaller residual variances count as equal
WORST = 1.5  # times the plain variance: the most that `weigh` accepts for an integrand

PLAIN = "plain Monte Carlo"
PENALISED = ("south2018regularized",)  # the paper on polynomials with a penalty
SQUARED = "SquaredExponential"
MULTIQUADRIC = "InverseMultiquadric"
DOT_PRODUCT = "ExponentialDotProduct"
OF_PAIRS = "CoordinatePairs"
DIRECTIONAL = "Directional"


@dataclass(frozen=True)
class Candidate:
    """A control variate, described by its columns and its kernel; plain Monte Carlo has neither.

    Attributes:
        columns: columns without a penalty, such as `Polynomial(2)`; empty for none.
        kernel: a kernel with a penalty, such as `SquaredExponential`; empty for none.
        factor: the kernel's length-scale, in units of the median distance.
        penalty: in units of the kernel's median variance, independent of scales and the number of draws.
        own: whether the features, and not only the coefficients, differ between integrands.
        kinks: whether it is fitted to the residual of control variates with kinks, for integrands that
            jump.
    """

    columns: str = ""
    kernel: str = ""
    factor: float | None = None
    penalty: float = 0.0
    own: bool = False
    kinks: bool = False

    @property
    def references(self) -> tuple[str, ...]:
        """The keys of the papers behind the candidate, for `citations`."""
        if self.kinks:
            return (*Kinks.references, *replace(self, kinks=False).references)
        columns = Polynomial.references if self.columns.startswith("Polynomial") else ()
        if not self.kernel:
            return columns
        if self.factor is None and self.kernel.startswith("Polynomial"):
            return (*Polynomial.references, *PENALISED)
        return references_of_sum(*((Polynomial(1),) if columns else ()), KernelTranslates())

    def __str__(self) -> str:
        terms = [name for name in ("Kinks" if self.kinks else "", self.columns) if name]
        if self.kernel:
            unit = "" if self.kernel == OF_PAIRS else " x median"
            scale = "" if self.factor is None else f"({self.factor:g}{unit})"
            terms.append(f"{self.kernel}{scale}, penalty {self.penalty:.0e}")
        return " + ".join(terms) or PLAIN

    def moved(self, move: tuple[float, float]) -> "Candidate":
        """Return a neighbour: the length-scale and the penalty multiplied by the two factors of a move."""
        assert self.factor is not None
        penalty = float(
            f"{self.penalty * move[1]:.0e}"
        )  # rounded, so that every path gives one number
        return replace(self, factor=self.factor * move[0], penalty=penalty)


def polynomial(degree: int) -> str:
    """Return the name of the columns of a polynomial; empty for degree 0."""
    return f"Polynomial({degree})" if degree else ""


@cache
def polynomial_size(degree: int, dim: int) -> int:
    """Count the coefficients of a polynomial, without the constant."""
    return comb(dim + degree, dim) - 1


def train_size(n: int, cost: float = 1.0) -> int:
    """Return the number of draws, out of n, that kernels are fitted to.

    Args:
        n: the number of draws.
        cost: the cost of an entry of the kernel's matrix, relative to a fast kernel.
    """
    most = max(ENTRIES / (cost * n), PART)
    return int(min(n, (WHOLE * n) ** 0.5, TRAIN, most))


def most_draws(degree: int, dim: int) -> int:
    """Return the most draws that a polynomial without a penalty is fitted to, given time and memory."""
    size = float(polynomial_size(degree, dim))
    return int(min(OPERATIONS / size**2, NUMBERS / size))


def is_cheap(degree: int, n: int, dim: int) -> bool:
    """Return whether a polynomial without a penalty can be fitted to at least two draws per coefficient."""
    return polynomial_size(degree, dim) <= min(n, most_draws(degree, dim)) / 2


@dataclass(frozen=True)
class Grid:
    """Kernel with the length-scales to try, and the degrees of the polynomials to combine it with."""

    kernel: str
    factors: tuple[float, ...]
    degrees: tuple[int, ...]


GRIDS = (
    Grid(DOT_PRODUCT, (2.0, 4.0, 8.0), (0,)),
    Grid(SQUARED, (1.0, 2.0, 4.0, 8.0, 16.0, 32.0), (1, 2, 3)),
    Grid(MULTIQUADRIC, (1.0, 2.0, 4.0, 8.0, 16.0), (0, 2)),
)
DEGREES = {grid.kernel: grid.degrees for grid in GRIDS} | {OF_PAIRS: (1,)}


def _kernels(*settings: tuple[str, float, float]) -> tuple[Candidate, ...]:
    return tuple(Candidate("", kernel, factor, penalty) for kernel, factor, penalty in settings)


# The first candidates, combined with polynomials of DEGREES.
SPREAD = _kernels(
    (MULTIQUADRIC, 4.0, 1e-4),
    (SQUARED, 8.0, 1e-10),
    (MULTIQUADRIC, 2.0, 1e-4),
    (SQUARED, 32.0, 1e-8),
    (DOT_PRODUCT, 4.0, 1e-10),
)
SPREAD_IN_SEVERAL_DIMENSIONS = SPREAD[:2]
# Further first candidates from FEW_DIMENSIONS on.
SPREAD_OF_PAIRS = _kernels((OF_PAIRS, 2.0, 1e-4), (OF_PAIRS, 1.0, 1e-2))
# Further first candidates if nothing is tuned: the second is for functions with jumps.
PAIRS_OF_PART = _kernels((OF_PAIRS, 2.0, 1e-4), (OF_PAIRS, 0.5, 1e-2))
# Further candidates below FEW_DIMENSIONS, if the first ones have large residuals.
WIDER = _kernels(
    *(
        (SQUARED, *at)
        for at in ((1.0, 1e-4), (4.0, 1e-6), (4.0, 1e-10), (8.0, 1e-6), (32.0, 1e-10))
    ),
    *((MULTIQUADRIC, *at) for at in ((2.0, 1e-6), (4.0, 1e-6), (4.0, 1e-8))),
    *((MULTIQUADRIC, *at) for at in ((8.0, 1e-4), (8.0, 1e-6), (8.0, 1e-10))),
    *((DOT_PRODUCT, *at) for at in ((2.0, 1e-4), (2.0, 1e-8), (2.0, 1e-12), (4.0, 1e-4))),
    *((DOT_PRODUCT, *at) for at in ((8.0, 1e-6), (8.0, 1e-10), (8.0, 1e-12))),
)
