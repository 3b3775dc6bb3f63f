"""What the automatic choice tries, and every constant of it, each with the measurement that set it.

The measurements are `python -m benchmarks.posteriors` (22 posteriors, 100 to 1,000 draws) unless another
is named.
"""

from dataclasses import dataclass, replace
from functools import cache
from math import comb

from ..citing import references_of_sum
from ..families import KernelTranslates, Polynomial

# Folds. With 24 each fit has nearly all draws; a fold lasts four autocorrelation times, so that no fit sees
# neighbours of the draws it is used on (docs/trust.md).
FOLDS = 24
SEPARATION = 4

# Sizes. Up to FEW draws every kernel of the grids is tried on all of them, and up to WHOLE a search goes on
# all of them. Of n > WHOLE draws an evenly spaced PART decides which kernels suit each integrand, at most
# MATRICES of them. These are fitted to `train_size(n)` draws, all of them at first, and used on all
# (python -m benchmarks.everyday). A share of these, TAILS, lies farthest out: a kernel knows nothing beyond
# the draws that it was fitted to, and among more draws some lie farther out.
FEW = 480
WHOLE = 1000
PART = 500
TRAIN = 3000  # at most: a factorisation takes half a second
ENTRIES = 1.5e9  # of a kernel's matrix, each counted as often as its kernel is slow: 15 seconds
TAILS = 0.3
MATRICES = 2
MATRICES_IN_FEW_DIMENSIONS = 3
ONE_MATRIX = 30_000  # draws, beyond which it is one: using it on all of them takes most of the time
FAR = 10.0  # times the least variance on a PART: the most that another of MATRICES may leave
# Times the variance without a kernel on all draws: the most that one may leave on a PART.
GROWS = 30.0
WEIGHED = 3000  # draws up to which `weigh` chooses: one factorisation of all takes a second or two
KEPT_MATRICES = 8 * 10**6  # numbers of kernel matrices that are kept for other penalties: 64 MB
# Below FEW_DIMENSIONS mixtures of many kernels gain the most, from it on functions of pairs of
# coordinates; from SEVERAL_DIMENSIONS on the smooth kernels differ little, and one is tried; from DIMENSIONS
# on a kernel of all coordinates is too coarse.
FEW_DIMENSIONS = 5
SEVERAL_DIMENSIONS = 15
DIMENSIONS = 30
# Columns of a polynomial beside a kernel: with more, each candidate takes longer than its kernel.
COLUMNS = 120
DEGREE = 3  # the highest of a polynomial
# Of a polynomial's normal equations, at most, about two seconds, and numbers in its columns, at most, 0.8 GB.
# It is fitted to no more draws than that allows, and used on all.
OPERATIONS = 4e10
NUMBERS = 10**8

# Penalties, in units of the kernel's median variance. Below the last rounding errors are as loud.
PENALTIES = tuple(10.0**-power for power in range(0, 13, 2))
POLYNOMIAL_PENALTIES = (1.0, 1e-1, 1e-2, 1e-3)
SPACE_PENALTIES = (1e-1, 1e-3, 1e-5, 1e-7)
STATE_PENALTIES = SPACE_PENALTIES[:2]  # with less, states that were seen say nothing of others
LEAST_PENALTY = 1e-12

# Length-scales, in units of the median distance.
NARROWEST, WIDEST = 0.25, 256.0

# The search. It ends for an integrand of which NOTHING is left.
NOTHING = 1e-22  # of the plain variance
HARD = 1e-6  # of the plain variance: where less is left, WIDER is not worth its time
# Of the plain variance: where more is left, f jumps or bends sharply, and of WIDER only kernels with
# a length-scale up to SHORT can help.
ROUGH = 0.1
SHORT = 2.0
STEPS = 5  # to neighbours of what was tried first
MOVES = ((1.0, 0.01), (2.0, 1.0), (0.5, 1.0), (1.0, 100.0))  # of the length-scale and the penalty
HELPS = 0.02  # by which a step must lower the logarithm of the variance
PATIENCE = 3  # steps that may help less, one after the other

# The choice.
MIXED = 8  # candidates at most in a mixture: only their residuals are held
MARGIN = 3.0  # standard errors below the plain variance that a control variate must be, roughly
NEAR = 4.0  # times the least variance: what a candidate of a mixture may have
BELIEVED = 3.0  # times the variance that was seen: the most that the expected one counts for
UNSTABLE = 10.0  # times the variance of an average: where a fit's moves add more, its rank falls
LEAST = 1e-35  # variance of an integrand of variance 1: less is rounding error
PERFECT = 1e-10  # of the variance: what leaves less is perfect for an integrand of `weigh`
WORST = 1.5  # times the plain variance: the most that `weigh` may leave of an integrand

PLAIN = "plain Monte Carlo"
PENALISED = ("south2018regularized",)  # the paper of polynomials with a penalty
SQUARED = "SquaredExponential"
MULTIQUADRIC = "InverseMultiquadric"
DOT_PRODUCT = "ExponentialDotProduct"
OF_PAIRS = "CoordinatePairs"
DIRECTIONAL = "Directional"


@dataclass(frozen=True)
class Candidate:
    """Columns without a penalty and a kernel with one, by their names; neither is plain Monte Carlo.

    Attributes:
        columns: such as `Polynomial(2)`; empty for none.
        kernel: such as `SquaredExponential`; empty for none.
        factor: the kernel's length-scale, in units of the median distance.
        penalty: in units of the kernel's median variance: it depends on neither scales nor numbers of draws.
        own: whether it is another control variate for every integrand, whatever the coefficients.
    """

    columns: str = ""
    kernel: str = ""
    factor: float | None = None
    penalty: float = 0.0
    own: bool = False

    @property
    def references(self) -> tuple[str, ...]:
        """The keys of the papers behind it, for `citations`."""
        columns = Polynomial.references if self.columns.startswith("Polynomial") else ()
        if not self.kernel:
            return columns
        if self.factor is None and self.kernel.startswith("Polynomial"):
            return (*Polynomial.references, *PENALISED)
        return references_of_sum(*((Polynomial(1),) if columns else ()), KernelTranslates())

    def __str__(self) -> str:
        terms = [self.columns] if self.columns else []
        if self.kernel:
            unit = "" if self.kernel == OF_PAIRS else " x median"
            scale = "" if self.factor is None else f"({self.factor:g}{unit})"
            terms.append(f"{self.kernel}{scale}, penalty {self.penalty:.0e}")
        return " + ".join(terms) or PLAIN

    def moved(self, move: tuple[float, float]) -> "Candidate":
        """A neighbour, its length-scale and its penalty multiplied by two numbers."""
        assert self.factor is not None
        penalty = float(
            f"{self.penalty * move[1]:.0e}"
        )  # the same number, whichever way it is reached
        return replace(self, factor=self.factor * move[0], penalty=penalty)


def polynomial(degree: int) -> str:
    """The name of the columns of a polynomial; none for degree 0."""
    return f"Polynomial({degree})" if degree else ""


@cache
def polynomial_size(degree: int, dim: int) -> int:
    """How many coefficients a polynomial of this degree has, the constant left out."""
    return comb(dim + degree, dim) - 1


def train_size(n: int, cost: float = 1.0) -> int:
    """How many of n draws kernels are fitted to.

    Args:
        n: the number of draws.
        cost: of an entry of the kernel's matrix, in units of a fast kernel's.
    """
    most = max(ENTRIES / (cost * n), PART)
    return int(min(n, (WHOLE * n) ** 0.5, TRAIN, most))


def most_draws(degree: int, dim: int) -> int:
    """How many draws a polynomial without a penalty can be fitted to in little time and memory."""
    size = float(polynomial_size(degree, dim))
    return int(min(OPERATIONS / size**2, NUMBERS / size))


def is_cheap(degree: int, n: int, dim: int) -> bool:
    """Whether there are enough draws for a polynomial without a penalty, and it can be fitted to enough."""
    return polynomial_size(degree, dim) <= min(n, most_draws(degree, dim)) / 2


@dataclass(frozen=True)
class Grid:
    """A kernel, the length-scales it is tried at, and the polynomials that go with it."""

    kernel: str
    factors: tuple[float, ...]
    degrees: tuple[int, ...]


GRIDS = (
    Grid(DOT_PRODUCT, (2.0, 4.0, 8.0), (0,)),
    Grid(SQUARED, (1.0, 2.0, 4.0, 8.0, 16.0, 32.0), (1, 2, 3)),
    Grid(MULTIQUADRIC, (1.0, 2.0, 4.0, 8.0, 16.0), (0, 2)),
)
DEGREES = {grid.kernel: grid.degrees for grid in GRIDS} | {OF_PAIRS: (1,)}


def _kernels(*these: tuple[str, float, float]) -> tuple[Candidate, ...]:
    return tuple(Candidate("", kernel, factor, penalty) for kernel, factor, penalty in these)


# The first to be tried; polynomials go with them as in DEGREES.
SPREAD = _kernels(
    (MULTIQUADRIC, 4.0, 1e-4),
    (SQUARED, 8.0, 1e-10),
    (MULTIQUADRIC, 2.0, 1e-4),
    (SQUARED, 32.0, 1e-8),
    (DOT_PRODUCT, 4.0, 1e-10),
)
SPREAD_IN_SEVERAL_DIMENSIONS = SPREAD[:2]
# From FEW_DIMENSIONS on.
SPREAD_OF_PAIRS = _kernels((OF_PAIRS, 2.0, 1e-4), (OF_PAIRS, 1.0, 1e-2))
# The same where nothing is tuned: the second is for functions that jump.
PAIRS_OF_PART = _kernels((OF_PAIRS, 2.0, 1e-4), (OF_PAIRS, 0.5, 1e-2))
# Below FEW_DIMENSIONS, where the first leave much.
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
