"""Stein operators: they turn functions into functions of mean zero under the target."""

from typing import TYPE_CHECKING

from .._lazy import lazily
from ._base import AbstractOperator, ScaledOperator
from ._langevin import Langevin, ScalarLangevin

if TYPE_CHECKING:
    from ._binary import Glauber, ScalarGlauber
    from ._box import BoxLangevin, WallDistance
    from ._counts import BirthDeath, SteinChen
    from ._diffusion import Diffusion
    from ._matrices import GrowingMatrix, NetworkMatrix, TriangularMatrix
    from ._sphere import SphereLangevin
else:
    __getattr__, __dir__ = lazily(
        __name__,
        {
            "_binary": ("Glauber", "ScalarGlauber"),
            "_box": ("BoxLangevin", "WallDistance"),
            "_counts": ("BirthDeath", "SteinChen"),
            "_diffusion": ("Diffusion",),
            "_matrices": ("GrowingMatrix", "NetworkMatrix", "TriangularMatrix"),
            "_sphere": ("SphereLangevin",),
        },
    )

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
