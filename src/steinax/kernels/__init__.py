"""Base kernels, and the Stein kernel of any of them."""

from typing import TYPE_CHECKING

from .._lazy import lazily
from ._base import AbstractKernel, Product, Sum
from ._exponential import ExponentialDotProduct
from ._heuristics import (
    AbstractHeuristic,
    Hyperparameter,
    MedianHeuristic,
    hyperparameter,
    resolve,
)
from ._matern import Matern32, Matern52
from ._power import InverseMultiquadric, RationalQuadratic
from ._radial import AbstractRadial, RadialProduct
from ._squared_exponential import SquaredExponential

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
