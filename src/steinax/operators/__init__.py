"""Stein operators: they turn functions into functions of mean zero under the target."""

from typing import TYPE_CHECKING

from .._lazy import lazily
from ._langevin import AbstractOperator, Langevin, ScalarLangevin, ScaledOperator

if TYPE_CHECKING:
    from ._binary import Glauber, ScalarGlauber
    from ._box import BoxLangevin, WallDistance
    from ._counts import BirthDeath, SteinChen
    from ._sphere import SphereLangevin
else:
    __getattr__, __dir__ = lazily(
        __name__,
        {
            "_binary": ("Glauber", "ScalarGlauber"),
            "_box": ("BoxLangevin", "WallDistance"),
            "_counts": ("BirthDeath", "SteinChen"),
            "_sphere": ("SphereLangevin",),
        },
    )

__all__ = [
    "AbstractOperator",
    "BirthDeath",
    "BoxLangevin",
    "Glauber",
    "Langevin",
    "ScalarGlauber",
    "ScalarLangevin",
    "ScaledOperator",
    "SphereLangevin",
    "SteinChen",
    "WallDistance",
]
