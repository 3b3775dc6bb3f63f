"""Families of functions for an operator to act on: polynomials, kernels, networks, their sums."""

from typing import TYPE_CHECKING

from .._lazy import lazily
from ._base import AbstractFamily, AbstractLinearFamily, Products
from ._kernel_translates import AbstractCentres, AllDraws, KernelTranslates, Landmarks
from ._masked import Masked
from ._network import Network
from ._polynomial import Polynomial
from ._random_features import RandomFeatures
from ._sum import LinearSum, Sum

if TYPE_CHECKING:
    from ._multilinear import Multilinear
    from ._subset import Subset
else:
    __getattr__, __dir__ = lazily(
        __name__,
        {"_multilinear": ("Multilinear",), "_subset": ("Subset",)},
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
    "Multilinear",
    "Network",
    "Polynomial",
    "Products",
    "RandomFeatures",
    "Subset",
    "Sum",
]
