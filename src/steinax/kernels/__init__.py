"""Base kernels, and the Stein kernel of any of them."""

from typing import TYPE_CHECKING

from .._lazy import lazily
from ._base import (
    AbstractHeuristic,
    AbstractKernel,
    Hyperparameter,
    MedianHeuristic,
    Product,
    Sum,
    hyperparameter,
    resolve,
)
from ._closed_forms import (
    AbstractRadial,
    ExponentialDotProduct,
    InverseMultiquadric,
    Matern32,
    Matern52,
    RadialProduct,
    RationalQuadratic,
    SquaredExponential,
)

if TYPE_CHECKING:
    from ._damped import DampedGaussian
    from ._hamming import Hamming, RootDimension
    from ._lattice import Lattice, StandardDeviations
else:
    __getattr__, __dir__ = lazily(
        __name__,
        {
            "_damped": ("DampedGaussian",),
            "_hamming": ("Hamming", "RootDimension"),
            "_lattice": ("Lattice", "StandardDeviations"),
        },
    )

__all__ = [
    "AbstractHeuristic",
    "AbstractKernel",
    "AbstractRadial",
    "DampedGaussian",
    "ExponentialDotProduct",
    "Hamming",
    "Hyperparameter",
    "InverseMultiquadric",
    "Lattice",
    "Matern32",
    "Matern52",
    "MedianHeuristic",
    "Product",
    "RadialProduct",
    "RationalQuadratic",
    "RootDimension",
    "SquaredExponential",
    "StandardDeviations",
    "Sum",
    "hyperparameter",
    "resolve",
]
