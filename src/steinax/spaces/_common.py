"""What spaces share: families of polynomials and kernels, pairs and the scale of identities."""

from collections.abc import Callable
from typing import cast

import numpy as np

from .._types import AnyArray, Chains
from ..families import AbstractLinearFamily, KernelTranslates
from ..operators import AbstractOperator

HIGHEST = 6  # degree; where draws have tails, powers are wild beyond the third
HIGHEST_IN_TAILS = 3
DRAWS_PER_COEFFICIENT = 10
PAIRS = 20  # dimensions up to which every pair of them is audited; beyond, neighbours
KERNEL_DRAWS = 1000  # a kernel's matrix costs their square, by automatic differentiation


def polynomial_and_kernel(
    polynomial: Callable[[int], AbstractLinearFamily],
    operator: AbstractOperator,
    n: int,
    dim: int,
    highest: int = HIGHEST,
) -> AbstractLinearFamily:
    """Polynomials of as high a degree as the draws allow, and a kernel where they are few.

    Args:
        polynomial: gives those of a degree.
        operator: of the kernel, on fields.
        n: the number of draws.
        dim: of a draw.
        highest: the highest degree.
    """
    tried = map(polynomial, range(highest, 1, -1))
    few = (one for one in tried if one.size(None, dim) * DRAWS_PER_COEFFICIENT <= n)
    family = next(few, polynomial(2))
    if n > KERNEL_DRAWS:
        return family
    return cast(AbstractLinearFamily, family + KernelTranslates(operator=operator))


def beside_others(own: Chains, of_others: Chains) -> list[AnyArray]:
    """Products of a function of each dimension with one of another, for all that are audited."""
    dim = own.shape[2]
    shifts = range(1, dim) if dim <= PAIRS else (1, 2)
    return [np.roll(of_others, shift, axis=2) * own for shift in shifts]


def unit_size(series: Chains) -> AnyArray:
    """Series in units of their root mean square; what is zero stays zero."""
    size = np.sqrt(np.mean(series**2, axis=(0, 1)))
    return series / np.where(size > 0, size, 1.0)
