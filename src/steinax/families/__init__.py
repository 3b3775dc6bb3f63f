"""Families of control variates: polynomials, kernels, random features, networks, hierarchies, and sums."""

from ._base import (
    AbstractFamily,
    AbstractLinearFamily,
    LinearSum,
    Products,
    Sum,
    check_potentials as check_potentials,
)
from ._kernel_translates import AbstractCentres, AllDraws, KernelTranslates, Landmarks
from ._network import Network
from ._polynomial import Polynomial, layers as layers, stein_monomials as stein_monomials
from ._random_features import RandomFeatures
from ._restricted import Masked, Subset
from ._tied import (
    MEMBERS as MEMBERS,
    Tied,
    outside as outside,
)

__all__ = [
    "AbstractCentres",
    "AbstractFamily",
    "AbstractLinearFamily",
    "AllDraws",
    "KernelTranslates",
    "Landmarks",
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
