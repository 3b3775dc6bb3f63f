"""What makes one control variate better than another: a loss on the draws, and penalties."""

from ._penalties import (
    AbstractObjective,
    AbstractPenalty,
    LeastSquares,
    MeanSquare,
    NativeNorm,
    NoPenalty,
    Ridge,
    Variance,
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
