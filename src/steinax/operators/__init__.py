"""Stein operators: they turn functions into functions of mean zero under the target."""

from ._base import AbstractOperator, ScaledOperator
from ._binary import Glauber, ScalarGlauber
from ._box import BoxLangevin, WallDistance
from ._counts import BirthDeath, SteinChen
from ._diffusion import Diffusion
from ._langevin import Langevin, ScalarLangevin
from ._matrices import GrowingMatrix, NetworkMatrix, TriangularMatrix
from ._sphere import SphereLangevin

__all__ = [
    "AbstractOperator",
    "BirthDeath",
    "BoxLangevin",
    "Diffusion",
    "Glauber",
    "GrowingMatrix",
    "Langevin",
    "NetworkMatrix",
    "ScalarGlauber",
    "ScalarLangevin",
    "ScaledOperator",
    "SphereLangevin",
    "SteinChen",
    "TriangularMatrix",
    "WallDistance",
]
