"""Base kernels and their Stein kernels."""

from ._base import (
    AbstractHeuristic,
    AbstractKernel,
    Hyperparameter,
    KernelProduct,
    KernelSum,
    MedianHeuristic,
    autodiff_stein as autodiff_stein,
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
from ._structured import (
    CoordinatePairs as CoordinatePairs,
    DampedGaussian,
    Directional as Directional,
)

__all__ = [
    "AbstractHeuristic",
    "AbstractKernel",
    "AbstractRadial",
    "DampedGaussian",
    "ExponentialDotProduct",
    "Hyperparameter",
    "InverseMultiquadric",
    "KernelProduct",
    "KernelSum",
    "Matern32",
    "Matern52",
    "MedianHeuristic",
    "RadialProduct",
    "RationalQuadratic",
    "SquaredExponential",
    "hyperparameter",
    "resolve",
]
