"""Families of control variates: polynomials, kernels, networks, hierarchies, lattices, jumps, and sums."""

from ._base import (
    AbstractCoordinateFields as AbstractCoordinateFields,
    AbstractFamily,
    AbstractLinearFamily,
    LinearSum,
    Products,
    Sum,
    check_potentials as check_potentials,
    log_hyperparameters as log_hyperparameters,
    with_hyperparameters as with_hyperparameters,
)
from ._kernel_families import (
    AbstractCentres,
    AllDraws,
    KernelTranslates,
    Landmarks,
    RandomFeatures,
)
from ._kinks import (
    Along as Along,
    Corners as Corners,
    Kinks,
    along_of as along_of,
    corners_of as corners_of,
    curved_of as curved_of,
)
from ._network import Network
from ._polynomial import Polynomial, layers as layers, stein_monomials as stein_monomials
from ._restricted import Masked, Subset
from ._tied import (
    MEMBERS as MEMBERS,
    Lattice,
    Tied,
    correlate as correlate,
    outside as outside,
)

__all__ = [
    "AbstractCentres",
    "AbstractFamily",
    "AbstractLinearFamily",
    "AllDraws",
    "KernelTranslates",
    "Kinks",
    "Landmarks",
    "Lattice",
    "LinearSum",
    "Masked",
    "Network",
    "Polynomial",
    "Products",
    "RandomFeatures",
    "Subset",
    "Sum",
    "Tied",
]
