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

__all__ = [
    "AbstractObjective",
    "AbstractPenalty",
    "LeastSquares",
    "MeanSquare",
    "NativeNorm",
    "NoPenalty",
    "Ridge",
    "Variance",
    "choose_penalties",
    "default_penalties",
    "per_term",
]
