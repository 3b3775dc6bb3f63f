"""Families of functions for an operator to act on: polynomials, kernels, networks, their sums."""

from typing import TYPE_CHECKING

from .._lazy import lazily
from ._base import AbstractFamily
from ._centres import AbstractCentres, AllDraws, Landmarks
from ._kernel_translates import KernelTranslates
from ._linear import AbstractLinearFamily, Products
from ._masked import Masked
from ._network import Network
from ._polynomial import Polynomial
from ._random_features import RandomFeatures
from ._sum import LinearSum, Sum

if TYPE_CHECKING:
    from ._learned import Learned
    from ._multilinear import Multilinear
    from ._subset import Subset
    from ._wavelets import Wavelets
else:
    __getattr__, __dir__ = lazily(
        __name__,
        {
            "_learned": ("Learned",),
            "_multilinear": ("Multilinear",),
            "_subset": ("Subset",),
            "_wavelets": ("Wavelets",),
        },
    )

__all__ = [
    "AbstractCentres",
    "AbstractFamily",
    "AbstractLinearFamily",
    "AllDraws",
    "KernelTranslates",
    "Landmarks",
    "Learned",
    "LinearSum",
    "Masked",
    "Multilinear",
    "Network",
    "Polynomial",
    "Products",
    "RandomFeatures",
    "Subset",
    "Sum",
    "Wavelets",
]
