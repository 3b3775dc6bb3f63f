"""Estimate the log evidence of a model from draws at several inverse temperatures."""

from ._evidence import (
    AbstractMethod,
    Evidence,
    SteppingStones,
    ThermodynamicIntegration,
    Trapezium,
    evidence,
)
from ._tempered import Tempered

__all__ = [
    "AbstractMethod",
    "Evidence",
    "SteppingStones",
    "Tempered",
    "ThermodynamicIntegration",
    "Trapezium",
    "evidence",
]
