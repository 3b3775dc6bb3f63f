"""The families of a space: polynomials, as many as the draws can bear, and kernels."""

from collections.abc import Callable, Iterable, Sequence
from typing import cast

from ..families import AbstractLinearFamily, KernelTranslates

HIGHEST = 6  # degree
HIGHEST_IN_TAILS = 3  # beyond it powers are wild
DRAWS_PER_COEFFICIENT = 10
DRAWS_PER_CANDIDATE = 3  # and coefficient, of a polynomial that has to prove itself
KERNEL_DRAWS = 1000  # a kernel's matrix costs their square, by automatic differentiation
KERNEL_STATES = 200  # on fewer a kernel meets every integrand exactly, and sees no error
COLUMNS = 500  # at most, of a polynomial that is one of many candidates


def affordable[F: AbstractLinearFamily](
    make: Callable[[int], F], degrees: Iterable[int], n: int, dim: int, per_function: int
) -> list[F]:
    """The families of those degrees with so many distinct draws for each of their functions.

    Discrete draws repeat: a state that is held out is among those of the fit as well. With as many functions
    as states every integrand would be met exactly, and the standard error be zero.
    """
    made = map(make, sorted(degrees))
    return [one for one in made if one.size(None, dim) * per_function <= n]


def of_highest_degree[F: AbstractLinearFamily](
    make: Callable[[int], F], degrees: Sequence[int], states: int, dim: int, per_function: int
) -> F:
    """The affordable family of the highest degree."""
    found = affordable(make, degrees, states, dim, per_function)
    if not found:
        raise ValueError(
            f"the draws are of {states} distinct states, too few for a control variate in {dim} dimensions: "
            "give more draws, leave out coordinates that hardly move, or take plain averages."
        )
    return found[-1]


def polynomial_and_kernel(
    polynomial: Callable[[int], AbstractLinearFamily],
    kernel: KernelTranslates,
    n: int,
    dim: int,
    highest: int = HIGHEST,
) -> AbstractLinearFamily:
    """Polynomials of as high a degree as the draws allow, and a kernel where they are few.

    Args:
        polynomial: gives those of a degree.
        kernel: on fields.
        n: the number of draws.
        dim: of a draw.
        highest: the highest degree.
    """
    found = affordable(polynomial, range(2, highest + 1), n, dim, DRAWS_PER_COEFFICIENT)
    family = found[-1] if found else polynomial(2)
    return family if n > KERNEL_DRAWS else cast(AbstractLinearFamily, family + kernel)


def candidates(
    polynomials: Sequence[AbstractLinearFamily],
    kernel: KernelTranslates | None,
    dim: int,
    in_tails: bool = False,
) -> tuple[AbstractLinearFamily, ...]:
    """Those to choose from: polynomials that are not too large, and a kernel beside one of them.

    That is the largest, but the smallest where draws have tails: out there a kernel that corrects high powers
    corrects them at the draws alone, and the standard error does not know of it.
    """
    few = [one for one in polynomials if one.size(None, dim) <= COLUMNS]
    if kernel is None:
        return tuple(few)
    if not few:
        return (kernel,)
    return (*few, cast(AbstractLinearFamily, few[0 if in_tails else -1] + kernel))
