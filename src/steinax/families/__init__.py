"""Families of functions for an operator to act on: polynomials, kernels, networks, their sums."""

from ._base import AbstractFamily
from ._centres import AbstractCentres, AllDraws, Landmarks
from ._kernel_translates import KernelTranslates
from ._linear import AbstractLinearFamily, Products
from ._masked import Masked
from ._network import Network
from ._polynomial import Polynomial
from ._random_features import RandomFeatures
from ._sum import LinearSum, Sum

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
    "Sum",
]
