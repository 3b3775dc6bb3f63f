"""Base kernels, and the Stein kernel of any of them."""

from ._base import AbstractKernel, Product, Sum
from ._damped import DampedGaussian
from ._exponential import ExponentialDotProduct
from ._hamming import Hamming, RootDimension
from ._heuristics import (
    AbstractHeuristic,
    Hyperparameter,
    MedianHeuristic,
    hyperparameter,
    resolve,
)
from ._lattice import Lattice, StandardDeviations
from ._matern import Matern32, Matern52
from ._power import InverseMultiquadric, RationalQuadratic
from ._radial import AbstractRadial, RadialProduct
from ._squared_exponential import SquaredExponential

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
