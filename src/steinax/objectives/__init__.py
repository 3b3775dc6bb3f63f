"""What makes one control variate better than another: a loss on the draws, and penalties."""

from ._losses import AbstractObjective, LeastSquares, Variance
from ._penalties import (
    AbstractPenalty,
    MeanSquare,
    NativeNorm,
    NoPenalty,
    Ridge,
    choose_penalties,
    default_penalties,
    per_term,
)
from ._spectral import SpectralVariance

__all__ = [
    "AbstractObjective",
    "AbstractPenalty",
    "LeastSquares",
    "MeanSquare",
    "NativeNorm",
    "NoPenalty",
    "Ridge",
    "SpectralVariance",
    "Variance",
    "choose_penalties",
    "default_penalties",
    "per_term",
]
